// Tests the words of findings: canonical ones in full, and common properties of all.
#include "server/report/compare/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/verdict.h"
#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Values = std::vector<double>;

// Returns “post” against “pre”, which is Base(post.size()).
ComparisonInput Post(const Values& post) {
  return OneAxis({{"pre", Base(post.size())}, {"post", post}});
}

ComparisonInput Worse(size_t seeds = 12) { return Post(Shifted(Base(seeds), .03, .01)); }

// Setting "post" needs a lower learning rate than "pre"; at its own best it is 0.03 worse, at the
// shared one 0.3.
ComparisonInput TunedPlacements() {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("placement", {"pre", "post", "none"}),
                MakeAxis("lr", {"0.002", "0.004", "0.01"}, true, {.002, .004, .01})};
  const double losses[3][3] = {{.02, 0, .01}, {.03, .05, .3}, {-.02, -.04, -.03}};
  const std::vector<double> base = Base(12);
  for (size_t setting = 0; setting < 3; ++setting) {
    for (size_t learning_rate = 0; learning_rate < 3; ++learning_rate) {
      const std::vector<double> values =
          Shifted(base, losses[setting][learning_rate], setting == 0 ? 0 : .004);
      for (uint32_t seed = 0; seed < 12; ++seed) {
        input.cells.push_back(
            MakeCell({input.axes[0].labels[setting], input.axes[1].labels[learning_rate]}, seed,
                     values[seed]));
      }
    }
  }
  return input;
}

struct Canonical {
  const char* name;
  std::function<ComparisonInput()> input;
  const char* lead;
  const char* brief;
  const char* sentence;
};

