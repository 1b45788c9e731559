// Tests how often the verdict is wrong without a difference, and right with one. The noise is
// seeded: a rate beyond its bound is a fault of the rule, not bad luck. All experiments take
// minutes: `Long`, which `tests/run.sh --all` runs, has them all, `Short` a tenth.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/report/compare/decision.h"
#include "tests/report/compare/example_grid.h"
#include "tests/report/compare/noise.h"

namespace ablate::report {
namespace {

struct Design {
  size_t rows = 1;  // besides the baseline
  size_t seeds = 8;
  size_t learning_rates = 1;  // candidates of a tuned axis; 1: none is
  double correlation = 0;     // of a setting's noise between learning rates
  double gap = 0;             // between the means of neighbouring rates, in standard deviations
  double effect = 0;          // by which the first row is better, each at its best learning rate
  size_t apart = 0;  // rates by which the first row's best is beyond the others, the first rate
  size_t own = 0;    // rows are tried at so many rates only, the last ones; 0: at all
  bool disjoint = false;  // the baseline at the others only
  bool ceiling = false;   // losses are independent, rounded to 1/4, and 0 if below 1.5
  double steep = 0;       // by which the first row's gap is larger
  size_t best = 0;        // the others' best rate
  double noise = 1;       // of the first row, times the others'

