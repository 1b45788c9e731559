#include "server/report/table/headline_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ablate::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Entry = HeadlineNumbers::Entry;
using Values = std::vector<double>;

Entry BaselineEntry(const Values& values) {
  Entry entry;
  entry.own = Summarize(values);
  entry.runs = values.size();
  return entry;
}

Entry ComparedEntry(const Values& values, const Values& baseline) {
  Entry entry;
  entry.own = Summarize(values);
  entry.runs = values.size();
  entry.difference = ComparePairs(values, baseline, 0, Signs::kLeaveOut);
  entry.baseline = {"the baseline"};
  return entry;
}

// An analysis of one number, with a baseline and a setting.
HeadlineNumbers Of(const std::string& label, const Values& values, const Values& baseline) {
  HeadlineNumbers analysis;
  analysis.label = label;
  analysis.numbers = {"entropy"};
  analysis.lines = {{"pre", true, false, 1000, {BaselineEntry(baseline)}},
                    {"post", false, true, 1000, {ComparedEntry(values, baseline)}}};
  return analysis;
}

std::vector<std::string> Lines(const Column& column) {
  std::vector<std::string> lines;
  for (const TableCell& cell : column.cells) lines.push_back(OneLine(cell));
  return lines;
}

TEST(NumbersTableTest, HasTheDifferenceBelowAMean) {
  std::vector<HeadlineNumbers> analyses = {Of("attention", {2, 2.1, 2.3, 2.2}, {1, 1.2, 1.1, 1.3})};
  const Table table = NumbersTable(analyses[0]);
  ASSERT_EQ(table.columns.size(), 3u);
  EXPECT_EQ(table.columns[2].title, "entropy");
  EXPECT_THAT(Lines(table.columns[0]), ElementsAre("pre", "post"));
  EXPECT_THAT(Lines(table.columns[1]), ElementsAre("1,000", "1,000"));
  EXPECT_THAT(Lines(table.columns[2]),
              ElementsAre("1.15 [0.94, 1.36]", "2.15 +1.00 [+0.77, +1.23]"));
  EXPECT_THAT(table.baselines, ElementsAre(true, false));
  EXPECT_THAT(RenderLatex(table),
              HasSubstr("\\shortstack[r]{2.15 \\\\ \\scriptsize +1.00 {[}+0.77, +1.23{]}}"));
  TestTogether("eval/loss", &analyses);
  EXPECT_THAT(Lines(NumbersTable(analyses[0]).columns[2])[1], EndsWith("+1.23]*"));
}

TEST(NumbersTableTest, LeavesItToTheLegendThatThereAreNoIntervals) {
  std::vector<HeadlineNumbers> analyses = {Of("attention", {2}, {1.5})};
  EXPECT_THAT(Lines(NumbersTable(analyses[0]).columns[2]), ElementsAre("1.50", "2.00 +0.500"));
  EXPECT_THAT(NumbersLegend(analyses), HasSubstr("Without brackets: too few runs"));
  analyses[0] = Of("attention", {2, 2.2}, {1, 1.1});
  EXPECT_THAT(NumbersLegend(analyses), Not(HasSubstr("Without brackets")));
  EXPECT_EQ(NumbersLegend({}), "");
}

TEST(NumbersTableTest, HasReasonsAndMissingRuns) {
  HeadlineNumbers analysis = Of("attention", {2, 2}, {1, 1});
  analysis.lines[1].entries[0].left_out = 4;
  EXPECT_THAT(Lines(NumbersTable(analysis).columns[2]),
              ElementsAre("1.00 (no spread)", "2.00 +1.00 (no spread; 2 of 6 runs)"));
  analysis.lines[1].entries[0].difference = NoPairs(Undefined::kScoredDifferently);
  EXPECT_THAT(Lines(NumbersTable(analysis).columns[2])[1],
              AllOf(StartsWith("2.00 ("), HasSubstr("data")));
  analysis.lines[1].entries[0] = ComparedEntry({}, {});
  EXPECT_THAT(Lines(NumbersTable(analysis).columns[2])[1], HasSubstr("too few"));
}

