// Tests decisions about a row, case by case, and the seeds needed.
#include "server/report/compare/decision.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/report/compare/finding.h"
#include "tests/report/compare/example_grid.h"
#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {
namespace {

constexpr double kDiv = kDivergedRun;

using Values = std::vector<double>;

ComparisonInput Pair(const Values& pre, const Values& post, Better better = Better::kLower) {
  ComparisonInput input = OneAxis({{"pre", pre}, {"post", post}});
  input.better = better;
  return input;
}

Decision Decided(const ComparisonInput& input, size_t row = 1) {
  const Comparison comparison = *Compare(input);
  return Decide(comparison, comparison.rows[row]);
}

VerdictOutcome OutcomeOf(const Values& pre, const Values& post, Better better = Better::kLower) {
  return Decided(Pair(pre, post, better)).outcome;
}

SeedsToDecide SeedsOf(const Values& pre, const Values& post) {
  return FindingOf(*Compare(Pair(pre, post)), 1).seeds;
}

TEST(DecisionTest, GoesTheWayOfTheDifferenceAndOfTheMetric) {
  const Values base = Base(12), up = Shifted(base, .03, .01), down = Shifted(base, -.03, .01);
  EXPECT_EQ(OutcomeOf(base, up), VerdictOutcome::kWorse);
  EXPECT_EQ(OutcomeOf(base, down), VerdictOutcome::kBetter);
  EXPECT_EQ(OutcomeOf(base, up, Better::kHigher), VerdictOutcome::kBetter);
  EXPECT_EQ(OutcomeOf(base, up, Better::kNeither), VerdictOutcome::kHigher);
  EXPECT_EQ(OutcomeOf(base, down, Better::kNeither), VerdictOutcome::kLower);
}

TEST(DecisionTest, IsNeitherHigherNorLowerByDiverging) {
  const Values all(6, kDiv);
  EXPECT_EQ(OutcomeOf(all, Base(6)), VerdictOutcome::kBetter);
  EXPECT_EQ(OutcomeOf(all, Base(6), Better::kNeither), VerdictOutcome::kInconclusive);
  // Higher if both converge, though it diverges more often.
  Values post = Shifted(Base(12), .03, .002);
  post[0] = post[1] = kDiv;
  EXPECT_EQ(OutcomeOf(Base(12), post, Better::kNeither), VerdictOutcome::kHigher);
}

TEST(DecisionTest, HasTheSameStatisticsWhereNeitherIsBetter) {
  const Values post = Shifted(Base(12), .003, .01);
  const Comparison lower = *Compare(Pair(Base(12), post));
  const Comparison neither = *Compare(Pair(Base(12), post, Better::kNeither));
  EXPECT_EQ(neither.rows[1].pairs.wins, lower.rows[1].pairs.wins);
  EXPECT_EQ(neither.rows[1].difference.mean.value, lower.rows[1].difference.mean.value);
  EXPECT_EQ(neither.rows[1].p.value, lower.rows[1].p.value);
}

TEST(DecisionTest, ForetellsTheSeedsThatWouldDecide) {
  const SeedsToDecide seeds = SeedsOf(Base(12), Shifted(Base(12), .003, .01));
  EXPECT_EQ(seeds.seeds, 98u);
  EXPECT_EQ(seeds.low, 21u);
  EXPECT_EQ(seeds.high, 0u) << "more than kMaxSeeds";
  // Mean and deviation as before, on as many seeds: scale the spread by √((n-1)/n · 12/11).
  const double n = static_cast<double>(seeds.seeds);
  const double spread = .01 * std::sqrt(12 / 11. * (n - 1) / n);
  EXPECT_EQ(OutcomeOf(Base(seeds.seeds), Shifted(Base(seeds.seeds), .003, spread)),
            VerdictOutcome::kWorse);
}

TEST(DecisionTest, ForetellsOnlyTheLeastSeedsOfATinyDifference) {
  const SeedsToDecide tiny = SeedsOf(Base(12), Shifted(Base(12), .0001, .01));
  EXPECT_EQ(tiny.seeds, 0u);
  EXPECT_EQ(tiny.low, 57u);
  const SeedsToDecide none = SeedsOf({1, 2, 3, 4, 5, 6}, {2, 1, 4, 3, 6, 5});
  EXPECT_EQ(none.seeds, 0u);
  EXPECT_EQ(none.low, 31u);
}

TEST(DecisionTest, CountsSeedsThatDivergeAmongThoseNeeded) {
  Values pre = Base(24), post = Shifted(Base(24), .003, .01);
  const size_t without = SeedsOf(Base(12), Shifted(Base(12), .003, .01)).seeds;
  Diverge(&pre, 12, 12);
  Diverge(&post, 12, 12);
  EXPECT_EQ(SeedsOf(pre, post).seeds, 2 * without);
}

TEST(DecisionTest, IsOnlyProbableWhereTheSignFlipTestCannotDecide) {
  const Decision probable = Decided(Pair(Base(5), Shifted(Base(5), .03, .001)));
  EXPECT_EQ(probable.outcome, VerdictOutcome::kWorse);
  EXPECT_EQ(probable.grade, Grade::kProbable);
  EXPECT_EQ(Decided(Pair(Base(5), Shifted(Base(5), .001, .01))).grade, Grade::kInconclusive);
}

TEST(DecisionTest, IsOnlyProbableWhereTheNoisierSettingSelectedSeveralValues) {
  const auto grade = [](double ratio, bool switches, size_t seeds = 8) {
    return Decided(UnequalNoise(ratio, switches, seeds)).grade;
  };
  EXPECT_EQ(grade(2.1, true), Grade::kProbable);
  EXPECT_EQ(Decided(UnequalNoise(2.1, true)).outcome, VerdictOutcome::kWorse);
  EXPECT_EQ(grade(1.9, true), Grade::kEstablished);
  EXPECT_EQ(grade(2.1, false), Grade::kEstablished) << "one selected value";
  EXPECT_EQ(grade(.1, true), Grade::kEstablished) << "the other one is noisier";
  EXPECT_EQ(grade(2.1, true, 6), Grade::kEstablished)
      << "so few are told apart in 5 % of simulations";
  ComparisonInput input = UnequalNoise(1, true);
  EXPECT_EQ(Decided(input).grade, Grade::kEstablished);
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "a") cell.value = 2;
  }
  EXPECT_EQ(Decided(input).grade, Grade::kProbable) << "the other one has no spread at all";
}

