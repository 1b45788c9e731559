// Tests comparisons: pairs, divergence, Holm, costs; with tuned axes the selections, and the
// matched values.
#include "server/report/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "server/report/compare/verdict.h"
#include "tests/report/compare/example_grid.h"
#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(CompareTest, CountsDivergenceAndNeverAveragesIt) {
  const Comparison comparison =
      *Compare(OneAxis({{"pre", {1, 2, 3, kDivergedRun, kDivergedRun, 6}},
                        {"post", {2, kDivergedRun, 5, 7, kDivergedRun, 5}}}));
  const ComparisonRow& pre = comparison.rows[0];
  EXPECT_EQ(pre.n, 6u);
  EXPECT_EQ(pre.diverged, 2u);
  EXPECT_EQ(pre.mean.value, 3);  // its own converged runs
  const ComparisonRow& post = comparison.rows[1];
  EXPECT_EQ(post.diverged, 2u);
  EXPECT_EQ(post.own.mean.value, 4.75);
  EXPECT_EQ(post.own.n, 4u);
  EXPECT_EQ(post.mean.value, 4);  // seeds 0, 2, 5
  EXPECT_EQ(post.pairs.all, 6u);
  EXPECT_EQ(post.pairs.converged, 3u);
  EXPECT_EQ(post.difference.n, 3u);
  EXPECT_NEAR(post.difference.mean.value, 2 / 3., kTolerance);
  // Seed 3 is won by not diverging, seed 1 lost by diverging, seed 4 neither.
  EXPECT_EQ(post.pairs.wins, 2u);
  EXPECT_EQ(post.pairs.losses, 3u);
  EXPECT_EQ(post.pairs.ties, 1u);
  EXPECT_EQ(post.pairs.only_row_diverged, 1u);
  EXPECT_EQ(post.pairs.only_baseline_diverged, 1u);
  EXPECT_TRUE(std::isnan(post.runs[1].value));
  EXPECT_TRUE(post.runs[1].diverged);
}

TEST(CompareTest, GivesWinsAsTheReasonWhyOtherTestsAreMissing) {
  ComparisonInput input = OneAxis({{"pre", {1, 2, 3, kDivergedRun, kDivergedRun, 6}},
                                   {"post", {2, kDivergedRun, 5, 7, kDivergedRun, 5}}});
  const ComparisonRow row = Compare(input)->rows[1];
  EXPECT_TRUE(row.by_wins);
  EXPECT_NEAR(row.p.value, 1, kTolerance);  // two wins, three losses
  EXPECT_NEAR(row.p_holm.value, 1, kTolerance);
  EXPECT_TRUE(row.difference.p_t.defined());
  EXPECT_EQ(row.p_t_holm.undefined, Undefined::kTestedByWins);
  EXPECT_EQ(row.p_equivalence.undefined, Undefined::kNotRecorded);  // no margin
  input.margin = 0.1;
  EXPECT_EQ(Compare(input)->rows[1].p_equivalence.undefined, Undefined::kTestedByWins);
}

TEST(CompareTest, RowsHaveTheNumbersOfTheirLabels) {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("norm", {"layer", "rms"}),
                MakeAxis("width", {"32", "16"}, false, {32, 16})};
  input.cells = {MakeCell({"rms", "16"}, 1, 2.), MakeCell({"rms", "32"}, 1, 3.)};
  const Comparison comparison = *Compare(input);
  ASSERT_THAT(comparison.rows, SizeIs(2));
  EXPECT_THAT(comparison.rows[0].numbers, ElementsAre(testing::IsNan(), 32));
  EXPECT_THAT(comparison.rows[1].numbers, ElementsAre(testing::IsNan(), 16));
}

TEST(CompareTest, HigherTurnsWinsAroundAndNothingElse) {
  ComparisonInput input = OneAxis({{"pre", {1, 2, 3, kDivergedRun}}, {"post", {2, 1, 3, 1}}});
  const ComparisonRow lower = Compare(input)->rows[1];
  input.better = Better::kHigher;
  const ComparisonRow higher = Compare(input)->rows[1];
  EXPECT_EQ(lower.pairs.wins, 2u);   // seeds 1 and 3
  EXPECT_EQ(higher.pairs.wins, 2u);  // seeds 0 and 3: a diverged run loses either way
  EXPECT_EQ(lower.pairs.ties, 1u);
  EXPECT_EQ(lower.difference.mean.value, higher.difference.mean.value);
}

