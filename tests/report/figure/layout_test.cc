// Tests layout: labels pushed apart, texts cut, ticks, curves thinned.
#include "server/report/figure/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/report/figure/axes.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::IsNan;
using testing::SizeIs;

std::vector<std::string> LabelsOf(const Axis& axis) {
  std::vector<std::string> labels;
  for (const Tick& tick : axis.ticks) labels.push_back(tick.label);
  return labels;
}

Extent Of(const std::vector<double>& values) {
  Extent extent;
  for (const double value : values) extent.Add(value);
  return extent;
}

TEST(DifferenceTitleTest, LeavesOutTheBaselinesNameIfItDoesNotFit) {
  const report::MetricName loss = report::NameOfMetric("eval/loss", report::MetricSource::kTrainer);
  const auto title = [&loss](const std::string& baseline) {
    return DifferenceTitle(report::Scale::kDifference, loss, baseline, 1.7);
  };
  EXPECT_EQ(title("pre"), "Δ held-out loss vs pre (nats)");
  EXPECT_EQ(BaselineNote(report::Scale::kDifference, loss, "pre", 1.7), "");
  EXPECT_EQ(title("gelu, tied false"), "Δ held-out loss (nats)");
  EXPECT_EQ(BaselineNote(report::Scale::kDifference, loss, "gelu, tied false", 1.7),
            "baseline: “gelu, tied false”");
}

TEST(PushApartTest, KeepsWhatIsFarAndSpreadsWhatIsNear) {
  EXPECT_THAT(PushApart({3, 1}, 0.5, 0, 4), ElementsAre(3, 1));
  EXPECT_THAT(PushApart({2, 2.1}, 0.5, 0, 4),
              ElementsAre(DoubleNear(1.8, 1e-9), DoubleNear(2.3, 1e-9)));
  EXPECT_THAT(PushApart({4, 4, 4}, 0.5, 0, 4), ElementsAre(3, 3.5, 4));
  EXPECT_THAT(PushApart({}, 0.5, 0, 4), ElementsAre());
}

TEST(PushApartTest, KeepsDistanceEvenWithoutRoom) {
  const std::vector<double> places = PushApart({1, 1, 1, 1}, 1, 0, 2);
  for (size_t i = 1; i < places.size(); ++i) EXPECT_GE(places[i] - places[i - 1], 1 - 1e-9);
}

TEST(MeasureTest, CutsInTheMiddleAtCharacters) {
  EXPECT_NEAR(TextWidth("pre", 72), 0.556 + 0.333 + 0.556, 1e-9);
  EXPECT_NEAR(TextWidth("−1", 72), 0.584 + 0.556, 1e-9);
  const std::string cut = ElideMiddle("ééééééééééééééééé", 0.5, 7);
  EXPECT_LE(TextWidth(cut, 7), 0.5);
  EXPECT_NE(cut.find("…"), std::string::npos);
  EXPECT_EQ(ElideMiddle("short", 1, 7), "short");
  EXPECT_EQ(ElideMiddle("a\tb\x80", 1, 7), "a\uFFFDb\uFFFD");
}

TEST(NameLinesTest, BreaksAfterACommaIfOneLineIsTooLong) {
  EXPECT_THAT(NameLines("tied true, bias false", 2, kLabelSize),
              ElementsAre("tied true, bias false"));
  EXPECT_THAT(NameLines("tied true, bias false", .8, kLabelSize),
              ElementsAre("tied true,", "bias false"));
  EXPECT_THAT(NameLines("pre, tied true, bias false", .9, kLabelSize),
              ElementsAre("pre, tied true,", "bias false"));
  EXPECT_THAT(NameLines("post-norm without bias", .8, kLabelSize), SizeIs(1)) << "cut";
}

TEST(EndLabelsTest, HaveTwoLinesIfTheyAreLong) {
  Panel panel;
  panel.right = 2;
  Figure figure;
  figure.width = 3.25;
  const std::vector<std::string> names = {"tied true, bias false", "tied false, bias false"};
  const double room = EndLabelRoom(names, figure.width);
  AddEndLabels(panel, {{names[0], 1, .5, {}, {}}, {names[1], 1, .5, {}, {}}}, room, &figure);
  ASSERT_THAT(figure.texts, SizeIs(4));
  EXPECT_EQ(figure.texts[0].text, "tied true,");
  EXPECT_EQ(figure.texts[1].text, "bias false");
  EXPECT_LT(figure.texts[1].y, figure.texts[0].y);
  for (const Text& text : figure.texts) EXPECT_LE(TextWidth(text.text, kLabelSize), room);
}