TEST(DecisionTest, OnlyLeansWhereItsFamilyIsTooLarge) {
  std::vector<std::pair<std::string, Values>> settings = {{"pre", Base(12)}};
  for (const char* label : {"a", "b", "c", "d", "e", "f", "g"}) {
    settings.emplace_back(label, Shifted(Base(12), 0, .01));
  }
  settings.emplace_back("post", Shifted(Base(12), .008, .01));
  const Comparison comparison = *Compare(OneAxis(settings));
  const Finding finding = FindingOf(comparison, 8);
  EXPECT_EQ(finding.decision.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(finding.decision.grade, Grade::kLeans);
  EXPECT_EQ(finding.decision.toward, -1);
  EXPECT_NEAR(comparison.rows[8].p_holm.value, .25, .001);
  EXPECT_EQ(finding.seeds.seeds, 26u);
}

TEST(DecisionTest, IsEquivalentWhereTheDifferenceIsShownToBeSmall) {
  ComparisonInput input = Pair(Base(12), Shifted(Base(12), .001, .01));
  EXPECT_EQ(Decided(input).grade, Grade::kInconclusive);
  input.margin = .02;
  EXPECT_EQ(Decided(input).outcome, VerdictOutcome::kEquivalent);
  EXPECT_EQ(Decided(input).grade, Grade::kEquivalent);
  EXPECT_EQ(FindingOf(*Compare(input), 1).seeds.seeds, 0u);
  input.margin = .002;
  EXPECT_EQ(Decided(input).grade, Grade::kInconclusive);
}

TEST(DecisionTest, MayBeBetterByLittle) {
  ComparisonInput input = Pair(Base(12), Shifted(Base(12), -.01, .005));
  input.margin = .02;
  EXPECT_EQ(Decided(input).outcome, VerdictOutcome::kBetter);
  EXPECT_EQ(Decided(input).grade, Grade::kEstablished);
  EXPECT_TRUE(Decided(input).equivalent);
}

TEST(DecisionTest, IdenticalRunsAreNotEquivalentEither) {
  ComparisonInput input = Pair(Base(12), Base(12));
  input.margin = .02;
  EXPECT_EQ(Decided(input).grade, Grade::kInconclusive);
  EXPECT_EQ(Decided(input).ground, Ground::kIdentical);
  EXPECT_FALSE(Decided(input).equivalent);
}

// Twelve settings that differ by noise only: none of them is called better or worse.
TEST(DecisionTest, TwelveSettingsWithoutADifferenceHaveNoWinner) {
  int winners = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    std::vector<std::pair<std::string, Values>> settings;
    for (uint64_t i = 0; i < 12; ++i) {
      settings.emplace_back(absl::StrCat("s", i), OracleR(100 * round + i, 12, 2.4, .1));
    }
    const Comparison comparison = *Compare(OneAxis(settings), {{}, 0});
    for (size_t row = 1; row < 12; ++row) {
      winners += Decide(comparison, comparison.rows[row]).outcome != VerdictOutcome::kInconclusive;
    }
  }
  EXPECT_LE(winners, 2) << "of 20 experiments 5 % may";
}