TEST(CompareTest, AllDivergedHasAReasonAndNoNumber) {
  const std::vector<double> diverged(6, kDivergedRun);
  const Comparison comparison =
      *Compare(OneAxis({{"pre", {1, 2, 3, 4, 5, 6}}, {"post", diverged}}));
  const ComparisonRow& post = comparison.rows[1];
  EXPECT_EQ(post.diverged, 6u);
  EXPECT_EQ(post.own.mean.undefined, Undefined::kAllDiverged);
  EXPECT_EQ(post.mean.undefined, Undefined::kAllDiverged);
  EXPECT_EQ(post.interval.undefined, Undefined::kAllDiverged);
  EXPECT_EQ(post.difference.mean.undefined, Undefined::kAllDiverged);
  EXPECT_EQ(post.difference.p_sign_flip.undefined, Undefined::kAllDiverged);
  EXPECT_EQ(post.pairs.losses, 6u);
  EXPECT_TRUE(post.by_wins);
  EXPECT_EQ(post.p_holm.value, 2. / 64);
}

TEST(CompareTest, HasItsOwnMeanWhereTheBaselineAlwaysDiverged) {
  const std::vector<double> diverged(6, kDivergedRun);
  const ComparisonRow row =
      Compare(OneAxis({{"pre", diverged}, {"post", {1, 2, 3, 4, 5, 6}}}))->rows[1];
  EXPECT_EQ(row.difference.mean.undefined, Undefined::kAllDiverged);
  EXPECT_EQ(row.mean.value, 3.5);
  EXPECT_EQ(row.interval.low, row.own.interval.low);
  EXPECT_EQ(row.pairs.wins, 6u);
}

TEST(CompareTest, StopsAtARowAndLeavesOutTheBootstrap) {
  const ComparisonInput input = OneAxis({{"a", {1, 2, 3}}, {"b", {1, 3, 2}}, {"c", {3, 1, 1}}});
  int asked = 0;
  const auto stopped = Compare(input, {[&asked] { return ++asked > 2; }});
  EXPECT_TRUE(absl::IsCancelled(stopped.status())) << stopped.status();
  const ComparisonRow brief = Compare(input, {{}, 0})->rows[1], whole = Compare(input)->rows[1];
  EXPECT_FALSE(brief.difference.bca.defined());
  EXPECT_TRUE(whole.difference.bca.defined());
  EXPECT_EQ(brief.difference.p_sign_flip.value, whole.difference.p_sign_flip.value);
}

TEST(CompareTest, BaselineHasNoDifferenceToItself) {
  const ComparisonRow row = Compare(OneAxis({{"pre", {1, 2, 3}}, {"post", {2, 3, 4}}}))->rows[0];
  EXPECT_EQ(row.difference.mean.undefined, Undefined::kIsBaseline);
  EXPECT_EQ(row.p_holm.undefined, Undefined::kIsBaseline);
  EXPECT_FALSE(row.compared());
}

TEST(CompareTest, PairsAreSeedsWithBothResults) {
  ComparisonInput input = OneAxis({{"pre", {1, 2, 3, 4}}, {"post", {2, 3, 5, 9}}});
  input.cells[1].outcome = RunOutcome::kFailed;
  input.cells[6].outcome = RunOutcome::kMissing;
  input.cells.push_back(MakeCell({"post"}, 99, 5));
  const Comparison comparison = *Compare(input);
  const ComparisonRow& post = comparison.rows[1];
  EXPECT_EQ(post.n, 4u);
  EXPECT_EQ(post.missing, 1u);
  EXPECT_EQ(post.pairs.all, 2u);
  EXPECT_NEAR(post.difference.mean.value, 3, kTolerance);
  EXPECT_EQ(comparison.rows[0].failed, 1u);
  EXPECT_EQ(comparison.rows[0].n, 3u);
}

TEST(CompareTest, HolmIsOverAllComparedRows) {
  std::vector<std::pair<std::string, std::vector<double>>> settings;
  for (uint64_t i = 0; i < 5; ++i) {
    settings.emplace_back(std::string(1, static_cast<char>('a' + i)),
                          OracleR(i, 9, .4 * static_cast<double>(i), 1));
  }
  const Comparison comparison = *Compare(OneAxis(settings));
  EXPECT_EQ(comparison.family, 4u);
  std::vector<Number> p;
  for (size_t i = 1; i < 5; ++i) p.push_back(comparison.rows[i].difference.p_sign_flip);
  const std::vector<Number> adjusted = HolmAdjust(p);
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(comparison.rows[i].p_holm.value, adjusted[i - 1].value);
  }
}

