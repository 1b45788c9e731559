#include "server/engine/analyze/mixture_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ablate::engine {
namespace {

template <typename T>
double Reference(const std::vector<T>& a, double p, const std::vector<T>& b, double q) {
  double entropy = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double m = p * a[i] + q * b[i];
    if (m != 0) entropy -= m * std::log(m);
  }
  return entropy;
}

// Returns weights of which some are 0 and some are tiny.
template <typename T>
std::vector<T> Weights(size_t count, size_t of) {
  std::vector<T> weights;
  for (size_t i = 0; i < count; ++i) {
    const size_t kind = (i * 7 + of) % 11;
    if (kind == 0) weights.push_back(0);
    if (kind == 1) weights.push_back(static_cast<T>(1e-42));
    if (kind > 1) weights.push_back(static_cast<T>(kind) / static_cast<T>(7 * count));
  }
  return weights;
}

template <typename T>
class MixtureEntropyTest : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(MixtureEntropyTest, Precisions);

TYPED_TEST(MixtureEntropyTest, EqualsALoopForEveryLength) {
  const double tolerance = sizeof(TypeParam) == 4 ? 2e-6 : 1e-14;
  for (size_t count = 0; count <= 150; ++count) {
    const std::vector<TypeParam> a = Weights<TypeParam>(count, 1), b = Weights<TypeParam>(count, 5);
    for (const double p : {0.0, 0.5, 1.25}) {
      const TypeParam q = 0.5;
      EXPECT_NEAR(MixtureEntropy(a.data(), static_cast<TypeParam>(p), b.data(), q, count),
                  Reference(a, p, b, q), tolerance)
          << count << " elements, " << p;
    }
  }
}

TYPED_TEST(MixtureEntropyTest, IsNaNWhereAWeightIsNaN) {
  for (const size_t at : {0, 15, 16, 39}) {
    std::vector<TypeParam> a = Weights<TypeParam>(40, 1);
    const std::vector<TypeParam> b = Weights<TypeParam>(40, 2);
    a[at] = NAN;
    EXPECT_TRUE(std::isnan(MixtureEntropy(a.data(), 1, b.data(), 1, 40))) << at;
    EXPECT_TRUE(std::isnan(MixtureEntropy(b.data(), 1, a.data(), 1, 40))) << at;
  }
}

}  // namespace
}  // namespace ablate::engine