TEST(DecisionTest, BetterButLessStableIsNoVerdict) {
  Values less_stable = Shifted(Base(12), -.03, .01), unstable = Base(12);
  Diverge(&less_stable, 0, 2);
  Diverge(&unstable, 0, 2);
  for (const ComparisonInput& input :
       {Pair(Base(12), less_stable), Pair(unstable, Shifted(Base(12), .03, .01))}) {
    EXPECT_EQ(Decided(input).outcome, VerdictOutcome::kInconclusive);
    EXPECT_EQ(Decided(input).ground, Ground::kConflict);
    EXPECT_EQ(FindingOf(*Compare(input), 1).seeds.seeds, 0u);
  }
}

TEST(DecisionTest, DivergingLosesAPair) {
  EXPECT_EQ(OutcomeOf(Base(12), Values(12, kDiv)), VerdictOutcome::kWorse);
  EXPECT_EQ(OutcomeOf(Values(6, kDiv), Base(6)), VerdictOutcome::kBetter);
  EXPECT_EQ(OutcomeOf(Values(8, kDiv), Values(8, kDiv)), VerdictOutcome::kInconclusive);
  EXPECT_EQ(OutcomeOf(Base(3), Values(3, kDiv)), VerdictOutcome::kInconclusive);
  EXPECT_EQ(SeedsOf(Base(3), Values(3, kDiv)).seeds, 6u);
  Values pre = Base(12), post = Shifted(Base(12), .03, .01);
  Diverge(&post, 0, 3);
  Diverge(&pre, 2, 1);
  EXPECT_EQ(OutcomeOf(pre, post), VerdictOutcome::kWorse);
  post = Shifted(Base(12), .001, .01);
  Diverge(&post, 0, 10);
  EXPECT_EQ(OutcomeOf(Base(12), post), VerdictOutcome::kWorse) << "though the interval has 0";
}

TEST(DecisionTest, HasNoVerdictBelowThreePairs) {
  EXPECT_EQ(OutcomeOf({2.4, 2.6}, {2.5, 2.8}), VerdictOutcome::kTooFewPairs);
  EXPECT_EQ(Decided(Pair({2.4, 2.6}, {2.5, 2.8})).grade, Grade::kNoVerdict);
  EXPECT_EQ(SeedsOf({2.4, 2.6}, {2.5, 2.8}).seeds, 6u);
}

TEST(DecisionTest, AConstantDifferenceIsJudgedByTheSignFlipTest) {
  EXPECT_EQ(OutcomeOf(Base(8), Shifted(Base(8), .1)), VerdictOutcome::kWorse);
  EXPECT_EQ(OutcomeOf(Base(4), Shifted(Base(4), .1)), VerdictOutcome::kInconclusive);
  EXPECT_EQ(Decided(Pair(Base(4), Shifted(Base(4), .1))).ground, Ground::kConstant);
}

TEST(DecisionTest, IsWithheldWhileARunOfTheRowOrItsBaselineGoesOn) {
  const ComparisonInput whole = Pair(Base(12), Shifted(Base(12), .03, .01));
  for (const size_t cell : {size_t{3}, size_t{20}}) {
    ComparisonInput input = whole;
    Unfinish(&input.cells[cell]);
    const Comparison comparison = *Compare(input);
    EXPECT_EQ(Decide(comparison, comparison.rows[1]).outcome, VerdictOutcome::kPreliminary);
    EXPECT_EQ(FindingOf(comparison, 1).seeds.seeds, 0u);
    EXPECT_TRUE(comparison.rows[1].difference.mean.defined()) << "numbers are shown";
  }
}

