#include "server/report/table/analysis_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ablate::report {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

using Entry = AnalysisNumbers::Entry;
using Values = std::vector<double>;

Entry BaselineEntry(const Values& values) {
  Entry entry;
  entry.own = Summarize(values);
  entry.runs = values.size();
  entry.difference = NoPairs(Undefined::kIsBaseline);
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
AnalysisNumbers Of(const std::string& label, const Values& values, const Values& baseline) {
  AnalysisNumbers analysis;
  analysis.label = label;
  analysis.numbers = {"entropy"};
  analysis.lines = {{"pre", false, 1000, {BaselineEntry(baseline)}},
                    {"post", true, 1000, {ComparedEntry(values, baseline)}}};
  return analysis;
}

std::vector<std::string> Lines(const Column& column) {
  std::vector<std::string> lines;
  for (const TableCell& cell : column.cells) lines.push_back(OneLine(cell));
  return lines;
}

TEST(NumbersTableTest, HasTheDifferenceBelowAMean) {
  const Table table = NumbersTable(Of("attention", {2, 2.1, 2.3, 2.2}, {1, 1.2, 1.1, 1.3}));
  ASSERT_EQ(table.columns.size(), 3u);
  EXPECT_EQ(table.columns[2].title, "entropy");
  EXPECT_THAT(Lines(table.columns[0]), ElementsAre("pre", "post"));
  EXPECT_THAT(Lines(table.columns[1]), ElementsAre("1,000", "1,000"));
  EXPECT_THAT(Lines(table.columns[2]),
              ElementsAre("1.15 [0.94, 1.36]", "2.15 +1.00 [+0.77, +1.23]"));
  EXPECT_THAT(table.baselines, ElementsAre(true, false));
  EXPECT_EQ(table.note,
            "after a mean: of a baseline its 95 % interval, of other settings the paired "
            "difference from the baseline (×: ratio) with its 95 % interval");
}

TEST(NumbersTableTest, SaysOnceThatThereAreNoIntervals) {
  const Table table = NumbersTable(Of("attention", {2}, {1.5}));
  EXPECT_THAT(Lines(table.columns[2]), ElementsAre("1.50", "2.00 +0.500"));
  EXPECT_THAT(table.note, EndsWith("; no intervals: too few runs"));

  AnalysisNumbers mixed = Of("attention", {2}, {1.5});
  mixed.numbers.push_back("loss");
  mixed.lines[0].entries.push_back(BaselineEntry({1, 1.1}));
  mixed.lines[1].entries.push_back(ComparedEntry({2, 2.2}, {1, 1.1}));
  EXPECT_THAT(NumbersTable(mixed).note, EndsWith("without brackets: too few runs for an interval"));
}

TEST(NumbersTableTest, HasReasonsAndMissingRuns) {
  AnalysisNumbers analysis = Of("attention", {2, 2}, {1, 1});
  analysis.lines[1].entries[0].left_out = 4;
  EXPECT_THAT(Lines(NumbersTable(analysis).columns[2]),
              ElementsAre("1.00 (no spread)", "2.00 +1.00 (no spread; 2 of 6 runs)"));
  analysis.lines[1].entries[0] = ComparedEntry({}, {});
  EXPECT_THAT(Lines(NumbersTable(analysis).columns[2])[1], HasSubstr("too few"));
}

TEST(NumbersTableTest, ShowsRatios) {
  AnalysisNumbers analysis =
      Of("flow", {std::log(4.), std::log(4.4)}, {std::log(2.), std::log(2.)});
  for (AnalysisNumbers::Line& line : analysis.lines) line.entries[0].scale = Scale::kRatio;
  EXPECT_THAT(Lines(NumbersTable(analysis).columns[2])[1], HasSubstr("×2.1"));
}

TEST(SureDifferencesTest, AreTestedTogether) {
  // p of one test is .02; of three tests together, none is below .05.
  const Values baseline = {1, 2, 3, 4}, worse = {1.5, 2.2, 3.6, 4.9}, same = {1.1, 1.9, 3.2, 3.7};
  const AnalysisNumbers one = Of("a", worse, baseline);
  const SureDifferences alone = FindSureDifferences({one});
  EXPECT_EQ(alone.tested, 1u);
  EXPECT_EQ(alone.sure, 1u);
  const SureDifferences many =
      FindSureDifferences({one, Of("b", same, baseline), Of("c", same, baseline)});
  EXPECT_EQ(many.tested, 3u);
  EXPECT_EQ(many.sure, 0u);
  EXPECT_TRUE(many.table.columns[0].cells.empty());
}

TEST(SureDifferencesTest, BeginWithTheSurest) {
  const Values baseline = {1, 2, 3, 4};
  const SureDifferences found = FindSureDifferences(
      {Of("a", {1.5, 2.5, 3.5, 4.55}, baseline), Of("b", {1.5, 2.5, 3.5, 4.51}, baseline)});
  EXPECT_EQ(found.sure, 2u);
  const std::vector<Column>& columns = found.table.columns;
  EXPECT_THAT(Lines(columns[0]), ElementsAre("b/entropy", "a/entropy"));
  EXPECT_THAT(Lines(columns[1]), ElementsAre("post", "post"));
  EXPECT_THAT(Lines(columns[2]), ElementsAre("the baseline", "the baseline"));
  EXPECT_THAT(Lines(columns[3])[0], HasSubstr("+0.5"));
  EXPECT_THAT(Lines(columns[4]), ElementsAre("4 seeds", "4 seeds"));
  EXPECT_THAT(Lines(columns[5]), ElementsAre("<0.001", "<0.001"));
}

TEST(SureDifferencesTest, NameStepsIfThereAreSeveral) {
  AnalysisNumbers analysis = Of("a", {1.5, 2.5, 3.5, 4.51}, {1, 2, 3, 4});
  AnalysisNumbers::Line early = analysis.lines[1];
  early.step = 0;
  analysis.lines.push_back(early);
  const std::vector<std::string> numbers = Lines(FindSureDifferences({analysis}).table.columns[0]);
  EXPECT_THAT(numbers, ElementsAre("a/entropy at 1,000", "a/entropy at 0"));
}

TEST(SureDifferencesTest, LeaveOutWhatHasNoSpread) {
  const SureDifferences found = FindSureDifferences({Of("a", {2, 3}, {1, 2}), Of("b", {1}, {2})});
  EXPECT_EQ(found.tested, 0u);
}

TEST(SureDifferencesTest, AreNotTooMany) {
  std::vector<AnalysisNumbers> analyses;
  for (int i = 0; i < 30; ++i) {
    analyses.push_back(
        Of(absl::StrCat("a", i), {1.5, 2.5, 3.5, 4.5 + i * 1e-4 + 1e-5}, {1, 2, 3, 4}));
  }
  const SureDifferences found = FindSureDifferences(analyses);
  EXPECT_EQ(found.sure, 30u);
  EXPECT_EQ(found.table.columns[0].cells.size(), kMaxSure);
  EXPECT_EQ(found.table.columns[0].cells[0].text, "a0/entropy");
}

}  // namespace
}  // namespace ablate::report
