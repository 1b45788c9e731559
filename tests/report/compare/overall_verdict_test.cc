// Verdicts over all rows, and the note on one shared tuned value: the wording, case by case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/report/compare/verdict.h"
#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::HasSubstr;

constexpr double kDiv = kDivergedRun;

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
  input.key = "spectrum/participation_ratio";
  input.better = Better::kNeither;
  EXPECT_EQ(OverallVerdict(*Compare(input)).text,
            "spectrum/participation_ratio against “pre”: “post” is higher (higher by .030 [.023, "
            ".037], p < "
            ".001) and “none” is lower (lower by .040 [.033, .047], p < .001).");
}

TEST(OverallVerdictTest, NamesEachRowWhileTheyAreFew) {
  ComparisonInput input = Placements();
  const Verdict verdict = OverallVerdict(*Compare(input));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kMixed);
  EXPECT_EQ(verdict.text,
            "held-out loss against “pre”: “post” is worse (higher by .030 [.023, .037], p < .001) "
            "and “none” is "
            "better (lower by .040 [.033, .047], p < .001).");
}

TEST(OverallVerdictTest, IsPreliminaryUntilTheLastRunHasEnded) {
  ComparisonInput input = Placements();
  for (size_t i = 20; i < 28; ++i) {
    input.cells[i].outcome = RunOutcome::kUnfinished;
    input.cells[i].value.reset();
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
  EXPECT_EQ(OverallVerdict(comparison).text,
            "held-out loss against “pre”: “post” is worse (higher by .030 [.023, .037], p < .001) "
            "and “none” is "
            "without a verdict (scored on other data).");
}

TEST(OverallVerdictTest, AgreesWithRowsThatAgree) {
  const Verdict verdict = OverallVerdict(*Compare(OneAxis({{"pre", Base(12)},
                                                           {"a", Shifted(Base(12), .003, .01)},
                                                           {"b", Shifted(Base(12), -.002, .01)}})));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kInconclusive);
  EXPECT_EQ(verdict.text,
            "held-out loss against “pre”: “a” is inconclusive (+.003 [−.004, +.010], about 120 "
            "seeds needed) and "
            "“b” is inconclusive (−.002 [−.009, +.005], about 260 seeds needed).");
  EXPECT_EQ(verdict.seeds_to_decide, 262u);
}

TEST(OverallVerdictTest, ShowsDivergenceAndMissingPairs) {
  std::vector<double> some = Shifted(Base(12), .03, .01);
  Diverge(&some, 0, 2);
  ComparisonInput input = OneAxis({{"pre", Base(12)},
                                   {"some", some},
                                   {"all", std::vector<double>(12, kDiv)},
                                   {"same", Base(12)},
                                   {"late", Base(12)}});
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "late") cell.outcome = RunOutcome::kMissing;
  }
  EXPECT_EQ(
      OverallVerdict(*Compare(input)).text,
      "held-out loss against “pre”: “some” is worse (higher by .030 [.022, .038], 10 of 12 pairs "
      "converged, p = "
      ".002), “all” is worse (0 of 12 pairs converged, p = .002), “same” is inconclusive "
      "(identical "
      "values) and “late” is without a verdict (too few pairs, no pairs, at least 8 seeds "
      "needed).");
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
            "more) and 1 is "
            "inconclusive (“g”).");
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

TEST(OverallVerdictTest, SaysWhatIsOnlyProbable) {
  const Verdict verdict = OverallVerdict(*Compare(OneAxis(
      {{"pre", Base(5)}, {"a", Shifted(Base(5), .03, .001)}, {"b", Shifted(Base(5), .04, .001)}})));
  EXPECT_EQ(
      verdict.text,
      "held-out loss against “pre”: “a” is probably worse (higher by .0302 [.0288, .0316], by the "
      "t-test, p < "
      ".001) and “b” is probably worse (higher by .0402 [.0388, .0416], by the t-test, p < .001).");
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
      "“post” higher by .030 [.023, .037] and “none” lower by .040 [.033, .047].");
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

// Setting "post" needs a lower rate than "pre"; at its own best it is .03 worse, at the shared one
// .3.
ComparisonInput TunedPlacements() {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("placement", {"pre", "post", "none"}),
                MakeAxis("lr", {"0.002", "0.004", "0.01"}, true, {.002, .004, .01})};
  const double losses[3][3] = {{.02, 0, .01}, {.03, .05, .3}, {-.02, -.04, -.03}};
  const std::vector<double> base = Base(12);
  for (size_t setting = 0; setting < 3; ++setting) {
    for (size_t rate = 0; rate < 3; ++rate) {
      const std::vector<double> values =
          Shifted(base, losses[setting][rate], setting == 0 ? 0 : .004);
      for (uint32_t seed = 0; seed < 12; ++seed) {
        input.cells.push_back(MakeCell({input.axes[0].labels[setting], input.axes[1].labels[rate]},
                                       seed, values[seed]));
      }
    }
  }
  return input;
}

TEST(VerdictTest, SaysThatValuesWereTuned) {
  const Comparison comparison = *Compare(TunedPlacements());
  EXPECT_EQ(OverallVerdict(comparison).text,
            "held-out loss against “pre”, each at its chosen lr: “post” is worse (higher by "
            ".0300 [.0273, .0327], p "
            "< .001) and “none” is better (lower by .0400 [.0373, .0427], p < .001).");
  EXPECT_EQ(RowVerdict(comparison, 2).text,
            "“none” is better than “pre”: held-out loss lower by .0400 [.0373, .0427] over 12 "
            "seeds, each at its "
            "chosen lr; p < .001 with Holm over 2 rows, the least that 12 pairs allow.");
}

TEST(MatchedNoteTest, NamesTheDifferenceThatIsTheTunedValues) {
  ComparisonInput input = TunedPlacements();
  input.axes[1].base = "0.01";
  EXPECT_EQ(MatchedNote(*Compare(input)),
            "At one lr (.01): “post” higher by .2900 [.2873, .2927] and “none” lower by .0400 "
            "[.0373, .0427]; most "
            "of “post”'s "
            "difference there is its lr.");
  input.axes[1].base.reset();  // the baseline's usual choice
  EXPECT_EQ(MatchedNote(*Compare(input)),
            "At one lr (.004): “post” higher by .0500 [.0473, .0527] and “none” lower by .0400 "
            "[.0373, .0427].");
}

TEST(MatchedNoteTest, NamesASignThatDependsOnTheTunedValue) {
  ComparisonInput input = TunedPlacements();
  input.axes[1].base = "0.002";
  for (Cell& cell : input.cells) {
    if (cell.labels[0] == "pre" && cell.labels[1] == "0.002") *cell.value += .1;
  }
  EXPECT_THAT(MatchedNote(*Compare(input)),
              HasSubstr("the sign of “post”'s difference depends on lr"));
}

TEST(MatchedNoteTest, LeavesOutWhatIsScoredOnOtherData) {
  ComparisonInput input = TunedPlacements();
  input.axes[1].base = "0.01";
  for (Cell& cell : input.cells) cell.scored["data"] = cell.labels[0] == "post" ? "b" : "a";
  EXPECT_EQ(MatchedNote(*Compare(input)), "At one lr (.01): “none” lower by .0400 [.0373, .0427].");
}

TEST(MatchedNoteTest, IsEmptyWhereNothingIsTuned) {
  EXPECT_EQ(MatchedNote(*Compare(Placements())), "");
}

}  // namespace
}  // namespace ablate::report
