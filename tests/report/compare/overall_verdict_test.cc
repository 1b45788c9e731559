// Tests verdicts over all rows, and their words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/report/compare/verdict.h"
#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ComparisonInput Placements() {
  return OneAxis({{"pre", Base(12)},
                  {"post", Shifted(Base(12), .03, .01)},
                  {"none", Shifted(Base(12), -.04, .01)}});
}

TEST(OverallVerdictTest, OfOneRowIsThatRows) {
  const Comparison comparison =
      *Compare(OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .03, .01)}}));
  EXPECT_EQ(OverallVerdict(comparison).text, RowVerdict(comparison, 1).text);
  EXPECT_EQ(OverallVerdict(comparison).outcome, VerdictOutcome::kWorse);
}

TEST(OverallVerdictTest, SaysHigherAndLowerWhereNeitherIsBetter) {
  ComparisonInput input = Placements();
  input.better = Better::kNeither;
  EXPECT_THAT(OverallVerdict(*Compare(input)).text,
              AllOf(HasSubstr("“post” is higher (h"), HasSubstr("“none” is lower (l")));
}

TEST(OverallVerdictTest, NamesEachRowWhileTheyAreFew) {
  ComparisonInput input = Placements();
  const Verdict verdict = OverallVerdict(*Compare(input));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kMixed);
  EXPECT_EQ(
      verdict.text,
      "held-out loss against “pre”: “post” is worse (higher by 0.030 [0.023, 0.037], p < 0.001) "
      "and “none” is better (lower by 0.040 [0.033, 0.047], p < 0.001).");
}

TEST(OverallVerdictTest, IsPreliminaryUntilTheLastRunHasEnded) {
  ComparisonInput input = Placements();
  for (size_t i = 20; i < 28; ++i) {
    Unfinish(&input.cells[i]);
  }
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(comparison.planned, 36u);
  EXPECT_EQ(comparison.ended, 28u);
  const Verdict verdict = OverallVerdict(comparison);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kPreliminary);
  EXPECT_EQ(verdict.text,
            "preliminary, 28 of 36 runs: there is no verdict before all of them have ended.");
  for (size_t i = 20; i < 28; ++i) input.cells[i] = Placements().cells[i];
  EXPECT_EQ(OverallVerdict(*Compare(input)).text, OverallVerdict(*Compare(Placements())).text);
}

TEST(OverallVerdictTest, NamesRowsThatCannotBeJudged) {
  ComparisonInput input = Placements();
  for (Cell& cell : input.cells) {
    cell.scored["task.documents.dataset"] = cell.labels[0] == "none" ? "b" : "a";
  }
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(comparison.family, 1u);
  EXPECT_EQ(
      OverallVerdict(comparison).text,
      "held-out loss against “pre”: “post” is worse (higher by 0.030 [0.023, 0.037], p < 0.001) "
      "and “none” is not comparable (evaluated on other held-out data).");
}

TEST(OverallVerdictTest, AgreesWithRowsThatAgree) {
  const Verdict verdict = OverallVerdict(*Compare(OneAxis({{"pre", Base(12)},
                                                           {"a", Shifted(Base(12), .003, .01)},
                                                           {"b", Shifted(Base(12), -.002, .01)}})));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(verdict.seeds.seeds, 262u) << "the most that a row needs";
}

TEST(OverallVerdictTest, ShowsDivergenceAndMissingPairs) {
  std::vector<double> some = Shifted(Base(12), .03, .01);
  Diverge(&some, 0, 2);
  ComparisonInput input = OneAxis({{"pre", Base(12)},
                                   {"some", some},
                                   {"all", std::vector<double>(12, kDivergedRun)},
                                   {"same", Base(12)},
                                   {"late", Base(12)}});
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "late") cell.outcome = RunOutcome::kMissing;
  }
  EXPECT_EQ(
      OverallVerdict(*Compare(input)).text,
      "held-out loss against “pre”: “some” is worse (higher by 0.030 [0.022, 0.038], 10 of 12 "
      "pairs converged, p = 0.002), “all” is worse (0 of 12 pairs converged, p = 0.002), “same” is "
      "inconclusive (identical values) and “late” has too few pairs for a verdict (no pairs, at "
      "least 8 seeds needed).");
}