  bool IsTried(size_t setting, size_t learning_rate) const {
    const bool is_own = learning_rate + own >= learning_rates;
    if (own == 0) return true;
    return setting > 0 ? is_own : !(disjoint && is_own);
  }
};

ComparisonInput Draw(const Design& design, Noise* noise) {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("setting", {})};
  if (design.learning_rates > 1) input.axes.push_back(MakeAxis("lr", {}, true));
  for (size_t learning_rate = 0; learning_rate < design.learning_rates && design.learning_rates > 1;
       ++learning_rate) {
    input.axes[1].labels.push_back(absl::StrCat(learning_rate));
  }
  std::vector<double> of_seed(design.seeds);
  for (double& value : of_seed) value = (*noise)();
  for (size_t setting = 0; setting <= design.rows; ++setting) {
    input.axes[0].labels.push_back(absl::StrCat("s", setting));
    const size_t best = design.best + (setting == 1 ? design.apart : 0);
    const double gap = design.gap + (setting == 1 ? design.steep : 0);
    std::vector<double> shared(design.seeds);
    for (double& value : shared) value = (*noise)();
    for (size_t learning_rate = 0; learning_rate < design.learning_rates; ++learning_rate) {
      for (size_t seed = 0; seed < design.seeds; ++seed) {
        const double own = (std::sqrt(design.correlation) * shared[seed] +
                            std::sqrt(1 - design.correlation) * (*noise)()) *
                           (setting == 1 ? design.noise : 1);
        if (!design.IsTried(setting, learning_rate)) continue;
        std::vector<std::string> labels = {absl::StrCat("s", setting)};
        if (design.learning_rates > 1) labels.push_back(absl::StrCat(learning_rate));
        const double away =
            static_cast<double>(std::max(learning_rate, best) - std::min(learning_rate, best));
        double loss = own + gap * away - (setting == 1 ? design.effect : 0);
        loss =
            design.ceiling ? std::max(0., std::round(4 * (loss - 1.5)) / 4) : loss + of_seed[seed];
        input.cells.push_back(MakeCell(labels, static_cast<uint32_t>(seed), loss));
      }
    }
  }
  return input;
}

// Fractions of experiments in which some row has at least the grade.
struct Rates {
  double established = 0, probable = 0;
  double first = 0;  // fraction in which the first row is established
};

Rates Simulate(const Design& design, int experiments) {
  Noise noise(1000 * design.seeds + 10 * design.rows + design.learning_rates);
  Rates rates;
  for (int i = 0; i < experiments; ++i) {
    const Comparison comparison = *Compare(Draw(design, &noise), {{}, 0});
    Grade best = Grade::kNoVerdict;
    for (const ComparisonRow& row : comparison.rows) {
      if (row.compared()) best = std::max(best, Decide(comparison, row).grade);
    }
    rates.established += best == Grade::kEstablished;
    rates.probable += best >= Grade::kProbable;
    rates.first += Decide(comparison, comparison.rows[1]).grade == Grade::kEstablished;
  }
  for (double* rate : {&rates.established, &rates.probable, &rates.first}) *rate /= experiments;
  return rates;
}

// The parameter divides the number of simulated experiments.
class ErrorRatesTest : public ::testing::TestWithParam<int> {
 protected:
  static bool IsShort() { return GetParam() > 1; }
  static int Share(int experiments) { return experiments / GetParam(); }
  // Returns how far a rate of few experiments may be off.
  static double Slack() { return IsShort() ? .15 : 0; }
};
INSTANTIATE_TEST_SUITE_P(Short, ErrorRatesTest, ::testing::Values(10));
INSTANTIATE_TEST_SUITE_P(Long, ErrorRatesTest, ::testing::Values(1));

TEST_P(ErrorRatesTest, FewExperimentsWithoutADifferenceEstablishOne) {
  const int experiments = Share(300);
  for (const size_t rows : {1, 2, 5, 11}) {
    for (const size_t seeds : {6, 8, 12}) {
      const Rates rates = Simulate({rows, seeds}, experiments);
      EXPECT_LE(rates.established, AtMost(kAlpha, experiments)) << rows << " rows, " << seeds;
      EXPECT_LE(rates.probable, AtMost(kAlpha, experiments)) << rows << " rows, " << seeds;
    }
  }
}

TEST_P(ErrorRatesTest, NorDoThoseThatTune) {
  const int experiments = Share(200);
  for (const Design& design :
       {Design{1, 8, 5}, Design{2, 6, 5}, Design{2, 8, 5}, Design{2, 8, 5, .8},
        Design{2, 8, 5, .8, 2}, Design{5, 8, 5, .8}, Design{11, 8, 5}, Design{2, 12, 5}}) {
    const Rates rates = Simulate(design, experiments);
    EXPECT_LE(rates.established, AtMost(kAlpha, experiments))
        << design.rows << " rows, " << design.seeds << " seeds, gap " << design.gap;
    EXPECT_LE(rates.probable, AtMost(kAlpha, experiments))
        << design.rows << " rows, " << design.seeds << " seeds, gap " << design.gap;
  }
}

TEST_P(ErrorRatesTest, ADifferenceIsFoundAsOftenAsForetold) {
  const int experiments = Share(800);
  for (const double effect : {1., 1.5, 2.}) {
    // A difference of two settings of unit noise has a deviation of √2.
    const double power = EstablishingPower(effect / std::sqrt(2), 10, 1);
    EXPECT_NEAR(Simulate({1, 10, 1, 0, 0, effect}, experiments).first, power, .05 + Slack())
        << effect;
  }
}

// The worst case: the difference is just the margin.
TEST_P(ErrorRatesTest, FewDifferencesOfTheMarginAreCalledEquivalent) {
  const int experiments = Share(300);
  for (const Design& design : {Design{1, 8, 1, 0, 0, 2}, Design{1, 8, 5, .8, .5, 2}}) {
    Noise noise(design.learning_rates);
    double equivalent = 0;
    for (int i = 0; i < experiments; ++i) {
      ComparisonInput input = Draw(design, &noise);
      input.margin = design.effect;
      const Comparison comparison = *Compare(input, {{}, 0});
      equivalent += Decide(comparison, comparison.rows[1]).equivalent;
    }
    EXPECT_LE(equivalent / experiments, AtMost(kAlpha, experiments))
        << design.learning_rates << " rates";
  }
}

TEST_P(ErrorRatesTest, TuningKeepsMostOfThePower) {
  const int experiments = Share(150);
  EXPECT_GE(Simulate({2, 8, 5, .8, .5, 2}, experiments).first, .6 - Slack());
  EXPECT_GE(Simulate({2, 8, 5, .8, .5, 3}, experiments).first, .9 - Slack());
  // 0.57 for a test of mean differences, because patterns of signs separate near ties of tuning.
  EXPECT_GE(Simulate({1, 8, 5, 0, 0, 2}, experiments).first, .7 - Slack());
}

// Settings that are equal at their own best rates differ at every shared one, which patterns of
// signs mix. They aren't exchangeable, so no theorem bounds the rate.
TEST_P(ErrorRatesTest, FewEqualsWithOtherBestRatesAreToldApart) {
  const int experiments = Share(300);
  for (const size_t seeds : {6, 8}) {
    for (const Design& design :
         {Design{1, seeds, 5, 0, .5, 0, 1}, Design{1, seeds, 5, 0, 1, 0, 2},
          Design{1, seeds, 5, .8, .5, 0, 2}, Design{1, seeds, 5, .8, 2, 0, 1}}) {
      EXPECT_LE(Simulate(design, experiments).established, AtMost(kAlpha, experiments))
          << seeds << " seeds, correlation " << design.correlation << ", gap " << design.gap;
    }
  }
}

// The permutation test tells these apart in 9 % of experiments, mostly if the noisier setting
// selected several values.
TEST_P(ErrorRatesTest, FewEqualsWithUnequalNoiseAreEstablished) {
  const int experiments = Share(300);
  Design design{1, 8, 5, 0, 1, 0, 2};
  design.noise = 10;
  const Rates rates = Simulate(design, experiments);
  EXPECT_LE(rates.established, .03);
  EXPECT_GT(rates.probable, rates.established) << "the rest is probable";
}

// As if an experiment with tuning is compared with one without. These aren't exchangeable either:
// near ties are told apart in up to a tenth of experiments.
TEST_P(ErrorRatesTest, SettingsMayBeTriedAtOtherRates) {
  const int experiments = Share(150);
  for (const size_t seeds : {6, 8, 12}) {
    if (IsShort() && seeds == 12) continue;  // 64 times as many patterns of signs as 6
    for (const bool disjoint : {false, true}) {
      for (const size_t own : {1, 2}) {
        for (const double correlation : {0., .8}) {
          const double most = correlation > 0 ? kAlpha : 2 * kAlpha;
          Design design{1, seeds, 5, correlation, 0, 0, 0, own, disjoint};
          EXPECT_LE(Simulate(design, experiments).established, AtMost(most, experiments))
              << seeds << " seeds, " << own << " rates, correlation " << correlation;
          design.effect = 2.5;
          EXPECT_GE(Simulate(design, experiments).first, (seeds == 6 ? .6 : .9) - Slack())
              << seeds << " seeds, " << own << " rates, correlation " << correlation;
        }
      }
    }
  }
}

// The permutation test alone tells these apart in 8 to 27 % of experiments, by other rates.
TEST_P(ErrorRatesTest, FewEqualsAtACeilingAreToldApart) {
  const int experiments = Share(300);
  for (const size_t seeds : {6, 8, 10}) {
    for (const size_t apart : {0, 1}) {
      Design design{1, seeds, 5, 0, 1, 0, apart};
      design.ceiling = true;
      design.steep = 4;
      design.best = 2;
      EXPECT_LE(Simulate(design, experiments).probable, AtMost(kAlpha, experiments))
          << seeds << " seeds, " << apart << " rates apart";
    }
  }
}

TEST_P(ErrorRatesTest, OtherBestRatesCostLittlePower) {
  const int experiments = Share(200);
  const double same = Simulate({1, 8, 5, .8, 1, 2}, experiments).first;
  for (const size_t apart : {1, 2}) {
    for (const double gap : {1., 3.}) {
      EXPECT_GE(Simulate({1, 8, 5, .8, gap, 2, apart}, experiments).first, same - .06 - Slack())
          << apart << " rates apart, gap " << gap << ", of " << same;
    }
  }
}

}  // namespace
}  // namespace ablate::report