TEST(NumbersTableTest, ShadesBaselinesOnly) {
  HeadlineNumbers analysis = Of("attention", {2, 2}, {1, 1});
  analysis.lines[0].is_baseline = false;
  EXPECT_THAT(NumbersTable(analysis).baselines, ElementsAre(false, false));
}

TEST(NumbersLegendTest, SaysWhatSequencesAreAbout) {
  std::vector<HeadlineNumbers> analyses = {Of("predictions", {2, 2.2}, {1, 1.1})};
  EXPECT_THAT(NumbersLegend(analyses), Not(HasSubstr("by sequence")));
  analyses[0].lines[1].entries[0].unit = Unit::kSequence;
  EXPECT_THAT(NumbersLegend(analyses), HasSubstr("about these models, not about others"));
  TestTogether("eval/loss", &analyses);
  EXPECT_THAT(NumbersLegend(analyses), EndsWith("adjusted for 1 difference of this experiment's "
                                                "analyses."));
}

TEST(NumbersLegendTest, SaysWhyEqualDifferencesHaveNoP) {
  std::vector<HeadlineNumbers> analyses = {Of("a", {2, 3}, {1, 2})};
  EXPECT_THAT(Lines(NumbersTable(analyses[0]).columns[2])[1], HasSubstr("(no spread)"));
  EXPECT_THAT(NumbersLegend(analyses), HasSubstr("No spread: the difference is the same in every"));
  analyses = {Of("a", {2, 3}, {1, 2.2})};
  EXPECT_THAT(NumbersLegend(analyses), Not(HasSubstr("No spread")));
}

TEST(ConstantsTest, AreNumbersThatAllRunsShare) {
  HeadlineNumbers analysis = Of("a", {2, 2.1}, {1, 1.2});
  const auto add = [&](const std::string& name, const Values& baseline, const Values& values) {
    analysis.numbers.push_back(name);
    analysis.lines[0].entries.push_back(BaselineEntry(baseline));
    analysis.lines[1].entries.push_back(ComparedEntry(values, baseline));
  };
  add("sink_share", {0, 0}, {0, 0});
  add("one", {0.25, 0.25}, {0.25, 0.5});
  add("majority", {0.25, 0.25}, {0.25, 0.25});
  add("moved", {0.25, 0.25}, {0.5, 0.5});
  add("lacking", {0.25, 0.25}, {0.25, 0.25});
  analysis.lines[1].entries.back().left_out = 1;
  SetConstantsApart(&analysis);
  EXPECT_THAT(analysis.numbers, ElementsAre("entropy", "one", "moved", "lacking"));
  EXPECT_EQ(NumbersTable(analysis).columns.size(), 2u + 4);
  EXPECT_EQ(analysis.lines[1].entries[2].own.mean.value, 0.5);
  EXPECT_EQ(ConstantsText(analysis), "The same in every run: sink_share 0, majority 0.250.");
  analysis.lines.resize(1);
  SetConstantsApart(&analysis);
  EXPECT_THAT(analysis.numbers, SizeIs(4)) << "nothing to compare with";
  EXPECT_EQ(ConstantsText(Of("a", {2}, {1})), "");
}

TEST(NumbersTableTest, ShowsRatios) {
  HeadlineNumbers analysis =
      Of("flow", {std::log(4.), std::log(4.4)}, {std::log(2.), std::log(2.)});
  for (HeadlineNumbers::Line& line : analysis.lines) line.entries[0].scale = Scale::kRatio;
  EXPECT_THAT(Lines(NumbersTable(analysis).columns[2])[1], HasSubstr("×2.1"));
}

SignificantDifferences Tested(std::vector<HeadlineNumbers> analyses,
                              const std::string& primary = "eval/loss") {
  TestTogether(primary, &analyses);
  return FindSignificant(analyses);
}

