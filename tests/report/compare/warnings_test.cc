// Tests that each warning appears when it should, in these words, and only then.
#include "server/report/compare/warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/report/compare/decision.h"
#include "tests/report/compare/example_grid.h"
#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Returns the texts of one kind.
std::vector<std::string> Texts(const ComparisonInput& input, WarningKind kind) {
  std::vector<std::string> texts;
  const Comparison comparison = *Compare(input);
  for (const Warning& warning : comparison.warnings) {
    if (warning.kind == kind) texts.push_back(warning.text);
  }
  return texts;
}

// Returns twelve seeds of three settings, with nothing wrong.
ComparisonInput Sound() {
  return OneAxis({{"pre", OracleR(1, 12, 2, .1)},
                  {"post", OracleR(2, 12, 2, .1)},
                  {"none", OracleR(3, 12, 2, .1)}});
}

TEST(FindWarningsTest, IsSilentWhereNothingIsWrong) {
  EXPECT_THAT(Compare(Sound())->warnings, IsEmpty());
}

TEST(FindWarningsTest, CountsMissingAndFailedCells) {
  ComparisonInput input = Sound();
  input.cells[0].outcome = RunOutcome::kMissing;
  input.cells[13].outcome = RunOutcome::kFailed;
  input.cells[14].value.reset();
  EXPECT_THAT(
      Texts(input, WarningKind::kMissingCells),
      ElementsAre("cells without a result: “pre” 1 of 12 (seed 0) and “post” 1 of 12 (seed 2)"));
  EXPECT_THAT(Texts(input, WarningKind::kFailedCells),
              ElementsAre("cells whose run failed: “post” 1 of 12 (seed 1)"));
  EXPECT_THAT(Texts(input, WarningKind::kUnbalancedSeeds),
              ElementsAre("unpaired seeds, left out of the paired comparison: “post” 1, “pre” 2 "
                          "(against “post”) and “none” 1"));
}

TEST(FindWarningsTest, NamesDamagedRuns) {
  ComparisonInput input = Sound();
  for (const size_t at : {0, 13}) {
    input.cells[at].outcome = RunOutcome::kMissing;
    input.cells[at].value.reset();
    input.cells[at].damage = absl::StrCat("run r", at, ": its summaries are damaged");
  }
  EXPECT_THAT(Texts(input, WarningKind::kDamagedRuns),
              ElementsAre("runs without a result because stored data are damaged: run r0: its "
                          "summaries are damaged and run r13: its summaries are damaged"));
}

TEST(FindWarningsTest, SaysWhatStartsFarAboveAUniformGuess) {
  ComparisonInput input = Sound();
  for (Cell& cell : input.cells) {
    if (cell.labels[0] != "post") continue;
    cell.high_start = cell.seed % 2 == 0 ? 20.5 : 21.5;
    cell.uniform = 3.296;
  }
  EXPECT_THAT(Texts(input, WarningKind::kHighStart),
              ElementsAre("the loss before the first step is far above that of a uniform guess, so "
                          "a difference may be due to the initial values (model.init.kind, "
                          "model.tied_head): “post” 21.0 against 3.3"));
  for (Cell& cell : input.cells) {
    if (cell.seed > 1) cell.high_start.reset();
  }
  EXPECT_THAT(Texts(input, WarningKind::kHighStart),
              ElementsAre(HasSubstr(": “post” 21.0 against 3.3 on 2 of 12 seeds")));
}

TEST(FindWarningsTest, RunsThatGoOnAreNoFault) {
  ComparisonInput input = Sound();
  for (size_t i = 14; i < 24; ++i) {
    Unfinish(&input.cells[i]);
  }
  const Comparison comparison = *Compare(input);
  EXPECT_THAT(comparison.warnings, IsEmpty());
  EXPECT_EQ(comparison.rows[1].missing, 10u);
  EXPECT_EQ(comparison.rows[1].unfinished, 10u);
}