TEST(OverallVerdictTest, CountsManyRows) {
  std::vector<std::pair<std::string, std::vector<double>>> settings = {{"pre", Base(12)}};
  for (const char* label : {"a", "b", "c", "d", "e"}) {
    settings.emplace_back(label, Shifted(Base(12), .03, .01));
  }
  settings.emplace_back("f", Shifted(Base(12), -.03, .01));
  settings.emplace_back("g", Shifted(Base(12), .001, .01));
  EXPECT_EQ(OverallVerdict(*Compare(OneAxis(settings))).text,
            "held-out loss against “pre”: 1 is better (“f”), 5 are worse (“a”, “b”, “c” and 2 "
            "more) and 1 is inconclusive (“g”).");
}

TEST(OverallVerdictTest, CountsEquivalentsTogetherWhicheverWayTheyGo) {
  std::vector<std::pair<std::string, std::vector<double>>> settings = {{"pre", Base(12)}};
  for (const double shift : {-.002, -.001, .001, .002, .003}) {
    settings.emplace_back(absl::StrCat("s", settings.size()), Shifted(Base(12), shift, .01));
  }
  ComparisonInput input = OneAxis(settings);
  input.margin = .05;
  EXPECT_THAT(OverallVerdict(*Compare(input)).text,
              HasSubstr(": 5 are equivalent (“s1”, “s2”, “s3” and 2 more)."));
}

TEST(OverallVerdictTest, SaysThatEverySettingIsItsOwnBaseline) {
  ComparisonInput input = OneAxis({{"pre", Base(4)}});
  input.axes.push_back(MakeAxis("width", {"a", "b"}));
  for (const char* width : {"a", "b"}) {
    for (size_t i = 0; i < 4; ++i) {
      Cell cell = input.cells[i];
      cell.labels.emplace_back(width);
      input.cells.push_back(cell);
    }
  }
  input.cells.erase(input.cells.begin(), input.cells.begin() + 4);
  input.by = "norm";
  EXPECT_EQ(OverallVerdict(*Compare(input)).text,
            "Nothing is compared: every setting is its own baseline.");
}

TEST(OverallVerdictTest, IsProbableWhereItsRowsAre) {
  const Verdict verdict = OverallVerdict(*Compare(OneAxis(
      {{"pre", Base(5)}, {"a", Shifted(Base(5), .03, .001)}, {"b", Shifted(Base(5), .04, .001)}})));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWorse);
  EXPECT_EQ(verdict.grade, Grade::kProbable);
}

TEST(OverallVerdictTest, DescribesWhatWasNotPlannedAndJudgesNothing) {
  ComparisonInput input = Placements();
  input.key = "train/loss";
  input.exploratory = "report.primary is eval/loss";
  const Verdict verdict = OverallVerdict(*Compare(input));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kExploratory);
  EXPECT_EQ(verdict.grade, Grade::kNoVerdict);
  EXPECT_EQ(
      verdict.text,
      "training loss against “pre”: exploratory (report.primary is eval/loss), without a verdict; "
      "“post” higher by 0.030 [0.023, 0.037] and “none” lower by 0.040 [0.033, 0.047].");
}

TEST(OverallVerdictTest, HasTheLeastGradeOfItsRows) {
  const Verdict verdict = OverallVerdict(*Compare(OneAxis(
      {{"pre", Base(12)}, {"a", Shifted(Base(12), .03, .01)}, {"b", Shifted(Base(12), 0, .01)}})));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kMixed);
  EXPECT_EQ(verdict.grade, Grade::kInconclusive);
}

TEST(OverallVerdictTest, SaysWhyNothingIsCompared) {
  EXPECT_EQ(OverallVerdict(*Compare(OneAxis({{"pre", Base(3)}}))).text,
            "Nothing is compared: there is one setting.");
  ComparisonInput input = Placements();
  input.cells.erase(input.cells.begin(), input.cells.begin() + 12);
  EXPECT_EQ(OverallVerdict(*Compare(input)).text, "Nothing is compared: there is no baseline.");
}

}  // namespace
}  // namespace ablate::report
