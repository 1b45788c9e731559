// Tests power and numbers of seeds, against published numbers, simulation and each other.
#include "server/report/compare/power.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "server/report/compare/paired.h"
#include "tests/report/compare/noise.h"

namespace ablate::report {
namespace {

// Returns n differences with mean `effect` and deviation 1.
std::vector<double> Draw(Noise* noise, double effect, size_t n) {
  std::vector<double> differences(n);
  for (double& difference : differences) difference = effect + (*noise)();
  return differences;
}

// statsmodels' TTestPower().power(0.5, 34, 0.05) and similar; 2^(1−n) is too fine to matter there.
TEST(EstablishingPowerTest, IsThePairedTTestsOfTextbooks) {
  EXPECT_NEAR(EstablishingPower(.5, 34, 1), .8077775, 1e-6);
  EXPECT_NEAR(EstablishingPower(-.5, 34, 1), .8077775, 1e-6);
  EXPECT_NEAR(EstablishingPower(.2, 199, 1), .8016906, 1e-6);
  EXPECT_NEAR(EstablishingPower(0, 30, 1), .05, 1e-6);
  EXPECT_NEAR(EstablishingPower(.2, 401, 1), EstablishingPower(.2, 402, 1), 2e-3)
      << "where the normal distribution takes over";
}

TEST(EstablishingPowerTest, IsNoneWhereTheTestCantReachTheLevel) {
  EXPECT_EQ(EstablishingPower(100, 5, 1), 0);
  EXPECT_EQ(EstablishingPower(100, 6, 1), 1);
  EXPECT_EQ(EstablishingPower(100, 6, 2), 0);
  EXPECT_EQ(EstablishingPower(100, LeastSeedsForSignFlip(11), 11), 1);
  EXPECT_EQ(EstablishingPower(100, LeastSeedsForSignFlip(11) - 1, 11), 0);
}

// With six pairs only one pattern in 32 rejects, and a t-test at that level is a little stronger.
TEST(EstablishingPowerTest, IsNearTheSignFlipTestsOwn) {
  constexpr int kExperiments = 2000;
  for (const size_t n : {6, 8, 10, 12}) {
    for (const double effect : {.5, 1., 1.5}) {
      Noise noise(n);
      double established = 0;
      for (int i = 0; i < kExperiments; ++i) {
        established += SignFlipTest(Draw(&noise, effect, n)).p.value <= kAlpha;
      }
      EXPECT_NEAR(EstablishingPower(effect, n, 1), established / kExperiments, n == 6 ? .09 : .05)
          << n << " pairs, effect " << effect;
    }
  }
}

TEST(SeedsNeededTest, IsTheLeastWithThePower) {
  for (const size_t family : {size_t{1}, size_t{5}}) {
    for (const double effect : {.1, .4, 1., 3.}) {
      const double n = FindSeedsNeeded(Defined(effect), 8, family).estimate.value;
      EXPECT_GE(EstablishingPower(effect, static_cast<size_t>(n), family), kPower);
      EXPECT_LT(EstablishingPower(effect, static_cast<size_t>(n) - 1, family), kPower);
    }
  }
  EXPECT_EQ(FindSeedsNeeded(Defined(.5), 8, 1).estimate.value, 34);
}

TEST(SeedsNeededTest, HasALimitAndReasons) {
  const SeedsNeeded zero = FindSeedsNeeded(Defined(0), 8, 1);
  EXPECT_EQ(zero.estimate.undefined, Undefined::kBeyondLimit);
  EXPECT_EQ(zero.high.undefined, Undefined::kBeyondLimit);
  EXPECT_GT(zero.low.value, 8);
  const SeedsNeeded huge = FindSeedsNeeded(Defined(1e9), 8, 1);
  EXPECT_EQ(huge.estimate.value, 6);
  EXPECT_EQ(huge.high.value, 6);
  const SeedsNeeded none = FindSeedsNeeded(NoNumber(Undefined::kZeroVariance), 8, 1);
  EXPECT_EQ(none.estimate.undefined, Undefined::kZeroVariance);
}

TEST(SeedsNeededTest, RangeHoldsWhatTheTrueEffectTakes) {
  constexpr int kExperiments = 300;
  const double least = kPower - 2 * std::sqrt(kPower * (1 - kPower) / kExperiments);
  for (const double effect : {.5, 1.}) {
    const double needed = FindSeedsNeeded(Defined(effect), 8, 2).estimate.value;
    Noise noise(3);
    double held = 0;
    for (int i = 0; i < kExperiments; ++i) {
      const std::vector<double> differences = Draw(&noise, effect, 8);
      const double seen = Mean(differences).value / StandardDeviation(differences).value;
      const SeedsNeeded range = FindSeedsNeeded(Defined(seen), 8, 2);
      held += range.low.value <= needed && (!range.high.defined() || needed <= range.high.value);
    }
    EXPECT_GE(held / kExperiments, least) << effect;
  }
}

TEST(LeastDetectableEffectTest, IsFoundWithThePower) {
  for (const size_t n : {7, 12, 100}) {
    const Number least = LeastDetectableEffect(n, 2);
    EXPECT_NEAR(EstablishingPower(least.value, n, 2), kPower, 1e-4);
  }
  EXPECT_EQ(LeastDetectableEffect(6, 2).undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(LeastDetectableEffect(1, 1).undefined, Undefined::kTooFewPairs);
}

}  // namespace
}  // namespace ablate::report
