// The verdict's wording, case by case.
#include "server/report/compare/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/report/compare/example_grid.h"
#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kDiv = kDivergedRun;

Verdict Of(const std::vector<double>& pre, const std::vector<double>& post,
           Better better = Better::kLower) {
  ComparisonInput input = OneAxis({{"pre", pre}, {"post", post}});
  input.better = better;
  return RowVerdict(*Compare(input), 1);
}

TEST(RowVerdictTest, WorseWhereTheIntervalIsAboveZero) {
  const Verdict verdict = Of(Base(12), Shifted(Base(12), .03, .01));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWorse);
  EXPECT_EQ(
      verdict.text,
      "“post” is worse than “pre”: held-out loss higher by .030 [.023, .037] over 12 seeds; p < "
      ".001, the least that 12 pairs allow.");
  EXPECT_EQ(verdict.seeds_to_decide, 0u);
}

TEST(RowVerdictTest, BetterWhereTheIntervalIsBelowZero) {
  const Verdict verdict = Of(Base(12), Shifted(Base(12), -.03, .01));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kBetter);
  EXPECT_EQ(
      verdict.text,
      "“post” is better than “pre”: held-out loss lower by .030 [.023, .037] over 12 seeds; p < "
      ".001, the least that 12 pairs allow.");
}

TEST(RowVerdictTest, HigherCanBeBetter) {
  const Verdict verdict = Of(Base(12), Shifted(Base(12), .03, .01), Better::kHigher);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kBetter);
  EXPECT_EQ(
      verdict.text,
      "“post” is better than “pre”: held-out loss higher by .030 [.023, .037] over 12 seeds; p < "
      ".001, the least that 12 pairs allow.");
}

TEST(RowVerdictTest, OnlyHigherOrLowerWhereNeitherIsBetter) {
  const Verdict higher = Of(Base(12), Shifted(Base(12), .03, .01), Better::kNeither);
  EXPECT_EQ(higher.outcome, VerdictOutcome::kHigher);
  EXPECT_EQ(
      higher.text,
      "“post” is higher than “pre”: held-out loss higher by .030 [.023, .037] over 12 seeds; p < "
      ".001, the least that 12 pairs allow.");
  const Verdict lower = Of(Base(12), Shifted(Base(12), -.03, .01), Better::kNeither);
  EXPECT_EQ(lower.outcome, VerdictOutcome::kLower);
  EXPECT_EQ(
      lower.text,
      "“post” is lower than “pre”: held-out loss lower by .030 [.023, .037] over 12 seeds; p < "
      ".001, the least that 12 pairs allow.");
}

TEST(RowVerdictTest, NeitherHigherNorLowerByDiverging) {
  const std::vector<double> all(6, kDiv);
  EXPECT_EQ(Of(all, Base(6)).outcome, VerdictOutcome::kBetter);
  EXPECT_EQ(Of(all, Base(6), Better::kNeither).outcome, VerdictOutcome::kInconclusive);
  // Higher where both converge, though it diverges more often.
  std::vector<double> post = Shifted(Base(12), .03, .002);
  post[0] = post[1] = kDiv;
  EXPECT_EQ(Of(Base(12), post, Better::kNeither).outcome, VerdictOutcome::kHigher);
}

TEST(RowVerdictTest, HasTheSameStatisticsWhereNeitherIsBetter) {
  ComparisonInput input = OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .003, .01)}});
  const Comparison lower = *Compare(input);
  input.better = Better::kNeither;
  const Comparison neither = *Compare(input);
  EXPECT_EQ(RowVerdict(neither, 1).text, RowVerdict(lower, 1).text);
  EXPECT_EQ(neither.rows[1].pairs.wins, lower.rows[1].pairs.wins);
  EXPECT_EQ(neither.rows[1].difference.mean.value, lower.rows[1].difference.mean.value);
}