ComparisonInput FactorialGrid() {
  ComparisonInput input;
  input.axes = {MakeAxis("task", {"legacy", "recall"}), MakeAxis("norm", {"layer", "none"})};
  for (const char* task : {"legacy", "recall"}) {
    for (const char* norm : {"layer", "none"}) {
      for (uint32_t seed = 0; seed < 8; ++seed) {
        const double offset = (task[0] == 'r' ? 10 : 0) + (norm[0] == 'n' ? 1 : 0);
        input.cells.push_back(MakeCell({task, norm}, seed, offset + OracleR(seed, 1)[0]));
      }
    }
  }
  return input;
}

TEST(CompareTest, WithoutByAllRowsHaveOneBaseline) {
  const Comparison comparison = *Compare(FactorialGrid());
  ASSERT_THAT(comparison.rows, SizeIs(4));
  EXPECT_EQ(comparison.family, 3u);
  EXPECT_EQ(comparison.rows[3].label, "recall, none");
  EXPECT_EQ(comparison.rows[3].baseline, 0u);
  EXPECT_NEAR(comparison.rows[3].difference.mean.value, 11, kTolerance);
  EXPECT_THAT(comparison.row_axes, ElementsAre("task", "norm"));
}

TEST(CompareTest, ByComparesWithinEachCombinationOfTheOthers) {
  ComparisonInput input = FactorialGrid();
  input.by = "norm";
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(comparison.family, 2u);
  EXPECT_EQ(comparison.rows[3].baseline, 2u);
  EXPECT_TRUE(comparison.rows[2].is_baseline);
  EXPECT_NEAR(comparison.rows[3].difference.mean.value, 1, kTolerance);
}

TEST(CompareTest, ComparesWithinEachSettingOfAnAxisThatChangesTheData) {
  ComparisonInput input = FactorialGrid();
  input.key = "eval/loss";
  for (Cell& cell : input.cells) cell.scored["task"] = cell.labels[0];
  const Comparison comparison = *Compare(input);
  EXPECT_THAT(comparison.within_axes, ElementsAre("task"));
  EXPECT_EQ(comparison.family, 2u);
  EXPECT_EQ(comparison.rows[1].baseline, 0u);
  EXPECT_EQ(comparison.rows[3].baseline, 2u);
  EXPECT_NEAR(comparison.rows[3].difference.mean.value, 1, kTolerance);
  EXPECT_EQ(comparison.rows[3].withheld, Withheld::kNo);
  EXPECT_EQ(WithinNote(comparison),
            "settings of task are evaluated on different held-out data, so each row is compared "
            "with the baseline of its own task");
}

TEST(CompareTest, WithinTheDataOnlyWhereSomethingIsLeftToCompare) {
  ComparisonInput alone = OneAxis({{"names", Base(8)}, {"words", Shifted(Base(8), .1)}});
  for (Cell& cell : alone.cells) cell.scored["data"] = cell.labels[0];
  const Comparison comparison = *Compare(alone);
  EXPECT_THAT(comparison.within_axes, IsEmpty());
  EXPECT_EQ(comparison.rows[1].baseline, 0u);
  EXPECT_EQ(comparison.rows[1].withheld, Withheld::kScoredDifferently);
  // A requested baseline is used.
  ComparisonInput asked = FactorialGrid();
  for (Cell& cell : asked.cells) cell.scored["task"] = cell.labels[0];
  asked.baseline = {{"task", "legacy"}};
  EXPECT_EQ(Compare(asked)->rows[3].baseline, 0u);
  EXPECT_EQ(Compare(asked)->rows[3].withheld, Withheld::kScoredDifferently);
  EXPECT_EQ(Compare(asked)->rows[1].withheld, Withheld::kNo);
}

TEST(CompareTest, BaselineCanBeChosen) {
  ComparisonInput input = FactorialGrid();
  input.baseline = {{"norm", "none"}};
  const Comparison all = *Compare(input);
  EXPECT_EQ(all.rows[0].baseline, 1u);
  EXPECT_TRUE(all.rows[1].is_baseline);
  input.by = "norm";
  const Comparison by = *Compare(input);
  EXPECT_EQ(by.rows[2].baseline, 3u);
  EXPECT_NEAR(by.rows[2].difference.mean.value, -1, kTolerance);
}