TEST(FindWarningsTest, NamesWhatIsScoredDifferentlyBeforeAllElse) {
  ComparisonInput input = Sound();
  for (Cell& cell : input.cells) {
    cell.scored = {{"model.context", cell.labels[0] == "post" ? "32" : "16"},
                   {"task.documents.dataset", cell.labels[0] == "none" ? "b" : "a"}};
    if (cell.labels[0] == "none") cell.scored.erase("model.context");
  }
  input.cells[0].outcome = RunOutcome::kFailed;
  const Comparison comparison = *Compare(input);
  ASSERT_GE(comparison.warnings.size(), 2u);
  EXPECT_EQ(comparison.warnings[0].text,
            "not evaluated on the same held-out data as the baseline, so without a verdict: “post” "
            "(model.context) and “none” (model.context, task.documents.dataset)");
}

TEST(FindWarningsTest, TellsNonFiniteValuesFromDivergence) {
  ComparisonInput input = Sound();
  input.cells[3].value = std::numeric_limits<double>::infinity();
  input.cells[4] = MakeCell({"pre"}, 4, kDivergedRun);
  EXPECT_THAT(
      Texts(input, WarningKind::kNonFiniteValues),
      ElementsAre("runs that ended without a finite held-out loss, counted as diverged: “pre” 1"));
  EXPECT_EQ(Compare(input)->rows[0].diverged, 2u);
}

TEST(FindWarningsTest, SaysHowManySeedsATestNeeds) {
  const std::vector<double> five = OracleR(1, 5), more = OracleR(2, 5);
  EXPECT_THAT(
      Texts(OneAxis({{"pre", five}, {"post", more}}), WarningKind::kTooFewSeeds),
      ElementsAre("too few pairs for p < 0.05 in the permutation test (6 are needed): “post” 5"));
  const std::vector<double> six = OracleR(3, 6), other = OracleR(4, 6);
  EXPECT_THAT(Texts(OneAxis({{"pre", six}, {"post", other}}), WarningKind::kTooFewSeeds),
              IsEmpty());
  EXPECT_THAT(
      Texts(OneAxis({{"pre", six}, {"post", other}, {"none", other}}), WarningKind::kTooFewSeeds),
      ElementsAre("too few pairs for p < 0.05 in the permutation test (Holm-adjusted for 2 "
                  "comparisons; 7 are needed): “post” 6 and “none” 6"));
}

TEST(FindWarningsTest, NamesUnequalParameters) {
  ComparisonInput input = Sound();
  for (Cell& cell : input.cells) {
    cell.parameters = cell.labels[0] == "pre" ? 25968 : cell.labels[0] == "post" ? 25952 : 25968;
  }
  EXPECT_THAT(Texts(input, WarningKind::kUnequalParameters),
              ElementsAre("unequal numbers of parameters: “post” 25,952 against 25,968"));
}

TEST(FindWarningsTest, NamesWhatElseChanged) {
  ComparisonInput input = Sound();
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "post") cell.changed = {{"model.norm.placement", "post"}};
    if (cell.labels[0] == "none") {
      cell.changed = {{"model.norm.placement", "none"}, {"model.norm.final", "false"}};
    }
  }
  EXPECT_THAT(
      Texts(input, WarningKind::kSeveralChanges),
      ElementsAre("more than one thing differs from the baseline: “none” (model.norm.final, "
                  "model.norm.placement)"));
}

TEST(FindWarningsTest, WhatFollowsFromAChangeIsNoSecondOne) {
  ComparisonInput input = Sound();
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "pre") continue;
    cell.changed = {{"model.norm.bias", cell.labels[0]}, {"model.norm.kind", cell.labels[0]}};
    if (cell.labels[0] == "post") cell.follows = {"model.norm.bias"};
  }
  EXPECT_THAT(Texts(input, WarningKind::kSeveralChanges),
              ElementsAre("more than one thing differs from the baseline: “none” (model.norm.bias, "
                          "model.norm.kind)"));
}

