#include <gtest/gtest.h>

#include "tests/engine/analyze/plain_norm.h"
#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {
namespace {

AnalysisResult ResponseTo(double mean, double deviation, uint32_t size, uint32_t seed = 0) {
  return Analyzed({NormResponseOptions{mean, deviation, size}, {}, {}, seed});
}

TEST(NormResponseTest, DrawsTheWildVector) {
  const AnalysisResult result = ResponseTo(5, 10, 100'000);
  EXPECT_NEAR(NumberIn(result, "mean/input"), 5, 0.15);
  EXPECT_NEAR(NumberIn(result, "deviation/input"), 10, 0.15);
  EXPECT_FALSE(at::equal(ArrayIn(ResponseTo(5, 10, 8, 0), "input"),
                         ArrayIn(ResponseTo(5, 10, 8, 1), "input")));
  // A shorter vector is the beginning of a longer one.
  EXPECT_TRUE(at::equal(ArrayIn(ResponseTo(5, 10, 8), "input"),
                        ArrayIn(ResponseTo(5, 10, 20), "input").narrow(0, 0, 8)));
}

TEST(NormResponseTest, AppliesEveryNormAsItsFormulaIsWritten) {
  for (const uint32_t size : {2u, 7u, 100u}) {
    const AnalysisResult result = ResponseTo(5, 10, size);
    const at::Tensor x = ArrayIn(result, "input").unsqueeze(0);
    const std::pair<const char*, NormConfig> norms[] = {
        {"layer_norm", {.kind = NormKind::kLayer}},
        {"textbook_layer_norm", {.deviation = NormDeviation::kUnbiasedEpsOutside, .eps = 1e-6}},
        {"rms_norm", {.kind = NormKind::kRms}},
        {"l2_norm", {.kind = NormKind::kL2}}};
    for (const auto& [name, norm] : norms) {
      const at::Tensor expected = PlainNorm(x, norm)[0], found = ArrayIn(result, name);
      EXPECT_LT((expected - found).abs().max().item<double>(), 1e-12) << name;
      ExpectOracles(result,
                    {{"mean", expected.mean().item<double>()},
                     {"deviation", expected.std(false).item<double>()},
                     {"unbiased_deviation", expected.std().item<double>()}},
                    std::string("/") + name);
    }
    EXPECT_NEAR(NumberIn(result, "deviation/textbook_layer_norm") /
                    NumberIn(result, "deviation/layer_norm"),
                std::sqrt((size - 1.0) / size), 1e-4);
  }
}

TEST(NormResponseTest, IsUndefinedWhereANormNeedsAnotherNumber) {
  const AnalysisResult result = ResponseTo(5, 10, 100);
  ExpectUndefined(result, Undefined::kTooFewTokens, {"mean/batch_norm", "deviation/batch_norm"});
  const AnalysisResult one = ResponseTo(5, 10, 1);
  ExpectUndefined(one, Undefined::kTooFewTokens,
                  {"unbiased_deviation/input", "mean/textbook_layer_norm"});
  EXPECT_EQ(NumberIn(one, "deviation/layer_norm"), 0);
}

}  // namespace
}  // namespace ablate::engine
