// The sign-flip test against enumeration one by one, its ties and its symmetries.
#include "server/report/sign_flip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/report/oracle_stream.h"

namespace ablate::report {
namespace {

// By definition: every pattern, each sum anew.
double BruteForce(const std::vector<double>& differences) {
  double observed = 0;
  for (const double difference : differences) observed += difference;
  int reached = 0;
  const int patterns = 1 << differences.size();
  for (int pattern = 0; pattern < patterns; ++pattern) {
    double sum = 0;
    for (size_t i = 0; i < differences.size(); ++i) {
      sum += (pattern >> i & 1) != 0 ? differences[i] : -differences[i];
    }
    reached += std::abs(sum) >= std::abs(observed) * (1 - 1e-12);
  }
  return static_cast<double>(reached) / patterns;
}

TEST(SignFlipTest, EqualsTheOracle) {
  const SignFlipResult result = SignFlipTest(OracleR(81, 10, .03, .05));
  EXPECT_TRUE(result.exact);
  EXPECT_EQ(result.p.value, 30 / 1024.);
}

TEST(SignFlipTest, EqualsEnumeration) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const size_t n = 2 + seed % 13;
    const std::vector<double> differences = OracleR(seed, n, .1 * static_cast<double>(seed % 5), 1);
    EXPECT_EQ(SignFlipTest(differences).p.value, BruteForce(differences)) << seed;
  }
}

TEST(SignFlipTest, CountsTiesOfWholeNumbers) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<double> differences = OracleR(seed, 2 + seed % 11, .2, 3);
    for (double& difference : differences) difference = std::round(difference);
    EXPECT_EQ(SignFlipTest(differences).p.value, BruteForce(differences)) << seed;
  }
}

TEST(SignFlipTest, RoundingDoesNotSplitTies) {
  // .3 - .2 and .1 differ in the last bit; as tenths, every sum is a tie with another.
  const std::vector<double> tenths = {.3 - .2, .1, .1, .7 - .6, -.1};
  EXPECT_EQ(SignFlipTest(tenths).p.value, SignFlipTest({1, 1, 1, 1, -1}).p.value);
  // The observed sum is 0 but for rounding: every pattern reaches it.
  EXPECT_EQ(SignFlipTest({.3, -.1, -.2}).p.value, 1);
}

TEST(SignFlipTest, LeastPIsOneInTwoToTheNMinusOne) {
  for (const size_t n : {5, 6, 8, 10, 20}) {
    EXPECT_EQ(SignFlipTest(std::vector<double>(n, .25)).p.value, std::pow(.5, n - 1.0));
  }
  EXPECT_EQ(SignFlipTest({0, 0, 0}).p.value, 1);
}

TEST(SignFlipTest, DoesNotDependOnOrderOrSign) {
  for (const size_t n : {7, 20, 33}) {
    std::vector<double> differences = OracleR(n, n, .1, 1);
    const double p = SignFlipTest(differences).p.value;
    std::reverse(differences.begin(), differences.end());
    EXPECT_EQ(SignFlipTest(differences).p.value, p);
    std::rotate(differences.begin(), differences.begin() + 3, differences.end());
    EXPECT_EQ(SignFlipTest(differences).p.value, p);
    for (double& difference : differences) difference = -difference;
    EXPECT_EQ(SignFlipTest(differences).p.value, p);
    for (double& difference : differences) difference *= 8;
    EXPECT_EQ(SignFlipTest(differences).p.value, p);
  }
}

TEST(SignFlipTest, DrawsComeNearEnumeration) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<double> differences = OracleR(seed, 17, .2, 1);
    SignFlipOptions drawn;
    drawn.exact_up_to = 0;
    drawn.seed = seed;
    const double exact = SignFlipTest(differences).p.value;
    const SignFlipResult result = SignFlipTest(differences, drawn);
    EXPECT_FALSE(result.exact);
    EXPECT_NEAR(result.p.value, exact, 4 * std::sqrt(exact * (1 - exact) / 1e5) + 1e-5) << seed;
    EXPECT_EQ(SignFlipTest(differences, drawn).p.value, result.p.value);
  }
}

TEST(SignFlipTest, ADrawnPIsNeverZero) {
  const SignFlipResult result = SignFlipTest(std::vector<double>(100, 1.5));
  EXPECT_FALSE(result.exact);
  EXPECT_EQ(result.p.value, 1 / 100001.);
}

TEST(SignFlipTest, IsUndefinedWithReason) {
  EXPECT_EQ(SignFlipTest({}).p.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(SignFlipTest({.5}).p.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(SignFlipTest({.5, std::nan("")}).p.undefined, Undefined::kNonFinite);
  EXPECT_EQ(SignFlipTest({1e308, -1e308, 1e308}).p.undefined, Undefined::kNonFinite);
}

}  // namespace
}  // namespace ablate::report