const Canonical kCanonical[] = {
    {"Established", [] { return Worse(); }, "Higher by 0.030",
     "higher by 0.030 [0.023, 0.037] | p < 0.001",
     "“post” is worse than “pre” in held-out loss: higher by 0.030 [0.023, 0.037], 1.3 % of “pre”; "
     "worse on 12 of 12 seeds; p < 0.001 (12 pairs allow no smaller p)."},
    {"Probable", [] { return Post(Shifted(Base(5), .03, .001)); }, "Probably higher by 0.0302",
     "higher by 0.0302 [0.0288, 0.0316] | p < 0.001 by the t-test",
     "“post” is probably worse than “pre” in held-out loss: higher by 0.0302 [0.0288, 0.0316], 1.2 "
     "% of “pre”; worse on 5 of 5 seeds; p < 0.001 by the t-test (assumes roughly normal "
     "differences); the permutation test needs 6 seeds."},
    {"ProbableByNoise", [] { return UnequalNoise(3, true); }, "Probably higher by 0.400",
     "higher by 0.400 [0.385, 0.414] | p = 0.008 with unequal noise",
     "“b” is probably worse than “a” in held-out loss, each at its selected lr: higher by 0.400 "
     "[0.385, 0.414], 20 % of “a”; worse on 8 of 8 seeds; at lr 0.004 (7/8), 0.002 (1/8); p = "
     "0.008 (8 pairs allow no smaller p); not established, because “b” varies 3.0 times as much as "
     "“a” and the selected lr differs between its seeds."},
    {"Leans",
     [] {
       std::vector<std::pair<std::string, Values>> settings = {
           {"pre", Base(12)}, {"post", Shifted(Base(12), -.008, .01)}};
       for (const char* label : {"a", "b", "c"}) {
         settings.emplace_back(label, Shifted(Base(12), 0, .01));
       }
       return OneAxis(settings);
     },
     "Leans lower by 0.008", "lower by 0.008 [0.001, 0.015] | p = 0.125 | about 23 seeds needed",
     "“post” leans better than “pre” in held-out loss: lower by 0.008 [0.001, 0.015], 0.3 % of "
     "“pre”; better on 6 of 12 seeds; p = 0.031 unadjusted, but p = 0.125 (Holm-adjusted for 4 "
     "comparisons); minimum detectable difference with 12 seeds: 0.0118 (80 % power); the observed "
     "difference needs about 23 seeds (12 to 110)."},
    {"Equivalent",
     [] {
       ComparisonInput input = Post(Shifted(Base(12), .001, .01));
       input.margin = .02;
       return input;
     },
     "Equivalent:", "+0.001 [−0.006, +0.008] | within ±0.02 (equivalence test: p < 0.001)",
     "“post” is equivalent to “pre” in held-out loss: +0.001 [−0.006, +0.008]; worse on 6 of 12 "
     "seeds; within ±0.02 (equivalence test: p < 0.001)."},
    {"Inconclusive",
     [] {
       ComparisonInput input = Post(Shifted(Base(12), .003, .01));
       input.margin = .004;
       return input;
     },
     "Inconclusive:", "+0.003 [−0.004, +0.010] | about 98 seeds needed",
     "“post” is inconclusive against “pre” in held-out loss: +0.003 [−0.004, +0.010]; worse on 6 "
     "of 12 seeds; p = 0.369; not shown to be within ±0.004 (equivalence test: p = 0.373); minimum "
     "detectable difference with 12 seeds: 0.00929 (80 % power); the observed difference needs "
     "about 98 seeds (21 to more than 10,000)."},
    {"WorseByDiverging",
     [] {
       Values post = Shifted(Base(12), .03, .01);
       Diverge(&post, 0, 3);
       return Post(post);
     },
     "Worse:", "higher by 0.029 [0.021, 0.037] | 9 of 12 pairs converged | p < 0.001",
     "“post” is worse than “pre” in held-out loss: “post” diverged on 3 of 12 seeds, “pre” on 0; "
     "worse on 12 of 12 seeds; higher by 0.029 [0.021, 0.037] when both converged; p < 0.001 (12 "
     "pairs allow no smaller p)."},
    {"Conflict",
     [] {
       Values post = Shifted(Base(12), -.03, .01);
       Diverge(&post, 0, 2);
       return Post(post);
     },
     "Inconclusive:", "−0.030 [−0.038, −0.022] | 10 of 12 pairs converged",
     "“post” is inconclusive against “pre” in held-out loss: “post” diverged on 2 of 12 seeds, "
     "“pre” on 0; better on 10 of 12 seeds; −0.030 [−0.038, −0.022] when both converged; better "
     "when both converge, but diverges more often: more seeds cannot resolve this trade-off."},
    {"Constant", [] { return Post(Shifted(Base(8), .1)); }, "Higher by 0.100",
     "higher by 0.100 on every seed (no spread, so no interval) | p = 0.008",
     "“post” is worse than “pre” in held-out loss: higher by 0.100 on every seed (no spread, so no "
     "interval), 4.2 % of “pre”; worse on 8 of 8 seeds; p = 0.008 (8 pairs allow no smaller p)."},
    {"Identical", [] { return Post(Base(8)); }, "Inconclusive:", "identical values",
     "“post” is inconclusive against “pre” in held-out loss: identical values over 8 seeds; more "
     "seeds will not help: check that the setting has any effect."},
    {"TooLarge",
     [] {
       return OneAxis({{"pre", Values(3, 1e308)}, {"post", Values(3, -1e308)}});
     },
     "Inconclusive:", "differences too large to compute with",
     "“post” is inconclusive against “pre” in held-out loss: differences too large to compute "
     "with."},
    {"TooFewPairs", [] { return Worse(2); },
     "Too few pairs for a verdict:", "+0.03 [−0.10, +0.16] | at least 6 seeds needed",
     "“post” has too few pairs for a verdict against “pre” in held-out loss: +0.03 [−0.10, +0.16] "
     "over 2 seeds; the permutation test needs at least 6 seeds."},
    {"Unfinished",
     [] {
       ComparisonInput input = Worse();
       Unfinish(&input.cells.back());
       return input;
     },
     "No verdict yet:", "+0.031 [+0.024, +0.038]",
     "“post” has no verdict yet against “pre” in held-out loss: 11 of 12 runs ended, “pre” 12 of "
     "12; +0.031 [+0.024, +0.038] over 11 seeds so far."},
    {"Exploratory",
     [] {
       ComparisonInput input = Worse();
       input.key = "train/loss";
       input.exploratory = "report.primary is eval/loss";
       return input;
     },
     "Exploratory:", "higher by 0.030 [0.023, 0.037]",
     "“post” is exploratory against “pre” in training loss (report.primary is eval/loss): higher "
     "by 0.030 [0.023, 0.037] over 12 seeds."},
    {"ScoredDifferently",
     [] {
       ComparisonInput input = Worse();
       for (Cell& cell : input.cells) cell.scored["model.context"] = cell.labels[0];
       return input;
     },
     "Not comparable:", "evaluated on other held-out data",
     "“post” is not comparable with “pre” in held-out loss: evaluated on other held-out data "
     "(model.context)."},
    {"Tuned", [] { return TunedPlacements(); }, "Higher by 0.0300",
     "higher by 0.0300 [0.0273, 0.0327] | p < 0.001",
     "“post” is worse than “pre” in held-out loss, each at its selected lr: higher by 0.0300 "
     "[0.0273, 0.0327], 1.3 % of “pre”; worse on 12 of 12 seeds; at lr 0.002; p < 0.001 "
     "(Holm-adjusted for 2 comparisons; 12 pairs allow no smaller p)."},
    {"Elsewhere", [] { return AtCeiling(.955); }, "Inconclusive:", "+0.005 [−0.006, +0.015]",
     "“b” is inconclusive against “a” in held-out accuracy, each at its selected lr: +0.005 "
     "[−0.006, +0.015]; better on 1 of 10 seeds; at lr 0.004; the settings differ at some lr (p = "
     "0.004), but their selected runs alone don't show it (p = 1.000, above 0.2); 9 of 10 pairs "
     "are equal, so more seeds help little: compare a finer metric, such as eval/loss."},
    {"MostlyEqual",
     [] {
       Values post = Base(8);
       post[3] += .1;
       return Post(post);
     },
     "Inconclusive:", "+0.013 [−0.017, +0.042]",
     "“post” is inconclusive against “pre” in held-out loss: +0.013 [−0.017, +0.042]; worse on 1 "
     "of 8 seeds; p = 1.000; 7 of 8 pairs are equal, so more seeds help little."},
    {"HigherAsARatio",
     [] {
       ComparisonInput input = OneAxis({{"pre", Base(8)}, {"post", Base(8)}});
       for (Cell& cell : input.cells) {
         if (cell.labels[0] == "post") *cell.value *= cell.seed % 2 == 0 ? 2.1 : 1.9;
       }
       input.key = "train/gradient_norm";
       input.scale = Scale::kRatio;
       input.better = Better::kNeither;
       return input;
     },
     "Higher by a factor of 2.00", "higher by a factor of 2.00 [1.91, 2.09] | p = 0.008",
     "“post” is higher than “pre” in gradient norm: higher by a factor of 2.00 [1.91, 2.09]; over "
     "8 seeds; p = 0.008 (8 pairs allow no smaller p)."},
};

