// Ten cases in which a page of the first version said what was not so, each held by its words: the
// card of the first screen and the sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/headline.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/verdict.h"
#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// "Higher by .030 [.023, .037], 1.2 % of “pre”; … | p = …": a row's card as one text.
std::string CardOf(const Comparison& comparison, size_t row) {
  const Headline headline = HeadlineOf(comparison, row);
  return absl::StrCat(headline.lead, " ", headline.rest, " | ",
                      absl::StrJoin(headline.facts, " | "));
}

// pre and post, which is worse by .03 on each of 12 seeds.
ComparisonInput Worse(size_t seeds = 12) {
  return OneAxis({{"pre", Base(seeds)}, {"post", Shifted(Base(seeds), .03, .01)}});
}

const auto kNoVerdict = AllOf(Not(HasSubstr("is worse")), Not(HasSubstr("is better")));

TEST(WordingCasesTest, AnUnfinishedGridIsNotJudged) {
  ComparisonInput input = Worse();
  input.cells.back().outcome = RunOutcome::kUnfinished;
  input.cells.back().value.reset();
  const Comparison comparison = *Compare(input);
  EXPECT_THAT(CardOf(comparison, 1),
              StartsWith("No verdict yet: 11 of 12 runs, “pre” 12 of 12; +.0"));
  EXPECT_THAT(CardOf(comparison, 1), HasSubstr(" so far"));
  EXPECT_EQ(OverallVerdict(comparison).text,
            "preliminary, 23 of 24 runs: there is no verdict before all of them have ended.");
  EXPECT_THAT(RowVerdict(comparison, 1).text, kNoVerdict);
}

TEST(WordingCasesTest, AnotherMetricIsExploratory) {
  ComparisonInput input = Worse();
  input.key = "train/loss";
  input.exploratory = "report.primary is eval/loss";
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(CardOf(comparison, 1), "Exploratory: higher by .030 [.023, .037] | ");
  EXPECT_THAT(RowVerdict(comparison, 1).text,
              AllOf(HasSubstr("exploratory (report.primary is eval/loss), so no verdict; training "
                              "loss higher by .030"),
                    kNoVerdict));
}

TEST(WordingCasesTest, TwoSeedsAreTooFew) {
  const Comparison comparison = *Compare(Worse(2));
  EXPECT_THAT(CardOf(comparison, 1), AllOf(StartsWith("No verdict: fewer than 3 pairs; +.0"),
                                           HasSubstr("| at least 6 seeds are needed")));
  EXPECT_THAT(RowVerdict(comparison, 1).text,
              AllOf(HasSubstr("no verdict below 3 pairs"), kNoVerdict));
}

TEST(WordingCasesTest, TwelveSettingsOfWhichOneStandsOutByChance) {
  std::vector<std::pair<std::string, std::vector<double>>> settings = {{"pre", Base(8)}};
  for (int i = 1; i < 12; ++i) {
    // The first is better on every seed but not by more than eleven rows may show by chance.
    settings.push_back({absl::StrCat("s", i), Shifted(Base(8), i == 1 ? -.03 : .0005 * i, .02)});
  }
  const Comparison comparison = *Compare(OneAxis(settings));
  EXPECT_THAT(CardOf(comparison, 1),
              AllOf(StartsWith("Leans lower by .030 [.012, .048], "),
                    HasSubstr("p = .008 alone, but p = .086 with Holm over 11 rows")));
  EXPECT_THAT(RowVerdict(comparison, 1).text, AllOf(HasSubstr("leans better"), kNoVerdict));
}

TEST(WordingCasesTest, WithoutABaselineNothingIsCompared) {
  ComparisonInput input = Worse();
  // The baseline is in no cell of the grid.
  input.axes[0].labels = {"absent", "pre", "post"};
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(OverallVerdict(comparison).text, "Nothing is compared: there is no baseline.");
}

TEST(WordingCasesTest, WhatAllDivergedIsWorseByItsLosses) {
  const Comparison comparison =
      *Compare(OneAxis({{"pre", Base(8)}, {"post", std::vector<double>(8, kDivergedRun)}}));
  EXPECT_EQ(CardOf(comparison, 1),
            "Worse: “post” diverged on 8 of 8 seeds, “pre” on 0 | p = .008, "
            "the least that 8 pairs allow");
}

TEST(WordingCasesTest, IdenticalSettingsAreNotCalledEqual) {
  const Comparison comparison = *Compare(OneAxis({{"pre", Base(8)}, {"post", Base(8)}}));
  EXPECT_EQ(CardOf(comparison, 1),
            "Inconclusive: identical over 8 seeds | see whether the setting takes effect");
  EXPECT_THAT(RowVerdict(comparison, 1).text, Not(HasSubstr("equivalent")));
}

TEST(WordingCasesTest, OtherHeldOutDataIsNotComparable) {
  ComparisonInput input = Worse();
  for (Cell& cell : input.cells) cell.scored["task.documents.dataset"] = cell.labels[0];
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(CardOf(comparison, 1),
            "Not comparable: scored on other held-out data (task.documents.dataset) | ");
  EXPECT_THAT(RowVerdict(comparison, 1).text, kNoVerdict);
}