TEST(CompareTest, AnExcludedBaselineLeavesRowsUncompared) {
  ComparisonInput input = FactorialGrid();
  input.by = "norm";
  input.cells.erase(std::remove_if(input.cells.begin(), input.cells.end(),
                                   [](const Cell& cell) {
                                     return cell.labels[0] == "recall" && cell.labels[1] == "layer";
                                   }),
                    input.cells.end());
  const Comparison comparison = *Compare(input);
  ASSERT_THAT(comparison.rows, SizeIs(3));
  EXPECT_FALSE(comparison.rows[2].baseline.has_value());
  EXPECT_EQ(comparison.rows[2].difference.mean.undefined, Undefined::kNoBaseline);
  EXPECT_TRUE(comparison.rows[2].mean.defined());
  EXPECT_EQ(comparison.family, 1u);
}

TEST(CompareTest, DoesNotDependOnTheOrderOfCells) {
  ComparisonInput input = OracleGrid();
  const Comparison before = *Compare(input);
  for (uint64_t round = 0; round < 5; ++round) {
    RandomStream random(round);
    for (size_t i = input.cells.size(); i > 1; --i) {
      std::swap(input.cells[i - 1], input.cells[random.Below(static_cast<uint32_t>(i))]);
    }
    const Comparison after = *Compare(input);
    EXPECT_EQ(OverallVerdict(after).text, OverallVerdict(before).text);
    EXPECT_EQ(after.rows[1].difference.mean.value, before.rows[1].difference.mean.value);
    EXPECT_EQ(after.rows[1].difference.bca.low, before.rows[1].difference.bca.low);
    EXPECT_EQ(after.rows[1].p_holm.value, before.rows[1].p_holm.value);
  }
}

TEST(CompareTest, SwapsSignsWhenTheBaselineDoes) {
  ComparisonInput input = OneAxis({{"a", OracleR(1, 25)}, {"b", OracleR(2, 25)}});
  const ComparisonRow forward = Compare(input)->rows[1];
  input.baseline = {{"norm", "b"}};
  const ComparisonRow backward = Compare(input)->rows[0];
  EXPECT_EQ(forward.difference.mean.value, -backward.difference.mean.value);
  EXPECT_EQ(forward.difference.p_sign_flip.value, backward.difference.p_sign_flip.value);
  EXPECT_EQ(forward.pairs.wins, backward.pairs.losses);
}

TEST(CompareTest, AddsUpCosts) {
  ComparisonInput input = OracleGrid();
  for (Cell& cell : input.cells) {
    cell.device_seconds = cell.labels[1] == "0.1" ? 2 : 4;
    if (cell.seed > 0) cell.tokens_per_second = 100 + cell.seed;
    cell.parameters = cell.labels[0] == "rms" ? 90 : 100;
  }
  const ComparisonRow row = Compare(input)->rows[1];
  EXPECT_EQ(row.device_seconds.value, 3);  // 0.1 and 0.4 on three seeds each
  EXPECT_EQ(row.device_seconds_all, 60);
  EXPECT_EQ(row.tokens_per_second.value, 103);
  EXPECT_EQ(row.parameters->low, 90);
  EXPECT_EQ(Compare(OracleGrid())->rows[1].tokens_per_second.undefined, Undefined::kNotRecorded);
  EXPECT_FALSE(Compare(OracleGrid())->rows[1].parameters.has_value());
}

TEST(CompareTest, ChangedPathsAreTheDifferenceToTheBaselineInUse) {
  ComparisonInput input = OneAxis({{"pre", {1, 2}}, {"post", {1, 2}}, {"none", {1, 2}}});
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "pre") continue;
    cell.changed = {{"model.norm.placement", cell.labels[0]}, {"model.norm.final", "false"}};
  }
  const Comparison against_pre = *Compare(input);
  EXPECT_THAT(against_pre.rows[0].changed, IsEmpty());
  EXPECT_THAT(against_pre.rows[1].changed, ElementsAre("model.norm.final", "model.norm.placement"));
  input.baseline = {{"norm", "post"}};
  const Comparison against_post = *Compare(input);
  EXPECT_THAT(against_post.rows[2].changed, ElementsAre("model.norm.placement"));
  EXPECT_THAT(against_post.rows[0].changed, SizeIs(2));
}

TEST(CompareTest, HandlesNothingAtAll) {
  ComparisonInput input;
  EXPECT_THAT(Compare(input)->rows, IsEmpty());
  input.cells = {MakeCell({}, 0, 1), MakeCell({}, 1, 2)};
  const Comparison one = *Compare(input);
  ASSERT_THAT(one.rows, SizeIs(1));
  EXPECT_EQ(one.rows[0].label, "base");
  EXPECT_TRUE(one.rows[0].is_baseline);
  EXPECT_EQ(one.family, 0u);
}