TEST(FindWarningsTest, CountsThePairsThatTheTestIsOf) {
  std::vector<double> diverged = Base(8);
  Diverge(&diverged, 0, 8);
  ComparisonInput input = OneAxis({{"pre", Base(8)}, {"post", diverged}});
  EXPECT_THAT(Texts(input, WarningKind::kTooFewSeeds), IsEmpty()) << "eight wins, eight losses";
  EXPECT_TRUE(Compare(input)->rows[1].exact) << "a sign test of the wins";
  ComparisonInput few = OneAxis({{"pre", Base(4)}, {"post", Shifted(Base(4), .1, .01)}});
  EXPECT_EQ(Texts(few, WarningKind::kTooFewSeeds).size(), 1u);
  few.exploratory = "asked for";
  EXPECT_THAT(Texts(few, WarningKind::kTooFewSeeds), IsEmpty()) << "nothing is tested";
}

TEST(FindWarningsTest, NamesWhatIsTunedOverOtherValues) {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("width", {"base", "wide"}),
                MakeAxis("lr", {"0.003", "0.01", "0.03"}, true, {.003, .01, .03})};
  for (const char* width : {"base", "wide"}) {
    for (const std::string lr : {"0.003", "0.01", "0.03"}) {
      if (width == std::string("base") && lr == "0.003") continue;
      for (uint32_t seed = 0; seed < 8; ++seed) {
        const double gain = width == std::string("wide") ? .05 + .001 * (seed % 3) : 0;
        const double of_rate = lr == "0.01" ? 0 : .2;
        input.cells.push_back(MakeCell({width, lr}, seed, 2 + .1 * seed + of_rate - gain));
      }
    }
  }
  EXPECT_THAT(Texts(input, WarningKind::kOtherCandidates),
              ElementsAre("lr tried at other values than the baseline's, so the permutation test "
                          "is approximate: “wide” (0.003, 0.01 and 0.03 against 0.01 and 0.03)"));
  const ComparisonRow row = Compare(input)->rows[1];
  EXPECT_LE(row.p.value, .05) << "columns bring their own candidates";
  EXPECT_TRUE(row.difference.by_reselection);
}

TEST(FindWarningsTest, HowOftenOneLooksIsNoChange) {
  ComparisonInput input = Sound();
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "pre") continue;
    cell.changed = {{"training.steps", "200"}, {"evaluation.every", "20"}};
    if (cell.labels[0] == "post") cell.changed["evaluation.batches"] = "3";
  }
  EXPECT_THAT(Texts(input, WarningKind::kSeveralChanges),
              ElementsAre("more than one thing differs from the baseline: “post” "
                          "(evaluation.batches, training.steps)"));
}

TEST(FindWarningsTest, NamesMixedProvenance) {
  ComparisonInput input = Sound();
  for (Cell& cell : input.cells) {
    cell.trainer = cell.labels[0] == "none" ? "native" : "torch";
    cell.version = "0.1.0";
    cell.device = cell.seed == 0 ? "cuda" : "cpu";
  }
  EXPECT_THAT(Texts(input, WarningKind::kMixedProvenance),
              ElementsAre("the runs used different trainers (12 × native; 24 × torch) and devices "
                          "(33 × cpu; 3 × cuda)"));
}

TEST(FindWarningsTest, NamesRunsThatSharedTheirCores) {
  ComparisonInput input = Sound();
  for (Cell& cell : input.cells) {
    cell.device_seconds = 10;
    cell.contended_seconds = 1;
    if (cell.labels[0] == "post" && cell.seed < 3) cell.contended_seconds = 2 + cell.seed;
  }
  input.cells[0].contended_seconds = 1.01;
  EXPECT_THAT(
      Texts(input, WarningKind::kContendedThroughput),
      ElementsAre(
          "device-seconds and tokens/s are unreliable because runs waited for a core: “pre” 1 of "
          "12 runs (10 % of their time) and “post” 3 of 12 runs (30 % of their time)"));
}

TEST(FindWarningsTest, SaysWhereTheBaselineIsMissing) {
  ComparisonInput input = Sound();
  input.cells.erase(input.cells.begin(), input.cells.begin() + 12);
  EXPECT_THAT(Texts(input, WarningKind::kNoBaseline),
              ElementsAre("the grid has no baseline for “post” and “none”"));
}