TEST(WordingCasesTest, NeitherIsALongerContext) {
  ComparisonInput input = OneAxis({{"16", Base(8)}, {"32", Shifted(Base(8), -.1, .01)}});
  input.axes[0].name = "context";
  for (Cell& cell : input.cells) cell.scored["model.context"] = cell.labels[0];
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(CardOf(comparison, 1),
            "Not comparable: scored on other held-out data (model.context) | ");
  EXPECT_THAT(RowVerdict(comparison, 1).text,
              AllOf(StartsWith("“context 32” against “context 16”: no verdict"), kNoVerdict));
}

TEST(WordingCasesTest, ASettingCalledNoneIsSeenToBeOne) {
  const Comparison comparison =
      *Compare(OneAxis({{"pre", Base(8)}, {"none", Shifted(Base(8), -.03, .01)}}));
  EXPECT_THAT(RowVerdict(comparison, 1).text, StartsWith("“none” is better than “pre”: "));
}

TEST(HeadlineTest, SaysDirectionSizeShareAndWins) {
  EXPECT_EQ(CardOf(*Compare(Worse()), 1),
            "Higher by .030 [.023, .037], 1.3 % of “pre”; worse on 12 of 12 seeds | p < .001, the "
            "least that 12 pairs allow");
  EXPECT_EQ(MeasuredIn(*Compare(Worse())), "Held-out loss (nats per token, lower is better)");
}

TEST(HeadlineTest, SaysNoWinsAndNoShareWhereNeitherIsBetter) {
  ComparisonInput input = Worse();
  input.better = Better::kNeither;
  EXPECT_THAT(CardOf(*Compare(input), 1),
              AllOf(StartsWith("Higher by .030 [.023, .037]"), Not(HasSubstr(" on 12 of"))));
}

TEST(HeadlineTest, SaysWhatIsOnlyProbable) {
  const Comparison comparison =
      *Compare(OneAxis({{"pre", Base(5)}, {"post", Shifted(Base(5), .03, .001)}}));
  EXPECT_THAT(CardOf(comparison, 1), AllOf(StartsWith("Probably higher by .0302 [.0288, .0316], "),
                                           HasSubstr(" | p < .001, by the t-test")));
  EXPECT_EQ(ProbableNote(comparison),
            "probably: so few pairs cannot reach p < .05 in a sign-flip test, so this rests on "
            "roughly normal differences; 6 seeds would let the sign-flip test decide");
  EXPECT_EQ(ProbableNote(*Compare(Worse())), "");
}

TEST(HeadlineTest, SaysWhatIsEquivalent) {
  ComparisonInput input = OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .001, .01)}});
  input.margin = .02;
  EXPECT_THAT(CardOf(*Compare(input), 1),
              AllOf(StartsWith("Equivalent: +.001 [−.006, +.008]; worse on "),
                    HasSubstr(" | smaller than .02 either way (p < .001)")));
}

TEST(HeadlineTest, SaysThatAMarginIsNotShownToHold) {
  ComparisonInput input = OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .003, .01)}});
  input.margin = .004;
  const Comparison comparison = *Compare(input);
  EXPECT_THAT(CardOf(comparison, 1),
              HasSubstr("| p = .369 | not shown to be smaller than .004 either way (p = ."));
  EXPECT_THAT(RowVerdict(comparison, 1).text,
              HasSubstr(", p = .369; not shown to be smaller than .004 either way (p = ."));
}

TEST(HeadlineTest, SaysTheAdjustedPOfWhatIsInconclusive) {
  const Comparison comparison = *Compare(OneAxis({{"pre", Base(12)},
                                                  {"post", Shifted(Base(12), .003, .01)},
                                                  {"none", Shifted(Base(12), .002, .01)}}));
  EXPECT_THAT(CardOf(comparison, 1), HasSubstr("| p = .738 with Holm over 2 rows |"));
}

TEST(HeadlineTest, SaysWhatMoreSeedsWouldDo) {
  EXPECT_THAT(
      CardOf(*Compare(OneAxis({{"pre", Base(12)}, {"post", Shifted(Base(12), .003, .01)}})), 1),
      AllOf(StartsWith("Inconclusive: +.003 [−.004, +.010]; worse on "),
            HasSubstr("| p = .369 | the least difference that 12 seeds would find")));
}

// pre and post at two rates, of which post does badly at the one that is the base's.
ComparisonInput Tuned(double at_base) {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("norm", {"pre", "post"}),
                MakeAxis("lr", {"0.004", "0.01"}, true, {.004, .01})};
  input.axes[1].base = "0.01";
  const double shifts[2][2] = {{.05, 0}, {.03, at_base}};
  for (size_t norm = 0; norm < 2; ++norm) {
    for (size_t lr = 0; lr < 2; ++lr) {
      const std::vector<double> values = Shifted(Base(12), shifts[norm][lr], norm == 0 ? 0 : .002);
      for (uint32_t seed = 0; seed < 12; ++seed) {
        input.cells.push_back(
            MakeCell({input.axes[0].labels[norm], input.axes[1].labels[lr]}, seed, values[seed]));
      }
    }
  }
  return input;
}

TEST(HeadlineTest, SaysWhatOneSharedRateWouldHaveSaid) {
  EXPECT_THAT(
      CardOf(*Compare(Tuned(.3)), 1),
      HasSubstr(
          "| at the shared lr .01 it is higher by .3000: nine tenths of that is due to the lr"));
}

}  // namespace
}  // namespace ablate::report
