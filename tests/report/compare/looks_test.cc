// Tests repeated looks: reference values of simulate_looks.py, and by enumeration of all
// patterns of signs that E is fair and the error holds for all looks together.
#include "server/report/compare/looks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "server/report/compare/statistics.h"
#include "tests/report/compare/noise.h"

namespace ablate::report {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Looks LookForHigher(const std::vector<double>& differences) {
  return LookAtEachPair(differences, Better::kHigher);
}

// `simulate_looks.py reference` prints these.
TEST(LooksTest, AreThePythonScripts) {
  struct Example {
    std::vector<double> differences;
    double p, p_better, p_worse, log_better, log_worse;
  };
  for (const Example& example : std::vector<Example>{{{.5, -.25, 1, 2, 0, .125, -.5, 1.5, .75, 1},
                                                      .416155450602073,
                                                      .208458330636589,
                                                      1,
                                                      1.56801611077849,
                                                      -4.73588788387889},
                                                     {{1, 1, 1, 1, 1, 1},
                                                      .0480922484086219,
                                                      .0240534994226284,
                                                      1,
                                                      3.72747478687696,
                                                      -4.36212881576376},
                                                     {{3e-7, -1e-7, 2e-7, 5e-7},
                                                      .815150222782933,
                                                      .413583463573204,
                                                      1,
                                                      .882895938276752,
                                                      -3.33417876831023},
                                                     {{1, -2, 4, 8, 16, 32, 64},
                                                      .490902564132907,
                                                      .245598263165458,
                                                      1,
                                                      1.40405815453603,
                                                      -6.01649160795198}}) {
    const Looks looks = LookForHigher(example.differences);
    EXPECT_NEAR(looks.p, example.p, 1e-13);
    EXPECT_NEAR(looks.p_better, example.p_better, 1e-13);
    EXPECT_NEAR(looks.p_worse, example.p_worse, 1e-13);
    EXPECT_NEAR(looks.LogBetter(), example.log_better, 1e-12);
    EXPECT_NEAR(looks.LogWorse(), example.log_worse, 1e-12);
  }
}

TEST(LooksTest, AreOfOneForNoPairsAndTies) {
  for (const std::vector<double>& none : {std::vector<double>{}, {0, 0, 0}}) {
    const Looks looks = LookForHigher(none);
    EXPECT_EQ(looks.p, 1);
    EXPECT_EQ(looks.p_better, 1);
    EXPECT_NEAR(looks.LogBetter(), 0, 1e-15);
    EXPECT_NEAR(looks.LogEither(), 0, 1e-15);
  }
}

// One pair: x is 1 whatever its size, and E is the mean of 2/(1 + exp(∓2 bet)).
TEST(LooksTest, HaveTheClosedFormForOnePair) {
  for (const double size : {1e-300, .1, 1e300}) {
    const Looks looks = LookAtEachPair({-size}, Better::kLower);
    const double expected = .1 * 2 / (1 + std::exp(-.6)) + .45 * 2 / (1 + std::exp(-2.)) +
                            .45 * 2 / (1 + std::exp(-5.));
    EXPECT_NEAR(looks.LogBetter(), std::log(expected), 1e-14);
    EXPECT_NEAR(looks.LogWorse(), std::log(2 - expected), 1e-14);
    EXPECT_NEAR(looks.p_better, 1 / expected, 1e-14);
    EXPECT_EQ(looks.p, 1) << "both directions together have won nothing";
  }
}

TEST(LooksTest, DependOnNeitherUnitNorNameOfTheDirection) {
  const std::vector<double> differences = {.3, -.1, .4, 0, 1.2, -.6, .7};
  const Looks looks = LookForHigher(differences);
  for (const double unit : {1e-200, 3., 1e200}) {
    std::vector<double> others = differences;
    for (double& other : others) other *= -unit;
    const Looks lower = LookAtEachPair(others, Better::kLower), mirrored = LookForHigher(others);
    EXPECT_NEAR(lower.p_better, looks.p_better, 1e-12);
    EXPECT_NEAR(lower.p_worse, looks.p_worse, 1e-12);
    EXPECT_NEAR(mirrored.p_better, looks.p_worse, 1e-12);
    EXPECT_NEAR(mirrored.p, looks.p, 1e-12);
  }
}

// The largest E counts, so that no later pair takes a decision back.
TEST(LooksTest, NeverTakeAVerdictBack) {
  std::vector<double> differences(12, 1);
  const double then = LookForHigher(differences).p;
  for (int i = 0; i < 20; ++i) differences.push_back(i % 3 - 1.5);
  const Looks now = LookForHigher(differences);
  EXPECT_LE(now.p, then);
  EXPECT_LT(now.LogEither(), -std::log(now.p));
}

TEST(LooksTest, BetOneScaleOnADivergedRun) {
  const Looks looks = LookForHigher({2, kInfinity, 2}), equal = LookForHigher({2, 2, 2});
  EXPECT_EQ(looks.scaled, 2u);
  EXPECT_NEAR(looks.LogBetter(), equal.LogBetter(), 1e-14);
  EXPECT_NEAR(LookForHigher({-kInfinity}).LogWorse(), LookForHigher({1}).LogBetter(), 1e-14);
}

TEST(LooksTest, ReachTheLevelWithAsFewEqualPairsAsTheSignFlipTest) {
  EXPECT_GT(LookForHigher(std::vector<double>(5, 1)).p, kAlpha);
  EXPECT_LE(LookForHigher(std::vector<double>(6, 1)).p, kAlpha);
  EXPECT_LT(LookForHigher(std::vector<double>(10000, 1)).p, 1e-300);
}

// Under exchangeability all patterns of signs of the given sizes are equally probable.
TEST(LooksTest, AreFairForAnySizes) {
  const std::vector<std::vector<double>> cases = {
      {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
      {5, .1, 2, 2, .3, 8, 1, 0, .01, 4, 3, 1},
      {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048},
      {2048, 1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1},
      {0, 0, 1, 0, 2, kInfinity, 0, 1, kInfinity, 3, 1, 1}};
  for (const std::vector<double>& sizes : cases) {
    const unsigned patterns = 1u << sizes.size();
    double better = 0, either = 0;
    std::vector<double> p, p_better;
    for (unsigned pattern = 0; pattern < patterns; ++pattern) {
      std::vector<double> differences = sizes;
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (pattern >> i & 1) differences[i] *= -1;
      }
      const Looks looks = LookForHigher(differences);
      better += std::exp(looks.LogBetter()) / patterns;
      either += std::exp(looks.LogEither()) / patterns;
      p.push_back(looks.p);
      p_better.push_back(looks.p_better);
    }
    EXPECT_NEAR(better, 1, 1e-12);
    EXPECT_NEAR(either, 1, 1e-12);
    for (const double level : {.3, .05, .01, .001}) {
      for (const std::vector<double>& of : {p, p_better}) {
        const auto found =
            std::count_if(of.begin(), of.end(), [level](double one) { return one <= level; });
        EXPECT_LE(static_cast<double>(found) / patterns, level);
      }
    }
  }
}

// simulate_looks.py: 0.58 of 10,000 experiments.
TEST(LooksTest, FindAnEffectOfOneDeviationWithinTwelvePairs) {
  constexpr int kExperiments = 2000;
  Noise noise(1);
  double found = 0;
  for (int i = 0; i < kExperiments; ++i) {
    std::vector<double> differences(12);
    for (double& difference : differences) difference = 1 + noise();
    found += LookForHigher(differences).p <= kAlpha;
  }
  EXPECT_NEAR(found / kExperiments, .575, .035);
}

TEST(MorePairsTest, AreReachedByDifferencesThatGrowFast) {
  for (const std::vector<double>& start :
       {std::vector<double>{}, {1}, {1, 1, 1}, {-1, -2, .5}, {1, -1, 0, 2, -3, 1, 0, 0, 1, -1}}) {
    for (const double level : {.05, .01, LevelOfChange(1, 100, .05)}) {
      const size_t more = MorePairsToDecide(LookForHigher(start), Sides::kBetter, level);
      std::vector<double> differences = start;
      double size = 1e6;
      for (size_t i = 0; i < more; ++i) {
        EXPECT_GT(LookForHigher(differences).p_better, level);
        differences.push_back(size *= 1e6);
      }
      EXPECT_LE(LookForHigher(differences).p_better, level);
    }
  }
}

TEST(MorePairsTest, AreCountedInTheNearerDirection) {
  EXPECT_EQ(MorePairsToDecide(LookForHigher({}), Sides::kEither, .05), 6u);
  EXPECT_EQ(MorePairsToDecide(LookForHigher({-1, -1, -1, -1}), Sides::kEither, .05), 2u);
  EXPECT_GT(MorePairsToDecide(LookForHigher({-1, -1, -1, -1}), Sides::kBetter, .05), 6u);
  EXPECT_EQ(MorePairsToDecide(LookForHigher(std::vector<double>(8, 1)), Sides::kEither, .05), 0u);
}

TEST(MorePairsTest, AreThoseOfTheSignFlipTest) {
  EXPECT_EQ(FewestPairsOfSignFlip(.05), 6u);
  EXPECT_EQ(FewestPairsOfSignFlip(.5), 2u);
  for (size_t family = 1; family < 40; ++family) {
    EXPECT_EQ(FewestPairsOfSignFlip(kAlpha / static_cast<double>(family)),
              LeastSeedsForSignFlip(family));
  }
}

TEST(SessionTest, SpendsItsLevelInAnEndlessSession) {
  EXPECT_NEAR(LevelOfChange(1, 100, .05), .000495049504950495, 1e-17);
  EXPECT_NEAR(LevelOfChange(50, 100, .05), .000223713646532438, 1e-17);
  EXPECT_NEAR(LevelOfChange(200, 100, .05), 5.57413600891862e-05, 1e-17);
  for (const size_t planned : {1, 20, 100}) {
    double spent = 0;
    for (size_t j = 1; j <= 1000; ++j) spent += LevelOfChange(j, planned, .05);
    EXPECT_NEAR(spent, .05 * 1000 / (1000 + static_cast<double>(planned)), 1e-12);
  }
}

TEST(SessionTest, DropsAChangeThatLosesItsFirstPair) {
  EXPECT_FALSE(IsFutile(LookForHigher({}), 0));
  EXPECT_FALSE(IsFutile(LookForHigher({1}), 1));
  EXPECT_TRUE(IsFutile(LookForHigher({-1}), 1));
  EXPECT_FALSE(IsFutile(LookForHigher({0}), 1));
  EXPECT_TRUE(IsFutile(LookForHigher({1}), kMostPairs));
}

TEST(SelectOnEarlierSeedsTest, SelectsTheBestMeanOfEarlierSeeds) {
  const std::vector<std::vector<double>> row = {{3, 1}, {3, 1}, {3, kInfinity}, {3, 2}};
  const std::vector<std::vector<double>> baseline = {{2, 4}, {2, 4}, {2, 4}, {kInfinity, 4}};
  const TunedLooks looks = SelectOnEarlierSeeds(row, baseline);
  // The row selects candidates 0, 1, 1 and, after the diverged run, 0. The baseline selects 0.
  EXPECT_EQ(looks.selected, (std::vector<double>{1, -1, kInfinity, -kInfinity}));
  // The means of 1 and 1; 1 and −3; 1 and ∞; −∞ and −∞.
  EXPECT_EQ(looks.exchangeable, (std::vector<double>{1, -1, kInfinity, -kInfinity}));
}

// Under exchangeability all patterns in which the settings exchange their runs of some seeds are
// equally probable, whatever the candidates' means.
TEST(SelectOnEarlierSeedsTest, IsExactForExchangeableSettings) {
  constexpr size_t kSeeds = 11;
  Noise noise(2);
  for (const double gap : {0., .5, 3.}) {
    std::vector<std::vector<double>> row(kSeeds), baseline(kSeeds);
    for (size_t seed = 0; seed < kSeeds; ++seed) {
      for (int candidate = 0; candidate < 3; ++candidate) {
        row[seed].push_back(noise() + gap * candidate);
        baseline[seed].push_back(noise() + gap * std::abs(candidate - 1));
      }
    }
    row[4][0] = baseline[7][1] = kInfinity;
    double mean = 0, found = 0;
    for (unsigned pattern = 0; pattern < 1u << kSeeds; ++pattern) {
      std::vector<std::vector<double>> one = row, other = baseline;
      for (size_t seed = 0; seed < kSeeds; ++seed) {
        if (pattern >> seed & 1) std::swap(one[seed], other[seed]);
      }
      const Looks looks =
          LookAtEachPair(SelectOnEarlierSeeds(one, other).exchangeable, Better::kLower);
      mean += std::exp(looks.LogEither()) / (1u << kSeeds);
      found += looks.p <= .05;
    }
    EXPECT_NEAR(mean, 1, 1e-12);
    EXPECT_LE(found, .05 * (1u << kSeeds));
  }
}

}  // namespace
}  // namespace ablate::report
