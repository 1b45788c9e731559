// Tests statistics of one sample and of p values: oracles to 1e-9, and undefined results.
#include "server/report/compare/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {
namespace {

std::vector<double> OracleDifferences() { return OracleR(81, 10, .03, .05); }

TEST(OracleStreamTest, EqualsTheDocumentedStream) {
  const std::vector<double> r = OracleR(1, 3);
  EXPECT_NEAR(r[0], .1331231503, 1e-10);
  EXPECT_NEAR(r[1], .4915635145, 1e-10);
  EXPECT_NEAR(r[2], .9420055072, 1e-10);
}

TEST(CompensatedSumTest, KeepsWhatALargeTermWouldSwallow) {
  CompensatedSum sum;
  for (const double term : {1.0, 1e100, 1.0, -1e100}) sum.Add(term);
  EXPECT_EQ(sum.Total(), 2);
}

TEST(CompensatedSumTest, ForgetsNothingOverAMillionTerms) {
  CompensatedSum sum;
  for (int i = 0; i < 1000000; ++i) sum.Add(0.1);
  EXPECT_EQ(sum.Total(), 100000.00000000000555);  // a million times the double nearest to 0.1
}

TEST(CompensatedSumTest, MergesWithTheErrorsOfBoth) {
  CompensatedSum left, right;
  left.Add(1e100);
  left.Add(1);
  right.Add(-1e100);
  right.Add(1);
  left.Add(right);
  EXPECT_EQ(left.Total(), 2);
}

TEST(SummarizeTest, EqualsTheOracle) {
  const Summary summary = Summarize(OracleDifferences());
  EXPECT_EQ(summary.n, 10u);
  EXPECT_NEAR(summary.mean.value, .02348341928, kTolerance);
  EXPECT_NEAR(summary.deviation.value, .02766999982, kTolerance);
  EXPECT_NEAR(summary.interval.low, .003689493818, kTolerance);
  EXPECT_NEAR(summary.interval.high, .04327734474, kTolerance);
}

TEST(SummarizeTest, SaysWhyANumberIsMissing) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Summarize({}).mean.undefined, Undefined::kTooFewRuns);
  const Summary one = Summarize({2.5});
  EXPECT_EQ(one.mean.value, 2.5);
  EXPECT_EQ(one.deviation.undefined, Undefined::kTooFewRuns);
  EXPECT_EQ(one.interval.undefined, Undefined::kTooFewRuns);
  const Summary equal = Summarize({2.5, 2.5, 2.5});
  EXPECT_EQ(equal.mean.value, 2.5);
  EXPECT_EQ(equal.interval.undefined, Undefined::kZeroVariance);
  for (const double bad : {inf, -inf, std::nan("")}) {
    const Summary summary = Summarize({1, bad, 2});
    EXPECT_EQ(summary.mean.undefined, Undefined::kNonFinite);
    EXPECT_TRUE(std::isnan(summary.mean.value));
    EXPECT_EQ(summary.deviation.undefined, Undefined::kNonFinite);
    EXPECT_EQ(summary.interval.undefined, Undefined::kNonFinite);
  }
  EXPECT_EQ(Summarize({1e308, 1e308}).mean.undefined, Undefined::kNonFinite);
  EXPECT_EQ(Summarize({1e200, -1e200}).deviation.undefined, Undefined::kNonFinite);
}

TEST(StandardDeviationTest, TakesRoundingForNoSpread) {
  const double next = std::nextafter(2.5, 3);
  EXPECT_EQ(StandardDeviation({2.5, next, 2.5}).undefined, Undefined::kZeroVariance);
  EXPECT_TRUE(StandardDeviation({2.5, 2.5 + 1e-12, 2.5}).defined());
  // Differences of numbers near 100 that are equal up to the last bit of those.
  EXPECT_EQ(StandardDeviation({.1, .1 + 1e-14, .1}, 100).undefined, Undefined::kZeroVariance);
  EXPECT_TRUE(StandardDeviation({.1, .1 + 1e-14, .1}).defined());
}

TEST(StandardDeviationTest, SurvivesALargeOffset) {
  EXPECT_NEAR(StandardDeviation({1e9 + 1, 1e9 + 2, 1e9 + 3}).value, 1, kTolerance);
}

TEST(StudentTest, QuantilesEqualTheOracle) {
  EXPECT_NEAR(StudentQuantile(.975, 4), 2.776445105, kTolerance);
  EXPECT_NEAR(StudentQuantile(.975, 7), 2.364624252, kTolerance);
  EXPECT_NEAR(StudentQuantile(.975, 9), 2.262157163, kTolerance);
  EXPECT_NEAR(StudentQuantile(.975, 11), 2.20098516, kTolerance);
}