TEST(RowVerdictTest, InconclusiveWithTheSeedsThatWouldDecide) {
  const Verdict verdict = Of(Base(12), Shifted(Base(12), .003, .01));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(
      verdict.text,
      "“post” against “pre” is inconclusive: held-out loss +.003 [−.004, +.010] over 12 seeds, p = "
      ".369; the least difference that 12 seeds would find with 80 % power is .00929; the "
      "difference "
      "seen takes about 98 seeds (21 to more than 10,000).");
  EXPECT_EQ(verdict.grade, Grade::kInconclusive);
  EXPECT_EQ(verdict.seeds_to_decide, 98u);
  EXPECT_EQ(verdict.seeds_low, 21u);
  EXPECT_EQ(verdict.seeds_high, 0u);
}

TEST(RowVerdictTest, TheSeedsForetoldDoDecide) {
  const size_t seeds = Of(Base(12), Shifted(Base(12), .003, .01)).seeds_to_decide;
  // Mean and deviation as before, on as many seeds: scale the spread by √((n-1)/n · 12/11).
  const double n = static_cast<double>(seeds);
  const double spread = .01 * std::sqrt(12 / 11. * (n - 1) / n);
  EXPECT_EQ(Of(Base(seeds), Shifted(Base(seeds), .003, spread)).outcome, VerdictOutcome::kWorse);
}

TEST(RowVerdictTest, ATinyDifferenceNeedsTooManySeeds) {
  const Verdict verdict = Of(Base(12), Shifted(Base(12), .0001, .01));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_THAT(verdict.text,
              HasSubstr("; the difference seen takes more than 10,000 seeds, at best 57."));
  EXPECT_EQ(verdict.seeds_to_decide, 0u);
}

TEST(RowVerdictTest, AMeanOfExactlyZeroForetellsOnlyTheLeast) {
  const Verdict verdict = Of({1, 2, 3, 4, 5, 6}, {2, 1, 4, 3, 6, 5});
  EXPECT_EQ(verdict.text,
            "“post” against “pre” is inconclusive: held-out loss .0 [−1.1, +1.1] over 6 seeds, p = "
            "1.000; the "
            "least difference that 6 seeds would find with 80 % power is 1.77; the difference seen "
            "takes more "
            "than 10,000 seeds, at best 31.");
}

TEST(RowVerdictTest, IsOnlyProbableWhereTheSignFlipTestCannotDecide) {
  const Verdict verdict = Of(Base(5), Shifted(Base(5), .03, .001));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWorse);
  EXPECT_EQ(verdict.grade, Grade::kProbable);
  EXPECT_EQ(verdict.text,
            "“post” is probably worse than “pre”: held-out loss higher by .0302 [.0288, .0316] "
            "over 5 seeds; 5 "
            "pairs cannot reach p < .05 in a sign-flip test, so this rests on roughly normal "
            "differences (t-test, p < .001); 6 seeds would let the sign-flip test decide.");
  EXPECT_EQ(Of(Base(5), Shifted(Base(5), .001, .01)).grade, Grade::kInconclusive);
}

TEST(RowVerdictTest, OnlyLeansWhereItsFamilyIsTooLarge) {
  std::vector<std::pair<std::string, std::vector<double>>> settings = {{"pre", Base(12)}};
  for (const char* label : {"a", "b", "c", "d", "e", "f", "g"}) {
    settings.emplace_back(label, Shifted(Base(12), 0, .01));
  }
  settings.emplace_back("post", Shifted(Base(12), .008, .01));
  const Verdict verdict = RowVerdict(*Compare(OneAxis(settings)), 8);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(verdict.grade, Grade::kLeans);
  EXPECT_EQ(verdict.text,
            "“post” against “pre” leans worse: held-out loss higher by .008 [.001, .015] over 12 "
            "seeds; p = .031 "
            "alone, but p = .250 with Holm over 8 rows; the least difference that 12 seeds would "
            "find with 80 % power is .0132; the difference seen takes about 26 seeds (14 to 130).");
}

