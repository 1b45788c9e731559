// Tests the permutation test with reselection, against a literal implementation and its error
// rates.
#include "server/report/compare/reselection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server/report/compare/paired.h"
#include "tests/report/compare/noise.h"
#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {
namespace {

Trial Converged(double value) { return {Trial::State::kConverged, value}; }
Trial Diverged() { return {Trial::State::kDiverged, 0}; }

struct Shape {
  size_t candidates = 5, seeds = 8;
  double correlation = 0;  // of a setting's noise between candidates
  double gap = 0;          // between neighbouring candidates' means
  double diverging = 0, missing = 0;
};

std::vector<Trial> DrawSetting(const Shape& shape, const std::vector<double>& of_seed, double shift,
                               Noise* noise) {
  std::vector<double> shared(shape.seeds);
  for (double& value : shared) value = (*noise)();
  std::vector<Trial> trials;
  for (size_t candidate = 0; candidate < shape.candidates; ++candidate) {
    for (size_t seed = 0; seed < shape.seeds; ++seed) {
      const double own = std::sqrt(shape.correlation) * shared[seed] +
                         std::sqrt(1 - shape.correlation) * (*noise)();
      const double draw = noise->Uniform();
      trials.push_back(draw < shape.diverging ? Diverged()
                       : draw < shape.diverging + shape.missing
                           ? Trial()
                           : Converged(own + of_seed[seed] + shift + shape.gap * candidate));
    }
  }
  return trials;
}

TunedPair DrawPair(const Shape& shape, double effect, Noise* noise) {
  std::vector<double> of_seed(shape.seeds);
  for (double& value : of_seed) value = (*noise)();
  TunedPair pair;
  pair.candidates = shape.candidates;
  pair.seeds = shape.seeds;
  pair.setting = DrawSetting(shape, of_seed, -effect, noise);
  pair.baseline = DrawSetting(shape, of_seed, 0, noise);
  return pair;
}

struct Read {
  size_t pairs = 0, converged = 0;
  double mean = 0, wins = 0;
  double distance = 0;  // √u with t² = (n−1)u/(n−u)
};

// Returns the differences and the wins at the values that LeaveOneSeedOut selects.
Read ReadAloud(const TunedPair& pair, Better better) {
  const auto own = LeaveOneSeedOut(pair.setting, pair.candidates, pair.seeds, better).picks;
  const auto other = LeaveOneSeedOut(pair.baseline, pair.candidates, pair.seeds, better).picks;
  Read read;
  double squares = 0;
  for (size_t seed = 0; seed < pair.seeds; ++seed) {
    if (!own[seed].has_value() || !other[seed].has_value()) continue;
    const Trial a = pair.setting[*own[seed] * pair.seeds + seed];
    const Trial b = pair.baseline[*other[seed] * pair.seeds + seed];
    if (a.state == Trial::State::kNone || b.state == Trial::State::kNone) continue;
    ++read.pairs;
    const double infinity = std::numeric_limits<double>::infinity();
    const double sign = better == Better::kHigher ? -1 : 1;
    const double x = a.state == Trial::State::kDiverged ? infinity : sign * a.value;
    const double y = b.state == Trial::State::kDiverged ? infinity : sign * b.value;
    read.wins += x < y ? 1 : x > y ? -1 : 0;
    if (std::isinf(x) || std::isinf(y)) continue;
    ++read.converged;
    read.mean += a.value - b.value;
    squares += (a.value - b.value) * (a.value - b.value);
  }
  if (squares > 0) read.distance = std::abs(read.mean) / std::sqrt(squares);
  if (read.converged > 0) read.mean /= static_cast<double>(read.converged);
  return read;
}

bool HasResult(const std::vector<Trial>& trials, const TunedPair& pair, size_t seed) {
  for (size_t candidate = 0; candidate < pair.candidates; ++candidate) {
    if (trials[candidate * pair.seeds + seed].state != Trial::State::kNone) return true;
  }
  return false;
}

// Enumerates all patterns of the seeds on which both have results, selecting by LeaveOneSeedOut
// itself. `shift` is subtracted from the setting's values before.
ReselectionResult BruteForce(TunedPair pair, Better better, double shift = 0) {
  for (Trial& trial : pair.setting) trial.value -= shift;
  const Read seen = ReadAloud(pair, better);
  std::vector<size_t> flippable;
  for (size_t seed = 0; seed < pair.seeds; ++seed) {
    if (HasResult(pair.setting, pair, seed) && HasResult(pair.baseline, pair, seed)) {
      flippable.push_back(seed);
    }
  }
  double far = 0, far_wins = 0;
  const size_t patterns = size_t{1} << flippable.size();
  for (size_t pattern = 0; pattern < patterns; ++pattern) {
    TunedPair flipped = pair;
    for (size_t bit = 0; bit < flippable.size(); ++bit) {
      if ((pattern >> bit & 1) == 0) continue;
      for (size_t candidate = 0; candidate < pair.candidates; ++candidate) {
        const size_t at = candidate * pair.seeds + flippable[bit];
        std::swap(flipped.setting[at], flipped.baseline[at]);
      }
    }
    const Read read = ReadAloud(flipped, better);
    far += read.converged == 0 || read.distance >= seen.distance - 1e-11;
    far_wins += std::abs(read.wins) >= std::abs(seen.wins);
  }
  ReselectionResult result;
  // The observed pattern and its opposite count as far in any case.
  result.p_difference = Defined(std::max(far, 2.) / static_cast<double>(patterns));
  result.p_wins = Defined(std::max(far_wins, 2.) / static_cast<double>(patterns));
  return result;
}

TEST(ReselectionTest, IsTheRuleReadAloud) {
  Noise noise(5);
  for (const Shape& shape : {Shape{1, 6}, Shape{3, 7}, Shape{5, 5, .8}, Shape{4, 7, 0, .5},
                             Shape{3, 7, 0, 0, .2, 0}, Shape{3, 7, 0, 0, .1, .3}}) {
    for (int repetition = 0; repetition < 6; ++repetition) {
      const TunedPair pair = DrawPair(shape, .5 * repetition, &noise);
      for (const Better better : {Better::kLower, Better::kHigher}) {
        const ReselectionResult result = TestByReselection(pair, better);
        const ReselectionResult read = BruteForce(pair, better);
        const Read seen = ReadAloud(pair, better);
        EXPECT_EQ(result.p_wins.defined(), seen.pairs >= 2);
        EXPECT_EQ(result.p_difference.defined(), seen.converged >= 2);
        if (seen.pairs < 2) continue;
        EXPECT_TRUE(result.exact);
        EXPECT_EQ(result.p_wins.value, read.p_wins.value);
        if (seen.converged < 2) continue;
        EXPECT_EQ(result.p_difference.value, read.p_difference.value);
      }
    }
  }
}

TEST(ReselectionTest, IsTheSignFlipTestWhereThereIsOneCandidate) {
  for (const size_t n : {2, 6, 11}) {
    const std::vector<double> a = OracleR(1, n, 2, .1), b = OracleR(2, n, 2.02, .1);
    TunedPair pair{1, n, {}, {}};
    std::vector<double> differences;
    for (size_t i = 0; i < n; ++i) {
      pair.setting.push_back(Converged(a[i]));
      pair.baseline.push_back(Converged(b[i]));
      differences.push_back(a[i] - b[i]);
    }
    EXPECT_EQ(TestByReselection(pair, Better::kLower).p_difference.value,
              SignFlipTest(differences).p.value);
  }
}

TEST(ReselectionTest, TakesEqualDifferencesForTheFarthest) {
  TunedPair pair{2, 6, {}, {}};
  for (const double value : {1., 2.}) {
    for (int seed = 0; seed < 6; ++seed) {
      pair.setting.push_back(Converged(value + seed));
      pair.baseline.push_back(Converged(value + seed + .5));
    }
  }
  const ReselectionResult equal = TestByReselection(pair, Better::kLower);
  EXPECT_EQ(equal.p_difference.value, 1. / 32);
  EXPECT_EQ(equal.interval.undefined, Undefined::kZeroVariance);
  pair.baseline = pair.setting;
  EXPECT_EQ(TestByReselection(pair, Better::kLower).p_difference.value, 1);
}

TEST(ReselectionTest, IsAsSureInAnyUnit) {
  Noise noise(17);
  const TunedPair pair = DrawPair({3, 8, .8, .5}, 1, &noise);
  const ReselectionResult result = TestByReselection(pair, Better::kLower);
  for (const double unit : {0x1p-500, 0x1p500}) {
    TunedPair scaled = pair;
    for (auto* trials : {&scaled.setting, &scaled.baseline}) {
      for (Trial& trial : *trials) trial.value *= unit;
    }
    const ReselectionResult same = TestByReselection(scaled, Better::kLower);
    EXPECT_EQ(same.p_difference.value, result.p_difference.value);
    EXPECT_DOUBLE_EQ(same.interval.low, result.interval.low * unit);
    EXPECT_DOUBLE_EQ(same.interval.high, result.interval.high * unit);
  }
}

TEST(ReselectionTest, KeepsEveryShiftThatTheTestDoesNotReject) {
  Noise noise(7);
  for (const Better better : {Better::kLower, Better::kHigher}) {
    for (const double correlation : {0., .8}) {
      const TunedPair pair = DrawPair({4, 7, correlation, .2}, .5, &noise);
      const ReselectionResult result = TestByReselection(pair, better);
      ASSERT_TRUE(result.interval.defined());
      const double width = result.interval.high - result.interval.low;
      // Between the ends some may be rejected, but not next to them.
      for (const double at : {-2., -.5, -.1, -1e-6, 1e-6, .5, 1 - 1e-6, 1 + 1e-6, 1.1, 1.5, 3.}) {
        const double shift = result.interval.low + at * width;
        const double p = BruteForce(pair, better, shift).p_difference.value;
        EXPECT_EQ(p > kAlpha, at > 0 && at < 1) << "at " << at << " of it p = " << p;
      }
    }
  }
}

TEST(ReselectionTest, ShowsEquivalenceWhereTheShiftedTestsReject) {
  Noise noise(13);
  const TunedPair pair = DrawPair({3, 8, .9}, 0, &noise);
  ReselectionOptions options;
  EXPECT_EQ(TestByReselection(pair, Better::kLower).p_equivalence.undefined,
            Undefined::kNotRecorded);
  for (const double margin : {.1, .5, 1., 2., 4.}) {
    options.margin = margin;
    const ReselectionResult result = TestByReselection(pair, Better::kLower, options);
    const double beyond = std::max(BruteForce(pair, Better::kLower, margin).p_difference.value,
                                   BruteForce(pair, Better::kLower, -margin).p_difference.value);
    const bool inside = std::abs(ReadAloud(pair, Better::kLower).mean) < margin;
    EXPECT_EQ(result.p_equivalence.value, inside ? beyond / 2 : 1) << margin;
  }
}

TEST(ReselectionTest, ChoosesByWhatElseItIsGiven) {
  Noise noise(15);
  TunedPair pair = DrawPair({3, 8}, .5, &noise);
  const ReselectionResult alone = TestByReselection(pair, Better::kLower);
  pair.setting_choices = pair.setting;
  pair.baseline_choices = pair.baseline;
  const ReselectionResult same = TestByReselection(pair, Better::kLower);
  EXPECT_EQ(same.p_difference.value, alone.p_difference.value);
  EXPECT_EQ(same.interval.low, alone.interval.low);
  // If all are equal the first is taken: the plain test of its differences.
  std::vector<double> differences;
  for (size_t seed = 0; seed < pair.seeds; ++seed) {
    differences.push_back(pair.setting[seed].value - pair.baseline[seed].value);
  }
  for (auto* choices : {&pair.setting_choices, &pair.baseline_choices}) {
    for (Trial& trial : *choices) trial.value = 1;
  }
  EXPECT_EQ(TestByReselection(pair, Better::kLower).p_difference.value,
            SignFlipTest(differences).p.value);
}

TEST(ReselectionTest, HasNoIntervalBelowSixPairs) {
  Noise noise(9);
  const ReselectionResult five = TestByReselection(DrawPair({3, 5}, 4, &noise), Better::kLower);
  EXPECT_EQ(five.interval.undefined, Undefined::kTooFewPairs);
  EXPECT_GE(five.p_difference.value, 1. / 16);
  EXPECT_TRUE(TestByReselection(DrawPair({3, 6}, 4, &noise), Better::kLower).interval.defined());
}

TEST(ReselectionTest, AllowsNoSmallerPBecauseOfSeedsWithoutAPartner) {
  Noise noise(9);
  size_t smallest = 0;
  for (int repetition = 0; repetition < 40; ++repetition) {
    for (const size_t n : {5, 6}) {
      TunedPair pair = DrawPair({3, n + 2}, 4, &noise);
      for (size_t candidate = 0; candidate < 3; ++candidate) {
        for (const size_t seed : {n, n + 1}) pair.baseline[candidate * (n + 2) + seed] = {};
      }
      const ReselectionResult result = TestByReselection(pair, Better::kLower);
      const double least = std::pow(.5, n - 1);
      EXPECT_GE(result.p_difference.value, least);
      EXPECT_GE(result.p_wins.value, least);
      smallest += result.p_difference.value == least;
      EXPECT_EQ(result.interval.defined(), n == 6);
    }
  }
  EXPECT_GT(smallest, 40u);
}

TEST(ReselectionTest, DrawsPatternsWhereThereAreTooMany) {
  Noise noise(11);
  const TunedPair pair = DrawPair({3, 11}, .5, &noise);
  const ReselectionResult exact = TestByReselection(pair, Better::kLower);
  ReselectionOptions options;
  options.exact_up_to = 5;
  const ReselectionResult drawn = TestByReselection(pair, Better::kLower, options);
  EXPECT_FALSE(drawn.exact);
  EXPECT_NEAR(drawn.p_difference.value, exact.p_difference.value, .02);
  EXPECT_NEAR(drawn.interval.low, exact.interval.low, .1);
  EXPECT_NEAR(drawn.interval.high, exact.interval.high, .1);
  const TunedPair many = DrawPair({2, 90}, 0, &noise);
  EXPECT_FALSE(TestByReselection(many, Better::kLower).exact);
}

TEST(ReselectionTest, SaysWhyThereIsNone) {
  TunedPair pair{1, 2, {Converged(1), Trial()}, {Converged(2), Converged(3)}};
  EXPECT_EQ(TestByReselection(pair, Better::kLower).p_difference.undefined,
            Undefined::kTooFewPairs);
  pair.setting = {Converged(1e308), Converged(-1e308)};
  pair.baseline = {Converged(-1e308), Converged(1e308)};
  EXPECT_EQ(TestByReselection(pair, Better::kLower).p_difference.undefined, Undefined::kNonFinite);
  pair.setting = {Diverged(), Diverged()};
  pair.baseline = {Converged(1), Converged(2)};
  const ReselectionResult diverged = TestByReselection(pair, Better::kLower);
  EXPECT_EQ(diverged.p_difference.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(diverged.p_wins.value, .5);
  EXPECT_EQ(TestByReselection({}, Better::kLower).p_wins.undefined, Undefined::kTooFewPairs);
}

struct Rates {
  double rejected = 0;  // by the test
  double covered = 0;   // by its interval
  double by_t = 0;      // rejected by the t-test of the differences at fixed selections
};

Rates Simulate(const Shape& shape, double effect, int experiments) {
  Noise noise(shape.seeds * 1000 + shape.candidates);
  Rates rates;
  for (int i = 0; i < experiments; ++i) {
    const TunedPair pair = DrawPair(shape, effect, &noise);
    const ReselectionResult result = TestByReselection(pair, Better::kLower);
    rates.rejected += result.p_difference.value <= kAlpha;
    rates.covered += result.interval.low <= -effect && -effect <= result.interval.high;
    std::vector<double> a, b;
    const auto own = LeaveOneSeedOut(pair.setting, pair.candidates, pair.seeds, Better::kLower);
    const auto other = LeaveOneSeedOut(pair.baseline, pair.candidates, pair.seeds, Better::kLower);
    for (size_t seed = 0; seed < pair.seeds; ++seed) {
      a.push_back(pair.setting[*own.picks[seed] * pair.seeds + seed].value);
      b.push_back(pair.baseline[*other.picks[seed] * pair.seeds + seed].value);
    }
    rates.by_t += ComparePairs(a, b, 0).p_t.value <= kAlpha;
  }
  for (double* rate : {&rates.rejected, &rates.covered, &rates.by_t}) *rate /= experiments;
  return rates;
}

// The parameter is the number of experiments for a rate.
class ReselectionRatesTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Short, ReselectionRatesTest, ::testing::Values(100));
INSTANTIATE_TEST_SUITE_P(Long, ReselectionRatesTest, ::testing::Values(1000));

// Near ties among five candidates make a test without reselection reject too often.
TEST_P(ReselectionRatesTest, RejectsNoMoreThanItsShareUnderNoDifference) {
  const int experiments = GetParam();
  const double most = AtMost(kAlpha, experiments);
  for (const size_t seeds : {6, 8, 10}) {
    for (const Shape& shape :
         {Shape{5, seeds}, Shape{5, seeds, .8}, Shape{5, seeds, .8, 2}, Shape{1, seeds}}) {
      const Rates rates = Simulate(shape, 0, experiments);
      EXPECT_LE(rates.rejected, most) << seeds << " seeds, " << shape.candidates << " candidates";
      EXPECT_GE(rates.covered, 1 - most) << seeds << " seeds, " << shape.candidates;
    }
  }
  EXPECT_GT(Simulate({5, 8}, 0, experiments).by_t, .1) << "what the choice does to the t-test";
}

// A steep axis next to a flat one, whose best value is another: if the two exchange runs, the test
// keeps shifts as large as a step of the steep axis.
TEST(ReselectionTest, KeepsTheShiftsAroundTheMeanFromEightPairsOn) {
  const auto reaches_far = [](size_t seeds) {
    Noise noise(5);
    int far = 0;
    for (int i = 0; i < 50; ++i) {
      TunedPair pair = DrawPair({5, seeds}, 0, &noise);
      for (size_t at = 0; at < pair.setting.size(); ++at) {
        const auto candidate = static_cast<double>(at / seeds);
        pair.setting[at].value += 20 * std::abs(candidate - 1);
        pair.baseline[at].value += std::abs(candidate - 3);
      }
      const Interval interval = TestByReselection(pair, Better::kLower).interval;
      EXPECT_TRUE(interval.defined());
      far += interval.high - interval.low > 15;
    }
    return far;
  };
  EXPECT_GT(reaches_far(7), 10);
  EXPECT_LT(reaches_far(8), 3);
}

// Accuracies are whole numbers of right answers: with many ties an end of the interval is often 0.
TEST(ReselectionTest, EndsAtZeroWhereRoundingIsLeft) {
  Noise noise(6);
  int zeros = 0;
  for (int i = 0; i < 200; ++i) {
    TunedPair pair = DrawPair({2, 10}, 0, &noise);
    for (std::vector<Trial>* side : {&pair.setting, &pair.baseline}) {
      for (Trial& trial : *side) {
        const double level = trial.value > 1 ? 3 : trial.value > .5 ? 2 : 1;
        trial.value = (10 + level) / 30;
      }
    }
    const Interval interval = TestByReselection(pair, Better::kHigher).interval;
    if (!interval.defined()) continue;
    for (const double end : {interval.low, interval.high}) {
      EXPECT_TRUE(end == 0 || std::abs(end) > 1e-9) << end;
      zeros += end == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(zeros, 5);
}

TEST(ReselectionTest, CoversATrueDifference) {
  constexpr int kExperiments = 500;
  const double least = .95 - 2 * std::sqrt(.05 * .95 / kExperiments);
  EXPECT_GE(Simulate({5, 8}, 1, kExperiments).covered, least);
  EXPECT_GE(Simulate({5, 8, .8, .5}, 2, kExperiments).covered, least);
}

}  // namespace
}  // namespace ablate::report