TEST(LeftRoomTest, GrowsWithTheNumbersOfTheAxis) {
  Axis usual, small;
  usual.ticks = {{2, "2.40"}, {3, "2.45"}};
  EXPECT_EQ(LeftRoom(usual), kLeft);
  small.ticks = {{0, "0"}, {1, "−0.0025"}};
  EXPECT_NEAR(LeftRoom(small), 0.2 + TextWidth("−0.0025", kLabelSize) + kYNumbers * kPoint, 1e-9);
  EXPECT_GT(LeftRoom(small), kLeft);
}

TEST(MeasureTest, WrapsAndElidesTheLastLine) {
  const auto lines = Wrap("one two three four five six seven eight", 0.6, 7, 2);
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) EXPECT_LE(TextWidth(line, 7), 0.6);
}

TEST(TicksTest, AreRoundWithTheDecimalsOfTheirStep) {
  EXPECT_THAT(LabelsOf(LinearAxis(Of({-0.0054, 0.43}), 0, 1)), ElementsAre("0", "0.25"))
      << "one tick would show no scale";
  EXPECT_THAT(LabelsOf(LinearAxis(Of({-0.051, 0.053}), 0, 5)),
              ElementsAre("−0.050", "−0.025", "0", "0.025", "0.050"));
  EXPECT_THAT(LabelsOf(StepAxis(Of({0, 999}), 5)),
              ElementsAre("0", "200", "400", "600", "800", "1000"));
  EXPECT_THAT(LabelsOf(LogAxis(Of({1e-6, 1}), 0, 5)),
              ElementsAre("10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"));
  EXPECT_THAT(LabelsOf(LogAxis(Of({2, 9}), 0, 5)), ElementsAre("2", "3", "5"));
}

TEST(AxesTest, HaveRatiosAtLogarithms) {
  const auto ratios = [](double low, double high, size_t ticks) {
    return RatioAxis(Of({std::log(low), std::log(high)}), 0, ticks);
  };
  EXPECT_THAT(LabelsOf(ratios(.97, 1.11, 4)), ElementsAre("×1.00", "×1.05", "×1.10"));
  EXPECT_THAT(LabelsOf(ratios(.4, 4, 5)), ElementsAre("×0.5", "×1", "×2", "×3"));
  EXPECT_THAT(LabelsOf(ratios(.01, 40, 4)), ElementsAre("×0.01", "×0.1", "×1", "×10"));
  EXPECT_THAT(LabelsOf(ratios(1e-9, 1e5, 4)), ElementsAre("×10⁻⁸", "×10⁻⁴", "×1", "×10⁴"));
  const Axis axis = ratios(.4, 4, 5);
  ASSERT_EQ(axis.ticks.size(), 4u);
  EXPECT_EQ(axis.ticks[1].at, 0);
  EXPECT_NEAR(axis.ticks[2].at, std::log(2), 1e-12);
  EXPECT_FALSE(axis.log) << "what it shows are logarithms already";
  EXPECT_THAT(RatioAxis(Of({}), .1, 5).ticks, testing::IsEmpty());
}

TEST(TicksTest, SurviveDegenerateRanges) {
  for (const Axis& axis : {LinearAxis(Of({}), 0.1, 5), LinearAxis(Of({0}), 0.1, 5),
                           LinearAxis(Of({-3, -3}), 0.1, 5), StepAxis(Of({7}), 5),
                           LinearAxis(Of({1e300, -1e300}), 0, 5), LinearAxis(Of({1e-300}), 0, 5)}) {
    EXPECT_LT(axis.low, axis.high);
    EXPECT_TRUE(std::isfinite(axis.low) && std::isfinite(axis.high));
    EXPECT_LT(axis.ticks.size(), 30u);
  }
  EXPECT_THAT(LabelsOf(StepAxis(Of({0}), 5)), ElementsAre("0"));
}

