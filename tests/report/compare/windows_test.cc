// Tests windows and smoothed curves: the oracle, laws, and non-finite points.
#include "server/report/compare/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> Losses() { return OracleR(1, 12, 3, 1); }

std::vector<uint32_t> Steps(size_t n) {
  std::vector<uint32_t> steps(n);
  std::iota(steps.begin(), steps.end(), 0u);
  return steps;
}

Number Value(absl::Span<const double> values, const Window& window) {
  return Reduce(values, window)->value;
}

TEST(ReduceTest, EqualsTheOracle) {
  EXPECT_NEAR(Value(Losses(), {WindowSide::kFirst, 5}).value, 3.268788002, kTolerance);
  EXPECT_NEAR(Value(Losses(), {WindowSide::kLast, 5}).value, 3.044854003, kTolerance);
  EXPECT_NEAR(Value(Losses(), {WindowSide::kFirst, 4, Reduction::kMax}).value, 3.942005507,
              kTolerance);
  EXPECT_NEAR(Value(Losses(), {WindowSide::kAll, 0, Reduction::kMin}).value, 2.571017369,
              kTolerance);
}

TEST(ReduceTest, TakesWhatThereIsAndSaysHowMuch) {
  const WindowValue result = *Reduce({1, 2, 6}, {WindowSide::kLast, 100});
  EXPECT_EQ(result.points, 3u);
  EXPECT_EQ(result.value.value, 3);
  EXPECT_EQ(Reduce({1, 2, 6}, {WindowSide::kLast, 2})->points, 2u);
  EXPECT_EQ(Value({}, {WindowSide::kAll}).undefined, Undefined::kTooFewRuns);
  EXPECT_EQ(Value({}, {WindowSide::kFirst, 3, Reduction::kMax}).undefined, Undefined::kTooFewRuns);
}

TEST(ReduceTest, NeverAveragesANonFinitePointAway) {
  for (const double bad : {kInf, -kInf, std::nan("")}) {
    const std::vector<double> values = {1, 2, bad, 4};
    for (const Reduction reduction : {Reduction::kMean, Reduction::kMin, Reduction::kMax}) {
      const WindowValue all = *Reduce(values, {WindowSide::kAll, 0, reduction});
      EXPECT_EQ(all.value.undefined, Undefined::kNonFinite);
      EXPECT_EQ(all.nonfinite, 1u);
      EXPECT_TRUE(Value(values, {WindowSide::kFirst, 2, reduction}).defined());
      EXPECT_TRUE(Value(values, {WindowSide::kLast, 1, reduction}).defined());
      EXPECT_FALSE(Value(values, {WindowSide::kLast, 2, reduction}).defined());
    }
  }
}

TEST(ReduceTest, RefusesAnEmptyWindow) {
  EXPECT_THAT(Reduce({1, 2}, {WindowSide::kFirst, 0}).status().message(), HasSubstr("at least 1"));
  EXPECT_FALSE(Reduce({1, 2}, {WindowSide::kLast, 0}).ok());
}

TEST(SummarizeWindowTest, HasAnIntervalOfLogarithmsForRatios) {
  std::vector<WindowValue> runs = {{Defined(.1), 1, 0}, {Defined(.9), 1, 0}};
  const WindowSummary ratios = SummarizeWindow(runs, Scale::kRatio);
  EXPECT_NEAR(ratios.over.mean.value, .3, 1e-12);
  EXPECT_NEAR(std::log(ratios.over.interval.low / .3), -12.706204736432095 * std::log(9) / 2, 1e-9);
  EXPECT_LT(SummarizeWindow(runs).over.interval.low, 0);
  runs.push_back({Defined(0), 1, 0});
  EXPECT_NEAR(SummarizeWindow(runs, Scale::kRatio).over.mean.value, 1. / 3, 1e-12)
      << "0 has no logarithm";
}

TEST(TrailingMeanTest, EqualsTheOracle) {
  const Curve curve = *TrailingMean(Steps(12), Losses(), 4);
  const double expected[] = {3.363852652, 3.302704214, 3.311260532, 3.264433498, 3.30378748,
                             3.224409471, 3.239960578, 3.003357319, 3.044533914};
  ASSERT_EQ(curve.values.size(), 9u);
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(curve.values[i], expected[i], kTolerance) << i;
  EXPECT_EQ(curve.steps.front(), 3u);
  EXPECT_EQ(curve.steps.back(), 11u);
}