TEST(CompareTest, TunedDifferenceEqualsTheOracle) {
  const Comparison comparison = *Compare(OracleGrid());
  ASSERT_THAT(comparison.rows, SizeIs(2));
  EXPECT_TRUE(comparison.rows[0].is_baseline);
  const ComparisonRow& row = comparison.rows[1];
  EXPECT_NEAR(row.difference.mean.value, .2933202261, kTolerance);
  EXPECT_NEAR(row.difference.deviation.value, 1.039642623, kTolerance);
  ASSERT_THAT(row.chosen, SizeIs(2));
  EXPECT_THAT(row.chosen[0].labels, ElementsAre("0.1"));
  EXPECT_EQ(row.chosen[0].seeds, 3u);
  EXPECT_THAT(row.chosen[1].labels, ElementsAre("0.4"));
  EXPECT_EQ(row.chosen[1].seeds, 3u);
  EXPECT_THAT(row.runs[2].chosen, ElementsAre("0.4"));
}

TEST(CompareTest, MatchedDifferenceEqualsTheOracle) {
  const Comparison comparison = *Compare(OracleGrid());
  ASSERT_THAT(comparison.matched, SizeIs(3));
  EXPECT_THAT(comparison.matched[0].labels, ElementsAre("0.1"));
  EXPECT_NEAR(comparison.matched[0].rows[1].difference.mean.value, -.2702565478, kTolerance);
  EXPECT_EQ(comparison.matched[0].rows[1].baseline, 0u);
  EXPECT_EQ(comparison.matched[2].rows[0].own.n, 6u);
}

TEST(CompareTest, MatchedRowsShareOneHolmFamily) {
  const Comparison comparison = *Compare(OracleGrid());
  std::vector<Number> p;
  for (const MatchedBlock& block : comparison.matched) {
    p.push_back(block.rows[1].difference.p_sign_flip);
  }
  const std::vector<Number> adjusted = HolmAdjust(p);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(comparison.matched[i].rows[1].p_holm.value, adjusted[i].value);
  }
}

TEST(CompareTest, ReferenceIsTheBaseSpecsOwnValueElseTheBaselinesUsualOne) {
  ComparisonInput input = OracleGrid();
  EXPECT_EQ(Compare(input)->reference, 1u);  // layer selected 0.2 on five of six seeds
  input.axes[1].base = "0.4";
  EXPECT_EQ(Compare(input)->reference, 2u);
  EXPECT_EQ(Compare(OneAxis({{"a", {1, 2}}}))->reference, std::nullopt);
}

TEST(CompareTest, TunesSeveralAxesJointly) {
  ComparisonInput input;
  input.axes = {MakeAxis("norm", {"layer", "rms"}), MakeAxis("lr", {"0.1", "0.2"}, true),
                MakeAxis("decay", {"0", "1"}, true)};
  // Each axis alone would leave layer at the first value; only both together are best.
  const double losses[2][2] = {{2, 3}, {3, 1}};
  for (const size_t lr : {0, 1}) {
    for (const size_t decay : {0, 1}) {
      for (uint32_t seed = 0; seed < 4; ++seed) {
        for (const char* norm : {"layer", "rms"}) {
          input.cells.push_back(
              MakeCell({norm, input.axes[1].labels[lr], input.axes[2].labels[decay]}, seed,
                       losses[lr][decay] + .01 * seed));
        }
      }
    }
  }
  const Comparison comparison = *Compare(input);
  EXPECT_THAT(comparison.tuned_axes, ElementsAre("lr", "decay"));
  ASSERT_THAT(comparison.rows[0].chosen, SizeIs(1));
  EXPECT_THAT(comparison.rows[0].chosen[0].labels, ElementsAre("0.2", "1"));
  EXPECT_EQ(comparison.rows[0].chosen[0].seeds, 4u);
  EXPECT_THAT(comparison.matched, SizeIs(4));
}