SeedCurve CurveOf(uint32_t seed, std::vector<double> values, bool diverged = false) {
  SeedCurve curve{seed, {}, std::move(values), diverged, false};
  for (uint32_t i = 0; i < curve.values.size(); ++i) curve.steps.push_back(i);
  return curve;
}

TEST(ReducedCurveTest, AveragesConvergedSeedsAndKeepsDivergedOnesApart) {
  const ReducedCurve reduced =
      ReduceSeeds({CurveOf(1, {1, 2}), CurveOf(2, {3, 4}), CurveOf(3, {100}, true)}, true);
  EXPECT_EQ(reduced.converged, 2u);
  EXPECT_EQ(reduced.diverged, 1u);
  EXPECT_THAT(reduced.mean, ElementsAre(2, 3));
  // t(0.975, 1)·s/√2 = 12.706·1.
  EXPECT_THAT(reduced.high, ElementsAre(DoubleNear(14.706, 1e-3), DoubleNear(15.706, 1e-3)));
  EXPECT_EQ(reduced.seeds.size(), 3u);
}

TEST(ReducedCurveTest, HasAnIntervalOfLogarithmsForNorms) {
  const ReducedCurve reduced =
      ReduceSeeds({CurveOf(1, {.1, 0}), CurveOf(2, {.9, 1})}, true, /*log=*/true);
  EXPECT_NEAR(reduced.mean[0], .3, 1e-12);
  EXPECT_NEAR(std::log(reduced.low[0] / .3), -12.706204736432095 * std::log(9) / 2, 1e-9);
  EXPECT_THAT(reduced.mean[1], IsNan()) << "0 has no logarithm";
}

TEST(ReducedCurveTest, HasNoIntervalOfOneSeedAndNoMeanWhereOneIsNotFinite) {
  EXPECT_THAT(ReduceSeeds({CurveOf(1, {1, 2})}, true).low, Each(IsNan()));
  const ReducedCurve reduced =
      ReduceSeeds({CurveOf(1, {1, std::nan("")}), CurveOf(2, {3, 4})}, true);
  EXPECT_THAT(reduced.mean, ElementsAre(2, IsNan()));
}

TEST(ReducedCurveTest, ThinsButKeepsExtremesAndBreaks) {
  std::vector<double> values(100000, 1.0);
  values[12345] = 50;
  values[54321] = -50;
  values[77777] = std::nan("");
  const std::vector<size_t> kept = ThinIndices(values, 1000);
  EXPECT_LE(kept.size(), 1100u);
  EXPECT_THAT(kept, testing::IsSupersetOf({0, 12345, 54321, 77777, 99999}));
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

TEST(ReducedCurveTest, KeepsTheLastFinitePointOfARunThatDiverged) {
  std::vector<double> values(1000, 1.0);
  values[900] = 9;
  for (size_t i = 902; i < 1000; ++i) values[i] = std::nan("");
  EXPECT_THAT(ThinIndices(values, 100), testing::Contains(901));
}

TEST(ReducedCurveTest, ThinsATrackWithItsIntervalAndSeeds) {
  std::vector<double> low(1000, 1.0), high(1000, 3.0);
  low[500] = high[500] = 70;
  const ReducedCurve thin = Thinned(ReduceSeeds({CurveOf(1, low), CurveOf(2, high)}, true), 80);
  EXPECT_LE(thin.mean.size(), 100u);
  EXPECT_EQ(thin.low.size(), thin.mean.size());
  EXPECT_THAT(thin.mean, testing::Contains(70));
  EXPECT_THAT(thin.seeds[0].y, testing::Contains(70));
}

TEST(ReducedCurveTest, SmoothsInStepsAndNotWhereCurvesAreShort) {
  SeedCurve curve = CurveOf(1, std::vector<double>(1000, 1.0));
  EXPECT_EQ(SmoothingPoints(curve, 20), 20u);
  for (uint32_t& step : curve.steps) step *= 10;
  EXPECT_EQ(SmoothingPoints(curve, 20), 2u);
  EXPECT_EQ(SmoothingPoints(CurveOf(1, {1, 2, 3}), 20), 1u);
}

}  // namespace
}  // namespace ablate::figure