TEST(HedgesFactorTest, IsExactNotApproximate) {
  EXPECT_NEAR(HedgesFactor(9), .9138748918, kTolerance);
  EXPECT_GT(std::abs(HedgesFactor(9) - (1 - 3 / (4 * 9. - 1))), 1e-4);
  EXPECT_EQ(HedgesFactor(1), 0);
  EXPECT_NEAR(HedgesFactor(2), std::sqrt(1 / std::acos(-1.0)), kTolerance);  // Γ(1)/Γ(1/2)
  EXPECT_NEAR(HedgesFactor(1e6), 1 - 3 / (4e6 - 1), kTolerance);
}

TEST(HolmAdjustTest, EqualsTheOracle) {
  std::vector<Number> p;
  for (const double value : {.012, .03, .04, .001, .2}) p.push_back(Defined(value));
  const std::vector<Number> adjusted = HolmAdjust(p);
  const double expected[] = {.048, .09, .09, .005, .2};
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(adjusted[i].value, expected[i], kTolerance) << i;
}

TEST(HolmAdjustTest, CountsAnUndefinedPInTheFamily) {
  const std::vector<Number> adjusted =
      HolmAdjust({Defined(.01), NoNumber(Undefined::kTooFewPairs), Defined(.02)});
  EXPECT_NEAR(adjusted[0].value, .03, kTolerance);
  EXPECT_EQ(adjusted[1].undefined, Undefined::kTooFewPairs);
  EXPECT_NEAR(adjusted[2].value, .04, kTolerance);
  EXPECT_TRUE(HolmAdjust({}).empty());
}

TEST(HolmAdjustTest, KeepsTheOrderAndNeverLowersAP) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<Number> p;
    // Coarse, so that there are ties.
    for (const double u : OracleU(seed, 1 + seed % 9))
      p.push_back(Defined(std::floor(u * 20) / 20));
    const std::vector<Number> adjusted = HolmAdjust(p);
    for (size_t i = 0; i < p.size(); ++i) {
      EXPECT_GE(adjusted[i].value, p[i].value);
      EXPECT_LE(adjusted[i].value, 1);
      for (size_t j = 0; j < p.size(); ++j) {
        if (p[i].value < p[j].value) {
          EXPECT_LE(adjusted[i].value, adjusted[j].value);
        }
        if (p[i].value == p[j].value) {
          EXPECT_EQ(adjusted[i].value, adjusted[j].value);
        }
      }
    }
  }
}

TEST(SignTestTest, IsExact) {
  EXPECT_NEAR(SignTest(0, 12).value, 2 * std::pow(.5, 12), 1e-15);
  EXPECT_NEAR(SignTest(12, 0).value, 2 * std::pow(.5, 12), 1e-15);
  EXPECT_NEAR(SignTest(1, 5).value, 2 * 7 / 64., 1e-15);
  EXPECT_EQ(SignTest(3, 3).value, 1);
  EXPECT_EQ(SignTest(0, 0).undefined, Undefined::kTooFewPairs);
}

TEST(LeastSeedsForSignFlipTest, FollowsTheLeastPPossible) {
  EXPECT_EQ(LeastSeedsForSignFlip(1), 6u);
  for (size_t family = 1; family < 300; ++family) {
    const double bound = 1 + std::log2(20. * static_cast<double>(family));
    EXPECT_EQ(LeastSeedsForSignFlip(family), static_cast<size_t>(std::floor(bound)) + 1) << family;
  }
}

TEST(CorrelationTest, NeedsThreePointsAndSpread) {
  EXPECT_EQ(Correlation({1, 2}, {3, 5}).undefined, Undefined::kTooFewRuns);
  EXPECT_EQ(Correlation({1, 1, 1}, {3, 5, 6}).undefined, Undefined::kZeroVariance);
  EXPECT_EQ(Correlation({1, 2, 3}, {3, std::nan(""), 6}).undefined, Undefined::kNonFinite);
  EXPECT_NEAR(Correlation({1, 2, 3}, {6, 4, 2}).value, -1, kTolerance);
}

TEST(SortedQuantileTest, InterpolatesBetweenOrderStatistics) {
  EXPECT_EQ(SortedQuantile({1, 2, 4}, 0), 1);
  EXPECT_EQ(SortedQuantile({1, 2, 4}, .5), 2);
  EXPECT_EQ(SortedQuantile({1, 2, 4}, .75), 3);
  EXPECT_EQ(SortedQuantile({1, 2, 4}, 1), 4);
  EXPECT_EQ(SortedQuantile({7}, .3), 7);
}

TEST(UndefinedNameTest, NamesEachReasonOnce) {
  EXPECT_EQ(UndefinedName(Undefined::kNo), "");
  std::vector<std::string> names;
  for (int i = 1; i <= static_cast<int>(Undefined::kScoredDifferently); ++i) {
    names.emplace_back(UndefinedName(static_cast<Undefined>(i)));
    EXPECT_NE(names.back(), "");
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace ablate::report