// Settings a and b at three learning rates; loss |learning_rate - best|, best by setting.
ComparisonInput Tuned(double best_a, double best_b, uint32_t seeds) {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("norm", {"a", "b"}), MakeAxis("lr", {"1", "2", "3"}, true, {1, 2, 3})};
  for (const auto& [label, best] : {std::pair("a", best_a), std::pair("b", best_b)}) {
    for (const double learning_rate : {1., 2., 3.}) {
      for (uint32_t seed = 0; seed < seeds; ++seed) {
        const double noise = .01 * OracleR(seed, 1)[0];
        input.cells.push_back(
            MakeCell({label, input.axes[1].labels[static_cast<size_t>(learning_rate) - 1]}, seed,
                     std::abs(learning_rate - best) + noise));
      }
    }
  }
  return input;
}

TEST(FindWarningsTest, WarnsAtTheEdgesOfAnOrderedGrid) {
  EXPECT_THAT(Texts(Tuned(2, 2, 8), WarningKind::kGridEdge), IsEmpty());
  EXPECT_THAT(
      Texts(Tuned(2, 3, 8), WarningKind::kGridEdge),
      ElementsAre(
          "selected lr at the edge of its grid: “b” selected the highest (3) on 8 of 8 seeds"));
  EXPECT_THAT(
      Texts(Tuned(1, 2, 8), WarningKind::kGridEdge),
      ElementsAre(
          "selected lr at the edge of its grid: “a” selected the lowest (1) on 8 of 8 seeds"));
}

TEST(FindWarningsTest, AnUnorderedAxisOrTwoValuesHaveNoEdge) {
  ComparisonInput unordered = Tuned(1, 3, 8);
  unordered.axes[1].values.clear();
  EXPECT_THAT(Texts(unordered, WarningKind::kGridEdge), IsEmpty());
  ComparisonInput two = Tuned(1, 1, 8);
  for (auto cell = two.cells.begin(); cell != two.cells.end();) {
    cell = cell->labels[1] == "3" ? two.cells.erase(cell) : cell + 1;
  }
  EXPECT_THAT(Texts(two, WarningKind::kGridEdge), IsEmpty());
}

TEST(FindWarningsTest, SaysWhenATunedValueWasChosenOnItsOwnRun) {
  EXPECT_THAT(Texts(Tuned(2, 2, 1), WarningKind::kTunedOnSameSeed),
              ElementsAre("lr selected on the compared run itself, because no other seed has a "
                          "result: “a” and “b”"));
  EXPECT_THAT(Texts(Tuned(2, 2, 2), WarningKind::kTunedOnSameSeed), IsEmpty());
}

TEST(FindWarningsTest, SaysWhichPairsWereAddedLater) {
  ComparisonInput input = Sound();
  EXPECT_THAT(Texts(input, WarningKind::kSeedsAdded), IsEmpty());
  for (Cell& cell : input.cells) cell.first_experiment = cell.seed < 4 ? 1 : 2;
  EXPECT_THAT(Texts(input, WarningKind::kSeedsAdded),
              ElementsAre(StartsWith("some pairs were submitted later than others")));
  input.cells.back().first_experiment = 3;  // in a third experiment
  EXPECT_THAT(Texts(input, WarningKind::kSeedsAdded), ElementsAre(testing::HasSubstr(" of ")));
  // All pairs are as new as the newer of their two runs.
  for (Cell& cell : input.cells) {
    if (cell.labels[0] != "pre") cell.first_experiment = 2;
    if (cell.labels[0] == "pre") cell.first_experiment = 1;
  }
  EXPECT_THAT(Texts(input, WarningKind::kSeedsAdded), IsEmpty());
}

// Returns a pair of settings with these differences.
ComparisonInput Differing(const std::vector<double>& differences) {
  std::vector<double> post = Base(differences.size());
  for (size_t i = 0; i < post.size(); ++i) post[i] += differences[i];
  return OneAxis({{"pre", Base(differences.size())}, {"post", post}});
}