TEST(TrailingMeanTest, IsTheIdentityAtWidthOne) {
  const Curve curve = *TrailingMean(Steps(12), Losses(), 1);
  EXPECT_EQ(curve.values, Losses());
  EXPECT_EQ(curve.steps, Steps(12));
}

TEST(TrailingMeanTest, CommutesWithAffineMaps) {
  std::vector<double> mapped = OracleR(2, 57);
  const Curve curve = *TrailingMean(Steps(57), mapped, 7);
  for (double& value : mapped) value = 3 * value - 2;
  const Curve mapped_curve = *TrailingMean(Steps(57), mapped, 7);
  for (size_t i = 0; i < curve.values.size(); ++i) {
    EXPECT_NEAR(mapped_curve.values[i], 3 * curve.values[i] - 2, 1e-14);
  }
}

TEST(TrailingMeanTest, EqualsEachWindowsOwnMean) {
  for (size_t n = 1; n < 30; ++n) {
    const std::vector<double> values = OracleR(n, n);
    for (size_t width = 1; width <= n + 1; ++width) {
      const Curve curve = *TrailingMean(Steps(n), values, width);
      ASSERT_EQ(curve.values.size(), n + 1 - width);
      for (size_t i = 0; i < curve.values.size(); ++i) {
        const auto window = absl::MakeConstSpan(values).subspan(i, width);
        EXPECT_NEAR(curve.values[i], Value(window, {}).value, 1e-15);
        EXPECT_EQ(curve.steps[i], i + width - 1);
      }
    }
  }
}

TEST(TrailingMeanTest, ASpikeLeavesNothingBehind) {
  std::vector<double> values(50, .1);
  values[10] = 1e30;
  const Curve curve = *TrailingMean(Steps(50), values, 5);
  EXPECT_DOUBLE_EQ(curve.values[10], 2e29);
  for (size_t i = 11; i < curve.values.size(); ++i) EXPECT_EQ(curve.values[i], .1);
}

TEST(TrailingMeanTest, BreaksTheLineAtANonFinitePoint) {
  const Curve curve = *TrailingMean(Steps(6), {1, 1, kInf, 1, 1, 1}, 2);
  ASSERT_EQ(curve.values.size(), 5u);
  EXPECT_EQ(curve.values[0], 1);
  EXPECT_TRUE(std::isnan(curve.values[1]));
  EXPECT_TRUE(std::isnan(curve.values[2]));
  EXPECT_EQ(curve.values[3], 1);
  EXPECT_EQ(curve.nonfinite, 1u);
}

TEST(TrailingMeanTest, RefusesWidthsOutsideItsRange) {
  EXPECT_THAT(TrailingMean({}, {}, 0).status().message(), HasSubstr("1 to 100000"));
  EXPECT_FALSE(TrailingMean({}, {}, kMaxSmoothing + 1).ok());
  EXPECT_TRUE(TrailingMean({}, {}, kMaxSmoothing)->values.empty());
}

TEST(CumulativeMeanTest, EqualsTheOracle) {
  const Curve curve = CumulativeMean(Steps(12), Losses());
  EXPECT_NEAR(curve.values[0], 3.13312315, 1e-8);
  EXPECT_NEAR(curve.values[5], 3.311621465, kTolerance);
  EXPECT_NEAR(curve.values[11], 3.237391348, kTolerance);
  EXPECT_EQ(curve.steps, Steps(12));
}

TEST(CumulativeMeanTest, EndsAtANonFinitePoint) {
  const Curve curve = CumulativeMean({0, 5, 10, 15}, {1, 3, std::nan(""), 5});
  EXPECT_EQ(curve.values[1], 2);
  EXPECT_TRUE(std::isnan(curve.values[2]));
  EXPECT_TRUE(std::isnan(curve.values[3]));
  EXPECT_EQ(curve.nonfinite, 1u);
  EXPECT_THAT(curve.steps, ElementsAre(0, 5, 10, 15));
}

TEST(CumulativeMeanTest, StaysExactOverAMillionPoints) {
  const std::vector<double> values(1000000, .1);
  EXPECT_EQ(CumulativeMean(Steps(values.size()), values).values.back(), .1);
}

}  // namespace
}  // namespace ablate::report