TEST(RowVerdictTest, IsEquivalentWhereTheDifferenceIsShownToBeSmall) {
  ComparisonInput input = OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .001, .01)}});
  EXPECT_EQ(RowVerdict(*Compare(input), 1).grade, Grade::kInconclusive);
  input.margin = .02;
  const Verdict verdict = RowVerdict(*Compare(input), 1);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kEquivalent);
  EXPECT_EQ(verdict.grade, Grade::kEquivalent);
  EXPECT_TRUE(verdict.equivalent);
  EXPECT_EQ(verdict.text,
            "“post” is equivalent to “pre”: held-out loss +.001 [−.006, +.008] over 12 seeds; "
            "smaller than "
            ".02 either way (p < .001).");
  EXPECT_EQ(verdict.seeds_to_decide, 0u);
  input.margin = .002;
  EXPECT_EQ(RowVerdict(*Compare(input), 1).grade, Grade::kInconclusive);
}

TEST(RowVerdictTest, MayBeBetterByLittle) {
  ComparisonInput input = OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), -.01, .005)}});
  input.margin = .02;
  const Verdict verdict = RowVerdict(*Compare(input), 1);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kBetter);
  EXPECT_EQ(verdict.grade, Grade::kEstablished);
  EXPECT_TRUE(verdict.equivalent);
  EXPECT_THAT(verdict.text, HasSubstr("12 pairs allow; smaller than .02 either way (p < .001)."));
}

TEST(RowVerdictTest, IdenticalRunsAreNotEquivalentEither) {
  ComparisonInput input = OneAxis({{"pre", Base(12)}, {"post", Base(12)}});
  input.margin = .02;
  const Verdict verdict = RowVerdict(*Compare(input), 1);
  EXPECT_EQ(verdict.grade, Grade::kInconclusive);
  EXPECT_FALSE(verdict.equivalent);
}

// Twelve settings that differ by noise alone: none of them is called better or worse.
TEST(RowVerdictTest, TwelveSettingsWithoutADifferenceHaveNoWinner) {
  int winners = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    std::vector<std::pair<std::string, std::vector<double>>> settings;
    for (uint64_t i = 0; i < 12; ++i) {
      settings.emplace_back(absl::StrCat("s", i), OracleR(100 * round + i, 12, 2.4, .1));
    }
    const Comparison comparison = *Compare(OneAxis(settings), {{}, 0});
    for (size_t row = 1; row < 12; ++row) {
      winners += RowVerdict(comparison, row).outcome != VerdictOutcome::kInconclusive;
    }
  }
  EXPECT_LE(winners, 2) << "of 20 experiments 5 % may";
}

TEST(RowVerdictTest, NamesThePairsThatConverged) {
  std::vector<double> pre = Base(12), post = Shifted(Base(12), .03, .01);
  Diverge(&post, 0, 3);
  Diverge(&pre, 2, 1);
  const Verdict verdict = Of(pre, post);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWorse);
  EXPECT_THAT(
      verdict.text,
      HasSubstr("over the 9 of 12 seeds on which both converged (“post” diverged on 3 of 12 "
                "seeds, “pre” on 1); “post” won 0 and lost 11; p < .001."));
}

TEST(RowVerdictTest, SeedsToDecideCountThoseThatDiverge) {
  std::vector<double> pre = Base(24), post = Shifted(Base(24), .003, .01);
  const size_t without = Of(Base(12), Shifted(Base(12), .003, .01)).seeds_to_decide;
  Diverge(&pre, 12, 12);
  Diverge(&post, 12, 12);
  EXPECT_EQ(Of(pre, post).seeds_to_decide, 2 * without);
}

TEST(RowVerdictTest, BetterButLessStableIsNoVerdict) {
  std::vector<double> post = Shifted(Base(12), -.03, .01);
  Diverge(&post, 0, 2);
  const Verdict verdict = Of(Base(12), post);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(verdict.seeds_to_decide, 0u);
  EXPECT_THAT(verdict.text,
              HasSubstr("makes it the better one where both converge, but it diverges more often; "
                        "more seeds would not say which of the two counts."));
}