TEST(FindingTest, SaysWhatIsCanonicalInTheseWords) {
  for (const Canonical& one : kCanonical) {
    SCOPED_TRACE(one.name);
    const Comparison comparison = *Compare(one.input());
    const Finding finding = FindingOf(comparison, 1);
    EXPECT_EQ(finding.lead, one.lead);
    EXPECT_EQ(absl::StrJoin(finding.brief, " | "), one.brief);
    EXPECT_EQ(RowVerdict(comparison, 1).text, one.sentence);
  }
}

// Returns true if a text has words of a verdict, which must not describe a row without one.
bool Judges(const std::string& text) {
  for (const char* word : {"better", "worse", "inconclusive", "would decide", "sign-flip"}) {
    if (absl::StrContains(text, word)) return true;
  }
  return false;
}

TEST(FindingTest, JudgesOnlyWhatHasAVerdict) {
  for (const Canonical& one : kCanonical) {
    const Comparison comparison = *Compare(one.input());
    const Verdict verdict = RowVerdict(comparison, 1);
    EXPECT_FALSE(verdict.grade == Grade::kNoVerdict && Judges(verdict.text)) << one.name;
  }
}

TEST(FindingTest, NeverSaysThatThereIsNoDifference) {
  for (uint64_t round = 0; round < 300; ++round) {
    RandomStream random(round);
    const size_t n = 1 + random.Below(9);
    Values pre, post;
    for (size_t i = 0; i < n; ++i) {
      pre.push_back(random.Uniform() < .2 ? kDivergedRun : std::floor(random.Uniform() * 4));
      post.push_back(random.Uniform() < .2 ? kDivergedRun : std::floor(random.Uniform() * 4));
    }
    const Verdict verdict = RowVerdict(*Compare(OneAxis({{"pre", pre}, {"post", post}})), 1);
    for (const char* wrong : {"no difference", "no effect", "nan", "inf", ": ;", "; ;", "  "}) {
      EXPECT_THAT(verdict.text, Not(HasSubstr(wrong)));
    }
    EXPECT_TRUE(verdict.grade < Grade::kProbable || verdict.seeds.seeds == 0);
    // Swapping the settings turns better into worse.
    const Verdict mirrored = RowVerdict(*Compare(OneAxis({{"pre", post}, {"post", pre}})), 1);
    EXPECT_EQ(mirrored.grade, verdict.grade);
    EXPECT_EQ(mirrored.outcome, verdict.outcome == VerdictOutcome::kBetter ? VerdictOutcome::kWorse
                                : verdict.outcome == VerdictOutcome::kWorse
                                    ? VerdictOutcome::kBetter
                                    : verdict.outcome)
        << verdict.text << " | " << mirrored.text;
  }
}

TEST(FindingTest, CallsNothingBetterWhereNeitherDirectionIs) {
  ComparisonInput input = Worse();
  input.better = Better::kNeither;
  const Comparison comparison = *Compare(input);
  EXPECT_THAT(RowVerdict(comparison, 1).text, StartsWith("“post” is higher than “pre” in held-out "
                                                         "loss: higher by 0.030 [0.023, 0.037]"));
  EXPECT_FALSE(Judges(RowVerdict(comparison, 1).text));
}

