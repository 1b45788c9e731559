// Bootstrap intervals from the oracle's draws and from our own.
#include "server/report/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "server/report/random_stream.h"
#include "tests/report/oracle_stream.h"

namespace ablate::report {
namespace {

constexpr double kTolerance = 1e-9;

TEST(BootstrapTest, EqualsTheOracleFromItsDraws) {
  std::vector<uint32_t> indices;
  for (const double u : OracleU(82, 2000 * 10)) indices.push_back(static_cast<uint32_t>(10 * u));
  const BootstrapResult result = BootstrapFromIndices(OracleR(81, 10, .03, .05), indices);
  EXPECT_NEAR(result.bias.value, .0100266811, kTolerance);
  EXPECT_NEAR(result.acceleration.value, .02260623002, kTolerance);
  EXPECT_NEAR(result.bca.low, .009118640758, kTolerance);
  EXPECT_NEAR(result.bca.high, .04091196623, kTolerance);
  EXPECT_NEAR(result.percentile.low, .008457357117, kTolerance);
  EXPECT_NEAR(result.percentile.high, .0399630082, kTolerance);
}

TEST(BootstrapTest, CountsHalfOfTheTies) {
  // Resample means: 0, .5, .5, 1 around an estimate of .5: half below, so no bias.
  const BootstrapResult result = BootstrapFromIndices({0, 1}, {0, 0, 0, 1, 1, 0, 1, 1});
  EXPECT_EQ(result.bias.value, 0);
  EXPECT_EQ(result.acceleration.value, 0);
}

TEST(BootstrapTest, ReproducesItselfAndFollowsItsSeed) {
  const std::vector<double> sample = OracleR(7, 12);
  BootstrapOptions other;
  other.seed = 1;
  EXPECT_EQ(Bootstrap(sample).bca.low, Bootstrap(sample).bca.low);
  EXPECT_NE(Bootstrap(sample).bca.low, Bootstrap(sample, Mean, other).bca.low);
}

TEST(BootstrapTest, CoversTheMeanOfALargeSampleAsTDoes) {
  const std::vector<double> sample = OracleR(9, 400, 5, 1);
  const Summary summary = Summarize(sample);
  const BootstrapResult result = Bootstrap(sample);
  EXPECT_NEAR(result.bca.low, summary.interval.low, .01);
  EXPECT_NEAR(result.bca.high, summary.interval.high, .01);
  EXPECT_NEAR(result.percentile.low, summary.interval.low, .01);
}

TEST(BootstrapTest, TakesAnotherStatistic) {
  const std::vector<double> sample = {1, 2, 3, 4, 5, 6, 7, 1000};
  const BootstrapResult mean = Bootstrap(sample);
  const BootstrapResult middle = Bootstrap(sample, InterquartileMean);
  EXPECT_GT(mean.percentile.high, 100);
  EXPECT_LT(middle.percentile.low, 4);
  EXPECT_GT(middle.percentile.high, 5);
}

TEST(BootstrapTest, IsUndefinedWithReason) {
  EXPECT_EQ(Bootstrap({}).bca.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(Bootstrap({1}).percentile.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(Bootstrap({1, 1, 1}).bca.undefined, Undefined::kZeroVariance);
  EXPECT_EQ(Bootstrap({1, std::nan("")}).bca.undefined, Undefined::kNonFinite);
  // All resamples above the estimate: no bias can be computed, the percentile interval still can.
  const BootstrapResult one_sided = BootstrapFromIndices({0, 1}, {1, 1, 1, 1});
  EXPECT_EQ(one_sided.bias.undefined, Undefined::kNonFinite);
  EXPECT_EQ(one_sided.bca.undefined, Undefined::kNonFinite);
  EXPECT_EQ(one_sided.percentile.low, 1);
}

TEST(RandomStreamTest, DrawsBelowABoundEvenly) {
  RandomStream stream(3);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[stream.Below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * std::sqrt(10000 * 6 / 7.));
  EXPECT_EQ(stream.Below(1), 0u);
}

}  // namespace
}  // namespace ablate::report