TEST(RowVerdictTest, WorseButMoreStableIsNoVerdict) {
  std::vector<double> pre = Base(12);
  Diverge(&pre, 0, 2);
  const Verdict verdict = Of(pre, Shifted(Base(12), .03, .01));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_THAT(verdict.text,
              HasSubstr("the worse one where both converge, but it diverges less often"));
}

TEST(RowVerdictTest, AllDivergedIsWorse) {
  const Verdict verdict = Of(Base(12), std::vector<double>(12, kDiv));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWorse);
  EXPECT_EQ(verdict.text,
            "“post” is worse than “pre”: “post” diverged on 12 of 12 seeds, “pre” on 0; “post” won "
            "0 and lost "
            "12; p < .001, the least that 12 pairs allow.");
}

TEST(RowVerdictTest, ABaselineThatAllDivergedIsBeaten) {
  const Verdict verdict = Of(std::vector<double>(6, kDiv), Base(6));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kBetter);
  EXPECT_EQ(verdict.text,
            "“post” is better than “pre”: “post” diverged on 0 of 6 seeds, “pre” on 6; “post” won "
            "6 and lost "
            "0; p = .031, the least that 6 pairs allow.");
}

TEST(RowVerdictTest, AllDivergedOnFewSeedsIsNot) {
  const Verdict verdict = Of(Base(3), std::vector<double>(3, kDiv));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(verdict.text,
            "“post” against “pre” is inconclusive: “post” diverged on 3 of 3 seeds, “pre” on 0; "
            "“post” won 0 and "
            "lost 3, p = .250; at least 6 seeds are needed.");
  EXPECT_EQ(verdict.seeds_to_decide, 6u);
}

TEST(RowVerdictTest, BothDivergedSaysNothing) {
  const std::vector<double> diverged(8, kDiv);
  const Verdict verdict = Of(diverged, diverged);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(verdict.text,
            "“post” against “pre” is inconclusive: “post” diverged on 8 of 8 seeds, “pre” on 8; "
            "how many seeds "
            "would decide cannot be foretold.");
}

TEST(RowVerdictTest, DivergenceDecidesWhereTheIntervalCannot) {
  std::vector<double> post = Shifted(Base(12), .001, .01);
  Diverge(&post, 0, 10);
  const Verdict verdict = Of(Base(12), post);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWorse);
  EXPECT_THAT(verdict.text,
              HasSubstr("(“post” diverged on 10 of 12 seeds, “pre” on 0); “post” won "));
}

TEST(RowVerdictTest, HasNoVerdictBelowThreePairs) {
  const Verdict verdict = Of({2.4, 2.6}, {2.5, 2.8});
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kTooFewPairs);
  EXPECT_EQ(verdict.grade, Grade::kNoVerdict);
  EXPECT_EQ(verdict.text,
            "“post” against “pre”: no verdict below 3 pairs; held-out loss +.1 [−.5, +.8] over 2 "
            "seeds; at least 6 seeds are needed to establish anything.");
  EXPECT_EQ(verdict.seeds_to_decide, 6u);
}

TEST(RowVerdictTest, NoSeedInCommonIsNoComparison) {
  ComparisonInput input = OneAxis({{"pre", Base(2)}, {"post", Base(2)}});
  for (Cell& cell : input.cells) cell.seed += cell.labels[0] == "post" ? 10 : 0;
  EXPECT_EQ(
      RowVerdict(*Compare(input), 1).text,
      "“post” against “pre”: no verdict below 3 pairs; they have no seed in common; at least 6 "
      "seeds are needed to establish anything.");
}

