// Tests numbers in sentences: decimals, signs, p values, lists.
#include "server/report/compare/wording.h"

#include <gtest/gtest.h>

#include "server/report/compare/statistics.h"

namespace ablate::report {
namespace {

std::string Text(double mean, double low, double high) {
  return SignedWithInterval(Defined(mean), DefinedInterval(low, high));
}

TEST(SignedWithIntervalTest, ShowsWhatTheIntervalDeserves) {
  EXPECT_EQ(Text(.0308, .0240, .0376), "+.031 [+.024, +.038]");
  EXPECT_EQ(Text(-.0434, -.0490, -.0379), "−.043 [−.049, −.038]");
  EXPECT_EQ(Text(.303, .244, .362), "+.30 [+.24, +.36]");
  EXPECT_EQ(Text(12.3, 2.1, 22.5), "+12 [+2, +22]");
  EXPECT_EQ(Text(1234.5, 1100, 1369), "+1234 [+1100, +1369]");
  EXPECT_EQ(Text(.5, -.5, 1.5), "+.5 [−.5, +1.5]");
}

TEST(SignedWithIntervalTest, NoBoundRoundsToZero) {
  EXPECT_EQ(Text(.0504, .0004, .1004), "+.0504 [+.0004, +.1004]");
  EXPECT_EQ(Text(.05, 0, .1), "+.05 [.00, +.10]");  // a bound that is 0
  EXPECT_EQ(Text(0, -.031, .031), ".000 [−.031, +.031]");
}

TEST(SignedWithIntervalTest, GoesScientificWhereDecimalsEnd) {
  EXPECT_EQ(Text(1.23e-10, 1.1e-10, 1.36e-10), "+1.23e−10 [+1.10e−10, +1.36e−10]");
  EXPECT_EQ(Text(-2.5e12, -3e12, -2e12), "−2.50e12 [−3.00e12, −2.00e12]");
}

TEST(SignedWithIntervalTest, SaysWhatIsMissing) {
  EXPECT_EQ(SignedWithInterval(Defined(.0312345), NoInterval(Undefined::kTooFewPairs)), "+.0312");
  EXPECT_EQ(SignedWithInterval(Defined(0), NoInterval(Undefined::kZeroVariance)), "0");
  EXPECT_EQ(
      SignedWithInterval(NoNumber(Undefined::kAllDiverged), NoInterval(Undefined::kAllDiverged)),
      "undefined (ALL_DIVERGED)");
}

TEST(DirectedWithIntervalTest, SaysTheDirectionWhereTheIntervalHasOne) {
  const auto text = [](double mean, double low, double high) {
    return DirectedWithInterval(Defined(mean), DefinedInterval(low, high));
  };
  EXPECT_EQ(text(.0308, .0240, .0376), "higher by .031 [.024, .038]");
  EXPECT_EQ(text(-.0434, -.0490, -.0379), "lower by .043 [.038, .049]");
  EXPECT_EQ(text(.003, -.004, .010), "+.003 [−.004, +.010]");
  EXPECT_EQ(text(.05, 0, .1), "+.05 [.00, +.10]");
  EXPECT_EQ(DirectedWithInterval(Defined(.5), NoInterval(Undefined::kTooFewPairs)), "+.500");
}

TEST(SettingNameTest, PutsTheAxisBeforeABareValue) {
  EXPECT_EQ(SettingName({}, {}), "base");
  EXPECT_EQ(SettingName({"norm"}, {"post"}), "post");
  EXPECT_EQ(SettingName({"lr"}, {"0.01"}), "lr .01");
  EXPECT_EQ(SettingName({"norm", "residual", "width"}, {"post", "false", "64"}),
            "post, residual false, width 64");
  EXPECT_EQ(SettingName({"norm"}, {"none"}), "none");
  EXPECT_EQ(SettingMark({"lr"}, {"0.01"}), "lr .01");
  EXPECT_EQ(SettingMark({"norm", "residual", "lr"}, {"post", "false", "0.01"}), "post/false/.01");
}

TEST(ShownValueTest, LeavesOutTheZeroOfAFraction) {
  EXPECT_EQ(ShownValue("0.004"), ".004");
  EXPECT_EQ(ShownValue("-0.5"), "−.5");
  EXPECT_EQ(ShownValue("1e-3"), "1e-3");
  EXPECT_EQ(ShownValue("10"), "10");
  EXPECT_EQ(ShownValue("0.1-warm"), "0.1-warm") << "a label that is no number";
  EXPECT_EQ(ShownValue("-post"), "-post");
  EXPECT_EQ(ShownValues({"0.004", "64"}), ".004, 64");
}

TEST(PlainTest, HasNoLeadingZeroAndNoSignOnZero) {
  EXPECT_EQ(Plain(2.4371, 3), "2.437");
  EXPECT_EQ(Plain(.0314, 3), ".031");
  EXPECT_EQ(Plain(-.5, 1), "−.5");
  EXPECT_EQ(Plain(-.0001, 2), ".00");
  EXPECT_EQ(Plain(0, 0), "0");
  EXPECT_EQ(Signed(0, 2), ".00");
}

TEST(PTextTest, NeverRoundsOntoTheThreshold) {
  EXPECT_EQ(PText(.031), "p = .031");
  EXPECT_EQ(PText(.001), "p = .001");
  EXPECT_EQ(PText(.00098), "p < .001");
  EXPECT_EQ(PText(.0004), "p < .001");
  EXPECT_EQ(PText(.0499), "p = .0499");
  EXPECT_EQ(PText(.050001), "p = .050001");
  EXPECT_EQ(PText(.05), "p = .050");
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