TEST(FindWarningsTest, SaysWhereDifferencesAreSkewed) {
  std::vector<double> one_far = {.01, -.01, .02, -.02, .03, -.03, .01, .2};
  EXPECT_THAT(
      Texts(Differing(one_far), WarningKind::kSkewedDifferences),
      ElementsAre("the differences look skewed; if they are, settings with equal means get a "
                  "verdict in up to 18 % of experiments instead of 5 %; skewness: “post” +1.9"));
  one_far.back() = .05;
  EXPECT_THAT(Texts(Differing(one_far), WarningKind::kSkewedDifferences), IsEmpty());
  // The mean of many pairs is nearly normal.
  std::vector<double> many;
  for (int i = 0; i < 100; ++i) many.push_back(i % 20 == 0 ? .05 : i % 2 == 0 ? .01 : -.01);
  const Comparison comparison = *Compare(Differing(many));
  EXPECT_GT(comparison.rows[1].difference.skewness.value, 1.2);
  EXPECT_THAT(Texts(Differing(many), WarningKind::kSkewedDifferences), IsEmpty());
}

TEST(FindWarningsTest, SaysWhichTunedRowsAreDoubtfulBecauseOfTheirNoise) {
  const auto texts = [](double ratio) {
    return Texts(UnequalNoise(ratio, true), WarningKind::kUnequalNoise);
  };
  EXPECT_THAT(texts(3), ElementsAre(EndsWith("so these rows are probable at best: “b” varies 3.0 "
                                             "times as much as “a”")));
  EXPECT_THAT(texts(12.3), ElementsAre(EndsWith(": “b” varies 12 times as much as “a”")));
  EXPECT_THAT(texts(1.5), IsEmpty());
  ComparisonInput turned = UnequalNoise(3, true);
  turned.baseline = {{"norm", "b"}};
  EXPECT_THAT(Texts(turned, WarningKind::kUnequalNoise),
              ElementsAre(EndsWith(": “b” varies 3.0 times as much as “a”")));
  EXPECT_EQ(Decide(*Compare(turned), Compare(turned)->rows[0]).grade, Grade::kProbable);
}

TEST(FindWarningsTest, CountsEqualPairsIfTheyAreHalf) {
  EXPECT_THAT(Texts(Differing({0, 0, 0, 0, .1, -.1, .2, .1}), WarningKind::kManyTies),
              ElementsAre(EndsWith("; equal pairs: “post” 4 of 8")));
  EXPECT_THAT(Texts(Differing({0, 0, 0, .3, .1, -.1, .2, .1}), WarningKind::kManyTies), IsEmpty());
  ComparisonInput accuracy = OneAxis({{"pre", {1, 1, 1, .9}}, {"post", {1, 1, 1, 1}}});
  accuracy.better = Better::kHigher;
  EXPECT_THAT(Texts(accuracy, WarningKind::kManyTies),
              ElementsAre(EndsWith("“post” 3 of 4 at 1.00, the best value of any run: a ceiling")));
  accuracy.better = Better::kLower;
  EXPECT_THAT(Texts(accuracy, WarningKind::kManyTies), ElementsAre(EndsWith("“post” 3 of 4")));
  EXPECT_THAT(Texts(Differing({0, 0, 0, 0, 0, 0, 0, 0}), WarningKind::kManyTies), IsEmpty())
      << "identical, and so inconclusive";
  std::vector<double> many(20, 0);
  for (size_t i = 0; i < 10; ++i) many[i] = i % 2 == 0 ? .1 : -.05;
  EXPECT_THAT(Texts(Differing(many), WarningKind::kManyTies), IsEmpty());
}

TEST(WarningNameTest, NamesEachKindOnce) {
  std::set<absl::string_view> names;
  for (int i = 0; i <= static_cast<int>(WarningKind::kManyTies); ++i) {
    const absl::string_view name = WarningName(static_cast<WarningKind>(i));
    EXPECT_NE(name, "");
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace ablate::report