TEST(RowVerdictTest, IdenticalRunsAreNeverCalledEqual) {
  const Verdict verdict = Of(Base(12), Base(12));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(verdict.text,
            "“post” against “pre” is inconclusive: held-out loss is identical over 12 seeds; more "
            "seeds would "
            "not decide: see whether the setting takes effect.");
}

TEST(RowVerdictTest, AConstantDifferenceIsJudgedByTheSignFlipTest) {
  const Verdict decided = Of(Base(8), Shifted(Base(8), .1));
  EXPECT_EQ(decided.outcome, VerdictOutcome::kWorse);
  EXPECT_EQ(decided.text,
            "“post” is worse than “pre”: held-out loss +.100 over 8 seeds, the same on every seed, "
            "so without "
            "an interval; p = .008, the least that 8 pairs allow.");
  const Verdict open = Of(Base(4), Shifted(Base(4), .1));
  EXPECT_EQ(open.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(open.text,
            "“post” against “pre” is inconclusive: held-out loss +.100 over 4 seeds, the same on "
            "every seed, so "
            "without an interval, p = .125; at least 6 seeds are needed.");
}

TEST(RowVerdictTest, SaysWhenNumbersAreTooLarge) {
  EXPECT_EQ(
      Of({1e308, 1e308, 1e308}, {-1e308, -1e308, -1e308}).text,
      "“post” against “pre” is inconclusive: the differences in held-out loss are too large to "
      "compute with.");
}

TEST(RowVerdictTest, NeverSaysThatThereIsNoDifference) {
  for (uint64_t round = 0; round < 300; ++round) {
    RandomStream random(round);
    const size_t n = 1 + random.Below(9);
    std::vector<double> pre, post;
    for (size_t i = 0; i < n; ++i) {
      pre.push_back(random.Uniform() < .2 ? kDiv : std::floor(random.Uniform() * 4));
      post.push_back(random.Uniform() < .2 ? kDiv : std::floor(random.Uniform() * 4));
    }
    const Verdict verdict = Of(pre, post);
    EXPECT_THAT(verdict.text, Not(HasSubstr("no difference")));
    EXPECT_THAT(verdict.text, Not(HasSubstr("no effect")));
    EXPECT_THAT(verdict.text, Not(HasSubstr("nan")));
    EXPECT_THAT(verdict.text, Not(HasSubstr("inf")));
    EXPECT_EQ(verdict.text.back(), '.');
    EXPECT_TRUE(verdict.grade < Grade::kProbable || verdict.seeds_to_decide == 0);
    // What is better one way round is worse the other.
    const Verdict mirrored = Of(post, pre);
    EXPECT_EQ(mirrored.grade, verdict.grade);
    EXPECT_EQ(mirrored.outcome, verdict.outcome == VerdictOutcome::kBetter ? VerdictOutcome::kWorse
                                : verdict.outcome == VerdictOutcome::kWorse
                                    ? VerdictOutcome::kBetter
                                    : verdict.outcome)
        << verdict.text << " | " << mirrored.text;
  }
}

// The words of a verdict, none of which may be said of what has none.
bool Judges(const std::string& text) {
  for (const char* word : {"better", "worse", "inconclusive", "would decide", "sign-flip"}) {
    if (absl::StrContains(text, word)) return true;
  }
  return false;
}

TEST(RowVerdictTest, IsWithheldWhileARunOfTheRowOrItsBaselineGoesOn) {
  const ComparisonInput whole = OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .03, .01)}});
  ASSERT_EQ(RowVerdict(*Compare(whole), 1).outcome, VerdictOutcome::kWorse);
  for (const size_t cell : {size_t{3}, size_t{20}}) {
    ComparisonInput input = whole;
    input.cells[cell].outcome = RunOutcome::kUnfinished;
    input.cells[cell].value.reset();
    const Comparison comparison = *Compare(input);
    const Verdict verdict = RowVerdict(comparison, 1);
    EXPECT_EQ(verdict.outcome, VerdictOutcome::kPreliminary);
    EXPECT_FALSE(Judges(verdict.text)) << verdict.text;
    EXPECT_THAT(
        verdict.text,
        HasSubstr(cell < 12 ? "preliminary, 12 of 12 runs, “pre” 11 of 12; held-out loss +.0"
                            : "preliminary, 11 of 12 runs, “pre” 12 of 12; held-out loss +.0"));
    EXPECT_EQ(verdict.seeds_to_decide, 0u);
    EXPECT_TRUE(comparison.rows[1].difference.mean.defined()) << "numbers are shown";
  }
}