// A number of an analysis, computed only for runs selected by loss.
TEST(CompareTest, ChoosesByAnotherMetricAndMissesNothingElsewhere) {
  const Comparison by_loss = *Compare(OracleGrid());
  ComparisonInput input = OracleGrid();
  input.key = "spectrum/stable_rank";
  input.better = Better::kNeither;
  input.choice_key = "eval/loss";
  for (Cell& cell : input.cells) {
    cell.choice = cell.value;
    cell.value.reset();
    for (const ComparisonRow& row : by_loss.rows) {
      for (const SeedRun& run : row.runs) {
        const bool picked = cell.labels[0] == row.labels[0] && cell.seed == run.seed &&
                            cell.labels[1] == run.chosen[0];
        if (picked) cell.value = 10 + run.seed;
      }
    }
  }
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(comparison.choice_key, "eval/loss");
  EXPECT_THAT(comparison.matched, IsEmpty());
  for (size_t row = 0; row < 2; ++row) {
    EXPECT_EQ(comparison.rows[row].own.n, 6u);
    EXPECT_EQ(comparison.rows[row].own.mean.value, 12.5);
    EXPECT_EQ(comparison.rows[row].missing, 0u);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(comparison.rows[row].runs[i].chosen, by_loss.rows[row].runs[i].chosen);
    }
  }
  const auto missing = [](const Comparison& of) {
    return std::count_if(of.warnings.begin(), of.warnings.end(), [](const Warning& warning) {
      return warning.kind == WarningKind::kMissingCells;
    });
  };
  EXPECT_EQ(missing(comparison), 0);
  for (Cell& cell : input.cells) {
    if (cell.seed == 3) cell.value.reset();
  }
  const Comparison without = *Compare(input);
  EXPECT_EQ(without.rows[0].missing, 1u) << "the chosen run of seed 3";
  EXPECT_EQ(missing(without), 1);
  ASSERT_EQ(without.rows[0].without_value.size(), 1u);
  EXPECT_EQ(without.rows[0].without_value[0].seed, 3u);
}

TEST(CompareTest, ChangedPathsLeaveTunedValuesOut) {
  ComparisonInput input = OracleGrid();
  for (Cell& cell : input.cells) {
    cell.changed = {{"training.learning_rate", cell.labels[1]}};
    if (cell.labels[0] == "rms") cell.changed["model.norm.kind"] = "rms";
  }
  EXPECT_THAT(Compare(input)->rows[1].changed, ElementsAre("model.norm.kind"));
}

TEST(CompareTest, SelectsAmongTheValuesOfEachSetting) {
  const Comparison comparison = *Compare(OptimizersGrid());
  ASSERT_THAT(comparison.rows, SizeIs(3));
  const std::pair<const char*, double> expected[] = {{"0.001", 0}, {"0.3", .4}, {"0.003", .2}};
  for (size_t i = 0; i < 3; ++i) {
    const ComparisonRow& row = comparison.rows[i];
    ASSERT_THAT(row.chosen, SizeIs(1)) << row.label;
    EXPECT_THAT(row.chosen[0].labels, ElementsAre(expected[i].first));
    EXPECT_EQ(row.chosen[0].seeds, 8u);
    EXPECT_EQ(row.cells, 16u);
    EXPECT_EQ(row.missing, 0u) << "what isn't in its grid isn't missing";
    if (i == 0) continue;
    EXPECT_NEAR(row.difference.mean.value, expected[i].second, kTolerance);
    EXPECT_EQ(row.pairs.losses, 8u);
    // Under each pattern both select as before, so only the pattern of all signs is as far: 2 of
    // 256.
    EXPECT_EQ(row.p.value, 2. / 256);
    EXPECT_EQ(row.p_holm.value, 4. / 256);
    EXPECT_TRUE(row.difference.by_reselection);
    EXPECT_THAT(row.changed, ElementsAre("training.optimizer"));
  }
  EXPECT_FALSE(comparison.edges_known) << "two values have no edge, though all together are five";
}

TEST(CompareTest, SharesOnlyValuesThatBothWereTriedAt) {
  ComparisonInput input = OptimizersGrid();
  input.axes[1].base = "0.01";
  const Comparison comparison = *Compare(input);
  ASSERT_THAT(comparison.matched, SizeIs(5));
  EXPECT_EQ(comparison.reference, 1u);
  EXPECT_EQ(comparison.matched[1].rows.size(), 2u);
  EXPECT_NEAR(comparison.matched[1].rows[1].difference.mean.value, .2, kTolerance);
  EXPECT_THAT(MatchedNote(comparison), StartsWith("All at lr 0.01: “lion” higher by 0.200 ["));
  for (const char* alone : {"0.001", "0.1"}) {
    input.axes[1].base = alone;
    EXPECT_EQ(Compare(input)->reference, std::nullopt) << "no row has its baseline there";
    EXPECT_EQ(MatchedNote(*Compare(input)), "");
  }
}

}  // namespace
}  // namespace ablate::report
