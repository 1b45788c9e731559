// Tests numbers in sentences: decimals, signs, p values, lists.
#include "server/report/compare/wording.h"

#include <gtest/gtest.h>

#include "server/report/compare/scale.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {
namespace {

std::string Text(double mean, double low, double high) {
  return ShownDifference(Scale::kDifference, Defined(mean), DefinedInterval(low, high)).text();
}

TEST(ShownDifferenceTest, ShowsWhatTheIntervalDeserves) {
  EXPECT_EQ(Text(.0308, .0240, .0376), "+0.031 [+0.024, +0.038]");
  EXPECT_EQ(Text(-.0434, -.0490, -.0379), "−0.043 [−0.049, −0.038]");
  EXPECT_EQ(Text(.303, .244, .362), "+0.30 [+0.24, +0.36]");
  EXPECT_EQ(Text(12.3, 2.1, 22.5), "+12 [+2, +22]");
  EXPECT_EQ(Text(1234.5, 1100, 1369), "+1234 [+1100, +1369]");
  EXPECT_EQ(Text(.5, -.5, 1.5), "+0.5 [−0.5, +1.5]");
}

TEST(ShownDifferenceTest, NoBoundRoundsToZero) {
  EXPECT_EQ(Text(.0504, .0004, .1004), "+0.0504 [+0.0004, +0.1004]");
  EXPECT_EQ(Text(.05, 0, .1), "+0.05 [0.00, +0.10]");  // a bound that is 0
  EXPECT_EQ(Text(0, -.031, .031), "0.000 [−0.031, +0.031]");
}

TEST(ShownDifferenceTest, GoesScientificWhereDecimalsEnd) {
  EXPECT_EQ(Text(1.23e-10, 1.1e-10, 1.36e-10), "+1.23e−10 [+1.10e−10, +1.36e−10]");
  EXPECT_EQ(Text(-2.5e12, -3e12, -2e12), "−2.50e12 [−3.00e12, −2.00e12]");
}

TEST(ShownDifferenceTest, SaysWhatIsMissing) {
  const auto alone = [](const Number& mean, Undefined why) {
    return ShownDifference(Scale::kDifference, mean, NoInterval(why)).text();
  };
  EXPECT_EQ(alone(Defined(.0312345), Undefined::kTooFewPairs), "+0.0312");
  EXPECT_EQ(alone(Defined(0), Undefined::kZeroVariance), "0");
  EXPECT_EQ(alone(NoNumber(Undefined::kAllDiverged), Undefined::kAllDiverged),
            "undefined (ALL_DIVERGED)");
}

TEST(DirectedDifferenceTest, SaysTheDirectionWhereTheIntervalHasOne) {
  const auto text = [](double mean, double low, double high) {
    return DirectedDifference(Scale::kDifference, Defined(mean), DefinedInterval(low, high)).text();
  };
  EXPECT_EQ(text(.0308, .0240, .0376), "higher by 0.031 [0.024, 0.038]");
  EXPECT_EQ(text(-.0434, -.0490, -.0379), "lower by 0.043 [0.038, 0.049]");
  EXPECT_EQ(text(.003, -.004, .010), "+0.003 [−0.004, +0.010]");
  EXPECT_EQ(text(.05, 0, .1), "+0.05 [0.00, +0.10]");
  const Interval none = NoInterval(Undefined::kTooFewPairs);
  EXPECT_EQ(DirectedDifference(Scale::kDifference, Defined(.5), none).text(), "+0.500");
}

TEST(SettingNameTest, PutsTheAxisBeforeABareValue) {
  EXPECT_EQ(SettingName({}, {}), "base");
  EXPECT_EQ(SettingName({"norm"}, {"post"}), "post");
  EXPECT_EQ(SettingName({"lr"}, {"0.01"}), "lr 0.01");
  EXPECT_EQ(SettingName({"norm", "residual", "width"}, {"post", "false", "64"}),
            "post, residual false, width 64");
  EXPECT_EQ(SettingName({"norm"}, {"none"}), "none");
  EXPECT_EQ(Listed("lr 0.01"), "lr 0.01");
  EXPECT_EQ(Listed("post, residual false"), "“post, residual false”");
}

TEST(PlainTest, HasALeadingZeroAndNoSignOnZero) {
  EXPECT_EQ(Plain(2.4371, 3), "2.437");
  EXPECT_EQ(Plain(.0314, 3), "0.031");
  EXPECT_EQ(Plain(-.5, 1), "−0.5");
  EXPECT_EQ(Plain(-.0001, 2), "0.00");
  EXPECT_EQ(Plain(0, 0), "0");
  EXPECT_EQ(Signed(0, 2), "0.00");
}

TEST(PTextTest, NeverRoundsOntoTheThreshold) {
  EXPECT_EQ(PText(.031), "p = 0.031");
  EXPECT_EQ(PText(.001), "p = 0.001");
  EXPECT_EQ(PText(.00098), "p < 0.001");
  EXPECT_EQ(PText(.0004), "p < 0.001");
  EXPECT_EQ(PText(.0499), "p = 0.0499");
  EXPECT_EQ(PText(.050001), "p = 0.050001");
  EXPECT_EQ(PText(.05), "p = 0.050");
  EXPECT_EQ(PText(1), "p = 1.000");
}

TEST(CountedTest, GroupsThousandsAndKnowsOne) {
  EXPECT_EQ(Counted(1, "seed"), "1 seed");
  EXPECT_EQ(Counted(10000, "seed"), "10,000 seeds");
}

TEST(EnumeratedTest, CountsWhatIsBeyondItsLimit) {
  EXPECT_EQ(Enumerated({}), "");
  EXPECT_EQ(Enumerated({"a"}), "a");
  EXPECT_EQ(Enumerated({"a", "b"}), "a and b");
  EXPECT_EQ(Enumerated({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(Enumerated({"a", "b", "c", "d"}, 3), "a, b and 2 more");
}

}  // namespace
}  // namespace ablate::report