TEST(RowVerdictTest, AFailedOrCancelledRunHasEnded) {
  ComparisonInput input = OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .03, .01)}});
  input.cells[3].outcome = RunOutcome::kFailed;
  input.cells[20].outcome = RunOutcome::kMissing;
  EXPECT_EQ(RowVerdict(*Compare(input), 1).outcome, VerdictOutcome::kWorse);
}

// Settings a and b at two rates, on four seeds.
ComparisonInput TwoRates() {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("norm", {"a", "b"}), MakeAxis("lr", {"1", "2"}, true, {1, 2})};
  for (const char* norm : {"a", "b"}) {
    for (const char* rate : {"1", "2"}) {
      for (uint32_t seed = 0; seed < 4; ++seed) {
        const bool b = norm[0] == 'b';
        const double worse = (b ? .2 : 0) + (rate[0] == '2' ? .5 : 0);
        const double noise = .01 * OracleR(seed + (b ? 10 : 0), 1)[0];
        input.cells.push_back(MakeCell({norm, rate}, seed, 2 + worse + noise));
      }
    }
  }
  return input;
}

TEST(RowVerdictTest, ATunedCandidateThatGoesOnWithholdsItToo) {
  ComparisonInput input = TwoRates();
  ASSERT_EQ(RowVerdict(*Compare(input), 1).outcome, VerdictOutcome::kWorse);
  input.cells.back().outcome = RunOutcome::kUnfinished;  // of rate 2, that nobody chooses
  input.cells.back().value.reset();
  EXPECT_EQ(RowVerdict(*Compare(input), 1).outcome, VerdictOutcome::kPreliminary);
}

TEST(RowVerdictTest, IsWithheldWhereTheDataDiffer) {
  ComparisonInput input = OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .03, .01)}});
  for (Cell& cell : input.cells) cell.scored["model.context"] = cell.labels[0];
  const Comparison comparison = *Compare(input);
  const Verdict verdict = RowVerdict(comparison, 1);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kScoredDifferently);
  EXPECT_FALSE(Judges(verdict.text)) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("no verdict, for they are not scored on the same held-out "
                                      "data (model.context); held-out loss +.0"));
  EXPECT_EQ(comparison.family, 0u);
  EXPECT_EQ(comparison.rows[1].p_holm.undefined, Undefined::kScoredDifferently);
}

TEST(RowVerdictTest, SaysHeldOutDataOnlyOfMetricsOfThem) {
  ComparisonInput input = OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .03, .01)}});
  for (Cell& cell : input.cells) cell.scored["model.context"] = cell.labels[0];
  input.key = "train/loss";
  const Comparison comparison = *Compare(input);
  EXPECT_THAT(RowVerdict(comparison, 1).text, HasSubstr("not scored on the same data (model."));
  ASSERT_FALSE(comparison.warnings.empty());
  EXPECT_THAT(comparison.warnings[0].text, HasSubstr("not scored on the same data as the base"));
}

TEST(RowVerdictTest, IsWithheldWhereCandidatesOfTheChoiceDiffer) {
  ComparisonInput input = TwoRates();
  for (Cell& cell : input.cells) cell.scored["model.context"] = cell.labels[1];
  EXPECT_EQ(RowVerdict(*Compare(input), 1).outcome, VerdictOutcome::kScoredDifferently);
}

}  // namespace
}  // namespace ablate::report