TEST(SignificantDifferencesTest, AreTestedTogether) {
  // p of one test is .02; of three tests together, none is below .05.
  const Values baseline = {1, 2, 3, 4}, worse = {1.5, 2.2, 3.6, 4.9}, same = {1.1, 1.9, 3.2, 3.7};
  const HeadlineNumbers one = Of("a", worse, baseline);
  const SignificantDifferences alone = Tested({one});
  EXPECT_EQ(alone.tested, 1u);
  EXPECT_EQ(alone.significant, 1u);
  const Values other = {1.1, 1.9, 3.2, 3.8};
  const SignificantDifferences many =
      Tested({one, Of("b", same, baseline), Of("c", other, baseline)});
  EXPECT_EQ(many.tested, 3u);
  EXPECT_EQ(many.significant, 0u);
  EXPECT_TRUE(many.table.columns[0].cells.empty());
}

TEST(SignificantDifferencesTest, BeginWithTheSmallestP) {
  const Values baseline = {1, 2, 3, 4};
  const SignificantDifferences found =
      Tested({Of("a", {1.5, 2.5, 3.5, 4.55}, baseline), Of("b", {1.5, 2.5, 3.5, 4.51}, baseline)});
  EXPECT_EQ(found.significant, 2u);
  const std::vector<Column>& columns = found.table.columns;
  EXPECT_THAT(Lines(columns[0]), ElementsAre("b/entropy", "a/entropy"));
  EXPECT_THAT(Lines(columns[1]), ElementsAre("post", "post"));
  EXPECT_THAT(Lines(columns[2]), ElementsAre("the baseline", "the baseline"));
  EXPECT_THAT(Lines(columns[3])[0], HasSubstr("+0.5"));
  EXPECT_THAT(Lines(columns[4]), ElementsAre("4 seeds", "4 seeds"));
  EXPECT_THAT(Lines(columns[5]), ElementsAre("<0.001", "<0.001"));
}

TEST(SignificantDifferencesTest, NameStepsIfThereAreSeveral) {
  HeadlineNumbers analysis = Of("a", {1.5, 2.5, 3.5, 4.51}, {1, 2, 3, 4});
  HeadlineNumbers::Line early = analysis.lines[1];
  early.step = 0;
  analysis.lines.push_back(early);
  const std::vector<std::string> numbers = Lines(Tested({analysis}).table.columns[0]);
  EXPECT_THAT(numbers, ElementsAre("a/entropy at 1,000", "a/entropy at 0"));
}

TEST(SignificantDifferencesTest, LeaveOutWhatHasNoSpread) {
  EXPECT_EQ(Tested({Of("a", {2, 3}, {1, 2}), Of("b", {1}, {2})}).tested, 0u);
}

TEST(SignificantDifferencesTest, LeaveOutThePrimaryMetric) {
  const HeadlineNumbers one = Of("a", {1.5, 2.5, 3.5, 4.51}, {1, 2, 3, 4});
  EXPECT_EQ(Tested({one}, "a/entropy").tested, 0u);
}

TEST(SignificantDifferencesTest, CountANumberWithTwoNamesOnce) {
  const HeadlineNumbers one = Of("a", {1.5, 2.5, 3.5, 4.51}, {1, 2, 3, 4});
  HeadlineNumbers twin = one;
  twin.label = "b";
  twin.lines[1].entries[0].difference.mean.value *= 1 + 1e-14;
  EXPECT_EQ(Tested({one, twin}).tested, 1u);
}

TEST(SignificantDifferencesTest, WaitForTheEndOfRuns) {
  HeadlineNumbers one = Of("a", {1.5, 2.5, 3.5, 4.51}, {1, 2, 3, 4});
  one.lines[1].entries[0].ended = false;
  EXPECT_EQ(Tested({one}).tested, 0u);
}

TEST(SignificantDifferencesTest, AreNotTooMany) {
  std::vector<HeadlineNumbers> analyses;
  for (int i = 0; i < 30; ++i) {
    analyses.push_back(
        Of(absl::StrCat("a", i), {1.5, 2.5, 3.5, 4.5 + i * 1e-4 + 1e-5}, {1, 2, 3, 4}));
  }
  const SignificantDifferences found = Tested(analyses);
  EXPECT_EQ(found.significant, 30u);
  EXPECT_EQ(found.table.columns[0].cells.size(), kMaxSignificant);
  EXPECT_EQ(found.table.columns[0].cells[0].text, "a0/entropy");
}

}  // namespace
}  // namespace ablate::report