TEST(FindingTest, SaysWhyThereAreNoPairs) {
  ComparisonInput input = Worse(2);
  for (Cell& cell : input.cells) cell.seed += cell.labels[0] == "post" ? 10 : 0;
  EXPECT_EQ(FindingOf(*Compare(input), 1).evidence, "they have no seed in common");
}

TEST(FindingTest, SaysHeldOutDataOnlyOfMetricsOfThem) {
  ComparisonInput input = Worse();
  for (Cell& cell : input.cells) cell.scored["model.context"] = cell.labels[0];
  input.key = "train/gradient_norm";
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(FindingOf(comparison, 1).evidence, "evaluated on other data (model.context)");
  ASSERT_FALSE(comparison.warnings.empty());
  EXPECT_THAT(comparison.warnings[0].text, HasSubstr("not evaluated on the same data as the base"));
}

TEST(SharedTest, NamesTheDifferenceThatIsDueToTheTunedValues) {
  ComparisonInput input = TunedPlacements();
  input.axes[1].base = "0.01";
  EXPECT_EQ(MatchedNote(*Compare(input)),
            "All at lr 0.01: “post” higher by 0.2900 [0.2873, 0.2927] (tuning the lr removes nine "
            "tenths of it) and “none” lower by 0.0400 [0.0373, 0.0427].");
  input.axes[1].base.reset();  // the baseline's most frequent selection
  EXPECT_EQ(MatchedNote(*Compare(input)),
            "All at lr 0.004: “post” higher by 0.0500 [0.0473, 0.0527] and “none” lower by 0.0400 "
            "[0.0373, 0.0427].");
  EXPECT_EQ(FindingOf(*Compare(input), 1).shared, "higher by 0.0500 [0.0473, 0.0527]");
  EXPECT_EQ(MatchedNote(*Compare(Worse())), "") << "nothing is tuned";
}

TEST(SharedTest, CountsTheSeedsIfSomeDidNotConverge) {
  ComparisonInput input = TunedPlacements();
  input.axes[1].base = "0.01";
  const uint32_t first = input.cells[0].seed;
  const auto diverge = [&input](auto&& of_seed) {
    for (Cell& cell : input.cells) {
      const bool there = cell.labels == std::vector<std::string>{"none", "0.01"};
      if (there && of_seed(cell.seed)) cell.outcome = RunOutcome::kDiverged;
    }
    return MatchedNote(*Compare(input));
  };
  EXPECT_THAT(diverge([first](uint32_t seed) { return seed != first; }),
              HasSubstr("nine tenths of it) and “none” −0.0360 (over 1 of 12 seeds)."));
  EXPECT_THAT(diverge([](uint32_t) { return true; }),
              HasSubstr("nine tenths of it) and “none” diverged on 12 of 12 seeds."));
}

TEST(SharedTest, NamesASignThatDependsOnTheTunedValue) {
  ComparisonInput input = TunedPlacements();
  input.axes[1].base = "0.002";
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "pre" && cell.labels[1] == "0.002") *cell.value += .1;
  }
  EXPECT_EQ(FindingOf(*Compare(input), 1).shared,
            "lower by 0.0900 [0.0873, 0.0927] (the sign depends on the lr)");
}

// “post” at its best learning rate; if each seed has its own selection the difference has no
// interval.
TEST(SharedTest, KnowsWhatIsDueToTheTunedValuesWithoutAnInterval) {
  ComparisonInput input = TunedPlacements();
  input.axes[1].base = "0.01";
  const std::vector<double> constant = Shifted(Base(12), .03);
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "post" && cell.labels[1] == "0.002") cell.value = constant[cell.seed];
  }
  const Comparison comparison = *Compare(input);
  EXPECT_FALSE(comparison.rows[1].difference.interval.defined());
  EXPECT_THAT(FindingOf(comparison, 1).shared,
              HasSubstr("(tuning the lr removes nine tenths of it)"));
}

TEST(SharedTest, SaysNothingOfWhatIsNotJudged) {
  ComparisonInput input = TunedPlacements();
  input.axes[1].base = "0.01";
  ComparisonInput unfinished = input;
  for (Cell& cell : unfinished.cells) {
    if (cell.labels[0] == "post" && cell.labels[1] == "0.004" && cell.seed == 0) {
      Unfinish(&cell);
    }
  }
  EXPECT_EQ(FindingOf(*Compare(unfinished), 1).shared, "higher by 0.2900 [0.2873, 0.2927]");
  for (Cell& cell : input.cells) cell.scored["data"] = cell.labels[0] == "post" ? "b" : "a";
  EXPECT_EQ(FindingOf(*Compare(input), 1).shared, "");
  EXPECT_EQ(MatchedNote(*Compare(input)),
            "All at lr 0.01: “none” lower by 0.0400 [0.0373, 0.0427].");
}

}  // namespace
}  // namespace ablate::report