TEST(DecisionTest, AFailedOrCancelledRunHasEnded) {
  ComparisonInput input = Pair(Base(12), Shifted(Base(12), .03, .01));
  input.cells[3].outcome = RunOutcome::kFailed;
  input.cells[20].outcome = RunOutcome::kMissing;
  EXPECT_EQ(Decided(input).outcome, VerdictOutcome::kWorse);
}

// Returns settings a and b at two rates, on four seeds.
ComparisonInput TwoRates() {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("norm", {"a", "b"}), MakeAxis("lr", {"1", "2"}, true, {1, 2})};
  for (const char* norm : {"a", "b"}) {
    for (const char* learning_rate : {"1", "2"}) {
      for (uint32_t seed = 0; seed < 4; ++seed) {
        const bool b = norm[0] == 'b';
        const double worse = (b ? .2 : 0) + (learning_rate[0] == '2' ? .5 : 0);
        const double noise = .01 * OracleR(seed + (b ? 10 : 0), 1)[0];
        input.cells.push_back(MakeCell({norm, learning_rate}, seed, 2 + worse + noise));
      }
    }
  }
  return input;
}

TEST(DecisionTest, ATunedCandidateThatGoesOnWithholdsItToo) {
  ComparisonInput input = TwoRates();
  ASSERT_EQ(Decided(input).outcome, VerdictOutcome::kWorse);
  Unfinish(&input.cells.back());  // of learning rate 2, which is never selected
  EXPECT_EQ(Decided(input).outcome, VerdictOutcome::kPreliminary);
}

// The permutation test tells the settings apart by 0.002, where "b" is worse.
TEST(DecisionTest, DifferencesAtOtherTunedValuesDecideNothing) {
  ComparisonInput input = AtCeiling(.955);
  const Comparison comparison = *Compare(input);
  const ComparisonRow& row = comparison.rows[1];
  EXPECT_EQ(row.pairs.ties, 9u);
  EXPECT_EQ(row.pairs.wins, 1u);
  EXPECT_EQ(row.p.value, 4 / 1024.);
  EXPECT_EQ(row.p_selected.value, 1);
  EXPECT_FALSE(LeavesOutZero(row.difference.interval));
  EXPECT_EQ(Decided(input).outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(Decided(input).ground, Ground::kElsewhere);
  EXPECT_EQ(FindingOf(comparison, 1).seeds.seeds, 0u);
  input.margin = .05;
  EXPECT_EQ(Decided(input).outcome, VerdictOutcome::kEquivalent);
}

TEST(DecisionTest, NorDoesOneDivergedRun) {
  const ComparisonInput input = AtCeiling(kDiv);
  EXPECT_EQ(Compare(input)->rows[1].p.value, 4 / 1024.);
  EXPECT_TRUE(Compare(input)->rows[1].by_wins);
  EXPECT_EQ(Decided(input).outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(Decided(input).ground, Ground::kElsewhere);
}

TEST(DecisionTest, TheSelectedRunsNeedSomeEvidence) {
  Comparison comparison = *Compare(AtCeiling(.955));
  ComparisonRow& row = comparison.rows[1];
  row.noise_ratio = Defined(1);
  for (const double p_holm : {.004, .2}) {
    row.p_holm = Defined(p_holm);
    row.p_selected = Defined(kMostSelected);
    EXPECT_EQ(Decide(comparison, row).grade, p_holm > .05 ? Grade::kLeans : Grade::kEstablished);
    row.p_selected = Defined(kMostSelected + .001);
    EXPECT_EQ(Decide(comparison, row).grade, Grade::kInconclusive);
  }
}

TEST(DecisionTest, IsWithheldWhereTheDataDiffer) {
  ComparisonInput input = Pair(Base(12), Shifted(Base(12), .03, .01));
  for (Cell& cell : input.cells) cell.scored["model.context"] = cell.labels[0];
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(Decide(comparison, comparison.rows[1]).outcome, VerdictOutcome::kScoredDifferently);
  EXPECT_EQ(comparison.family, 0u);
  EXPECT_EQ(comparison.rows[1].p_holm.undefined, Undefined::kScoredDifferently);
}

TEST(DecisionTest, IsWithheldWhereCandidatesOfTheChoiceDiffer) {
  ComparisonInput input = TwoRates();
  for (Cell& cell : input.cells) cell.scored["model.context"] = cell.labels[1];
  EXPECT_EQ(Decided(input).outcome, VerdictOutcome::kScoredDifferently);
}

}  // namespace
}  // namespace ablate::report
