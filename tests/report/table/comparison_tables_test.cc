// Tests tables of a comparison: their columns and cells.
#include "server/report/table/comparison_tables.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/verdict.h"
#include "server/report/html/sections.h"
#include "server/report/table/cells.h"
#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Comparison Compared(const ComparisonInput& input) {
  absl::StatusOr<Comparison> comparison = Compare(input);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return *std::move(comparison);
}

std::string TextOf(const Comparison& comparison, const RowWindows& windows) {
  return ComparisonText(comparison, FindingsOf(comparison), windows);
}

// Returns the cells of the column `title`, each in one line.
std::vector<std::string> Cells(const Table& table, const std::string& title) {
  for (const Column& column : table.columns) {
    if (column.title != title) continue;
    std::vector<std::string> lines;
    for (const TableCell& cell : column.cells) lines.push_back(OneLine(cell));
    return lines;
  }
  return {absl::StrCat("there is no column ", title)};
}

std::vector<std::string> Titles(const Table& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  return titles;
}

// Three settings over a tuned learning rate; post and none are worse and better by a little.
ComparisonInput TunedGrid() {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("placement", {"pre", "post", "none"}),
                MakeAxis("lr", {"0.002", "0.004", "0.008"}, true, {.002, .004, .008})};
  input.axes[1].base = "0.008";
  const std::vector<double> base = Base(12);
  const double shifts[3][3] = {{.02, 0, .05}, {.03, .06, .3}, {0, -.04, .02}};
  for (size_t setting = 0; setting < 3; ++setting) {
    for (size_t learning_rate = 0; learning_rate < 3; ++learning_rate) {
      const auto losses =
          Shifted(base, shifts[setting][learning_rate], .002 * static_cast<double>(setting));
      for (uint32_t seed = 0; seed < 12; ++seed) {
        input.cells.push_back(
            MakeCell({input.axes[0].labels[setting], input.axes[1].labels[learning_rate]}, seed,
                     losses[seed]));
        input.cells.back().parameters = 25'968 - 16 * static_cast<int64_t>(setting);
        input.cells.back().device_seconds = 10;
      }
    }
  }
  return input;
}

// Returns ten rows, each of another kind.
ComparisonInput CanonicalGrid() {
  const std::vector<double> base = Base(24), first(base.begin(), base.begin() + 8);
  std::vector<double> diverging = Shifted(first, .03, .002);
  Diverge(&diverging, 0, 2);
  diverging[2] = first[2];
  ComparisonInput input = OneAxis({{"pre", base},
                                   {"worse", Shifted(first, .03, .002)},
                                   {"leaning", Shifted(first, .01, .013)},
                                   {"same", first},
                                   {"one pair", {2.5}},
                                   {"two diverged, one tie", diverging},
                                   {"all diverged", std::vector<double>(3, kDivergedRun)},
                                   {"of 24 pairs", Shifted(base, .01, .04)},
                                   {"two missing, one failed", Shifted(first, -.04, .001)},
                                   {"without a pair", {}}});
  for (Cell& cell : input.cells) {
    cell.parameters = cell.labels[0] == "worse" && cell.seed > 0 ? 25'696 : 25'968;
    cell.device_seconds = 1.5;
    if (cell.labels[0] != "same") cell.tokens_per_second = 12'345;
    if (cell.labels[0] != "two missing, one failed" || cell.seed > 2) continue;
    cell.outcome = cell.seed == 2 ? RunOutcome::kFailed : RunOutcome::kMissing;
    cell.value.reset();
  }
  for (const uint32_t seed : {100, 101, 102}) {
    input.cells.push_back(MakeCell({"without a pair"}, seed, 2.4 + .01 * seed));
  }
  return input;
}

// Compares with the file, and writes the replacement if it differs.
void ExpectGolden(const std::string& name, const std::string& actual) {
  const std::string golden = absl::StrCat(ABLATE_SOURCE "/tests/report/table/", name);
  const std::string found = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(found) << actual;
  std::ostringstream expected;
  expected << std::ifstream(golden).rdbuf();
  EXPECT_EQ(actual, expected.str()) << "cp " << found << " " << golden;
}

TEST(MainTableTest, IsTheSameInAllFourForms) {
  const Table table = MainTable(Compared(CanonicalGrid()));
  ExpectGolden("main_table.txt", RenderText(table));
  ExpectGolden("main_table.csv", RenderCsv(table));
  ExpectGolden("main_table.tex", RenderLatex(table));
  html::Markup markup;
  html::WriteTable(table, "Main table", "Ten rows.", &markup);
  ExpectGolden("main_table.html", markup.Take());
}

std::vector<std::string> IdsOf(const Table& table) {
  std::vector<std::string> ids;
  for (const Column& column : table.columns) ids.push_back(column.id);
  return ids;
}

TEST(MainTableTest, HasEveryColumnThatCanBeChosen) {
  ComparisonInput tuned = TunedGrid();
  for (Cell& cell : tuned.cells) cell.tokens_per_second = 1'000;
  std::vector<std::string> ids = {""};  // of the settings
  for (const absl::string_view id : kMainColumns) ids.emplace_back(id);
  EXPECT_EQ(IdsOf(MainTable(Compared(tuned))), ids);
}

TEST(MainTableTest, KeepsTheChosenColumnsInTheirOrder) {
  const Table table = MainTable(Compared(CanonicalGrid()));
  const Table chosen = WithColumns(table, {"p_holm", "n", "chosen", "mean"});
  EXPECT_EQ(IdsOf(chosen), (std::vector<std::string>{"", "p_holm", "n", "mean"}))
      << "nothing is tuned";
  EXPECT_EQ(chosen.columns[0].cells.size(), 10u);
  EXPECT_EQ(GroupsOf(chosen).size(), 4u) << "each in its group";
  EXPECT_EQ(chosen.note, table.note);
}

TEST(BriefTableTest, SaysMetricChoiceDifferenceAndWins) {
  EXPECT_EQ(RenderText(BriefTable(Compared(TunedGrid()))),
            "held-out loss, each at its selected lr  mean    Δ vs pre [95 % CI]          p (Holm)  "
            " wins  diverged\n"
            "pre   lr 0.004                          2.3987  —                                  —  "
            "    —         0\n"
            "post  lr 0.002                          2.4287  +0.0300 [+0.0218, +0.0360]    <0.001  "
            " 0/12         0\n"
            "none  lr 0.004                          2.3587  −0.0400 [−0.0427, −0.0373]    <0.001  "
            "12/12         0\n");
}

TEST(BriefTableTest, SaysStepAndDirection) {
  ComparisonInput input = OneAxis({{"pre", Base(6)}, {"post", Shifted(Base(6), .1, .01)}});
  input.better = Better::kHigher;
  input.at = 100;
  input.exploratory = "planned: the end of the runs";
  const Table table = BriefTable(Compared(input));
  EXPECT_EQ(table.note, "exploratory: planned: the end of the runs");
  EXPECT_THAT(Titles(table), Not(Contains("p (Holm)")));
  EXPECT_EQ(GroupsOf(MainTable(Compared(input)))[2].name, "held-out loss at step 100");
  EXPECT_THAT(Cells(DataTable(Compared(input)), "step"), ElementsAre("100", "100"));
  EXPECT_EQ(table.columns[0].title, "held-out loss at step 100, higher is better");
}

TEST(BriefTableTest, HasNoWinsWhereNeitherIsBetter) {
  ComparisonInput input = OneAxis({{"pre", Base(6)}, {"post", Shifted(Base(6), .1, .01)}});
  input.better = Better::kNeither;
  EXPECT_THAT(Titles(BriefTable(Compared(input))), Not(Contains("wins")));
  EXPECT_THAT(Titles(MainTable(Compared(input))), Not(Contains("wins")));
}

TEST(CellsTest, ShowShareOfSeedsWhereTheChoiceVaries) {
  ComparisonRow row;
  row.chosen = {{{"0.001"}, 2}, {{"0.002"}, 6}, {{"0.004"}, 3}, {{"0.008"}, 1}};
  EXPECT_EQ(ChosenText(row), "0.002 (6/12), 0.004 (3/12), 0.001 (2/12), 1 more");
  EXPECT_EQ(ChosenText(row, {"lr"}), "lr 0.002 (6/12), 0.004 (3/12), 0.001 (2/12), 1 more");
  row.chosen = {{{"0.001", "0"}, 1}, {{"0.002", "0.1"}, 1}};
  EXPECT_EQ(ChosenText(row, {"lr", "wd"}), "lr 0.001, wd 0 (1/2), lr 0.002, wd 0.1 (1/2)");
}

TEST(CellsTest, LeaveOutAnIntervalThatNoNumberCanHold) {
  PairedStatistics difference;
  difference.mean = Defined(.0312);
  difference.interval = DefinedInterval(-800, 800);
  EXPECT_EQ(OneLine(DifferenceCell(Scale::kRatio, difference)), "×1.03");
}

TEST(CellsTest, NeverPrintAnIntervalAsAPoint) {
  const Comparison comparison = Compared(OneAxis({{"pre", Base(8)},
                                                  {"near", Shifted(Base(8), .0001094, .0000008)},
                                                  {"far", Shifted(Base(8), .0154, .05)}}));
  const int decimals = DifferenceDecimals(comparison);
  const auto cell = [&](size_t row) {
    return OneLine(DifferenceCell(Scale::kDifference, comparison.rows[row].difference, decimals));
  };
  EXPECT_THAT(cell(1), StartsWith("+1.09e−4 [+1.0"));
  EXPECT_THAT(cell(2), StartsWith("+0.0"));
}

// Rows of two runs around a mean: the interval is wide, but of the mean's magnitude.
TEST(CellsTest, NeverPrintASmallMeanAsZero) {
  const auto means = [](const std::vector<std::pair<std::string, std::vector<double>>>& settings) {
    const Comparison comparison = Compared(OneAxis(settings));
    std::vector<std::string> cells;
    for (const ComparisonRow& row : comparison.rows) {
      cells.push_back(MeanCell(row.mean, row.interval, MeanDecimals(comparison)).text);
    }
    return cells;
  };
  EXPECT_THAT(means({{"a", {3.9e-7, 4e-7, 4.1e-7}}, {"b", {4.9e-7, 5e-7, 5.1e-7}}}),
              ElementsAre("4.00e−7", "5.00e−7"));
  EXPECT_THAT(means({{"a", {2.3, 2.4, 2.5}}, {"b", {0.9e-9, 1e-9, 1.1e-9}}}),
              ElementsAre(testing::StartsWith("2.4"), "1.00e−9"));
  EXPECT_THAT(means({{"a", {2.4}}, {"b", {1e-9}}}), ElementsAre("2.40", "1.00e−9"));
}

TEST(MainTableTest, LeavesOutColumnsWithoutACell) {
  const std::vector<std::string> titles = Titles(MainTable(Compared(TunedGrid())));
  EXPECT_THAT(titles, ElementsAre("placement", "parameters", "selected lr", "n", "diverged",
                                  "mean [95 % CI]", "Δ [95 % CI]", "p (sign flip)", "p (Holm)",
                                  "Cohen d_z", "wins", "Pearson r", "device-s"));
}

TEST(MainTableTest, NamesTheBaselineOfEachCombination) {
  ComparisonInput input = TunedGrid();
  input.axes[1].tuned = false;
  input.by = "placement";
  input.baseline = {{"placement", "none"}};
  EXPECT_EQ(BaselineName(Compared(input)), "none");
  input.by = "";
  input.baseline = {};
  EXPECT_EQ(BaselineName(Compared(input)), "pre, lr 0.002");
}

TEST(DataTableTest, HasExactNumbersAndNothingForWhatIsUndefined) {
  const Comparison comparison = Compared(OneAxis({{"pre", {.1}}, {"post", {.1 + .2}}}));
  const Table table = DataTable(comparison);
  EXPECT_THAT(Cells(table, "mean"), ElementsAre("0.1", "0.30000000000000004"));
  EXPECT_THAT(Cells(table, "difference"), ElementsAre("", "0.20000000000000004"));
  EXPECT_THAT(Cells(table, "difference_low"), ElementsAre("", ""));
  EXPECT_THAT(Cells(table, "baseline"), ElementsAre("true", "false"));
  EXPECT_THAT(Cells(table, "norm"), ElementsAre("pre", "post"));
  const Table tuned = DataTable(Compared(TunedGrid()));
  EXPECT_THAT(Cells(tuned, "parameters"), ElementsAre("25968", "25952", "25936"));
  EXPECT_THAT(Cells(tuned, "most_parameters"), ElementsAre("", "", ""));
}

TEST(DataTableTest, CountsNoPairsOfABaseline) {
  const Table table = DataTable(Compared(TunedGrid()));
  for (const char* title : {"wins", "losses", "ties", "pairs", "pairs_converged"}) {
    EXPECT_EQ(Cells(table, title)[0], "") << title;
    EXPECT_NE(Cells(table, title)[1], "") << title;
  }
}

TEST(DataTableTest, RenamesAnAxisThatIsCalledLikeANumber) {
  ComparisonInput input = OneAxis({{"a", Base(3)}, {"b", Base(3)}});
  for (const char* name : {"mean", "grade", "scale", "p_t_holm", "step"}) {
    input.axes[0].name = name;
    const Table table = DataTable(Compared(input));
    EXPECT_THAT(Cells(table, absl::StrCat("axis_", name)), ElementsAre("a", "b"));
  }
}

// Returns two settings of which the second is 1.42 times the first, ± a tenth.
ComparisonInput RatioGrid() {
  std::vector<double> pre, post;
  for (int seed = 0; seed < 8; ++seed) {
    pre.push_back(std::exp(seed - 4));
    post.push_back(1.42 * pre.back() * std::exp(seed % 2 == 0 ? .1 : -.1));
  }
  ComparisonInput input = OneAxis({{"pre", pre}, {"post", post}});
  input.key = "train/gradient_norm";
  input.better = Better::kNeither;
  input.scale = Scale::kRatio;
  return input;
}

TEST(RatioTablesTest, SayRatiosAndGeometricMeans) {
  const Comparison comparison = Compared(RatioGrid());
  const Table brief = BriefTable(comparison);
  EXPECT_THAT(Titles(brief), ElementsAre("gradient norm", "geometric mean",
                                         "ratio to pre [95 % CI]", "p (Holm)", "diverged"));
  EXPECT_THAT(Cells(brief, "ratio to pre [95 % CI]"), ElementsAre("", "×1.42 [1.30, 1.55]"));
  const Table table = MainTable(comparison);
  EXPECT_THAT(Titles(table), Contains("geometric mean [95 % CI]"));
  EXPECT_THAT(RenderLatex(table), HasSubstr("$\\times$1.42 {[}1.30, 1.55{]}"));
  EXPECT_THAT(TextOf(comparison, {}),
              HasSubstr("in gradient norm: higher by a factor of 1.42 [1.30, 1.55]; over 8 seeds"));
}

TEST(RatioTablesTest, HaveTheLogarithmsDifferenceAndTheRatioAsData) {
  const Comparison comparison = Compared(RatioGrid());
  const Table table = DataTable(comparison);
  const PairedStatistics& of = comparison.rows[1].difference;
  const auto number = [&](const std::string& title) {
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(Cells(table, title)[1], &value)) << title;
    return value;
  };
  EXPECT_THAT(Cells(table, "scale"), ElementsAre("ratio", "ratio"));
  EXPECT_EQ(number("difference"), of.mean.value);
  EXPECT_EQ(number("difference_low"), of.interval.low);
  EXPECT_EQ(number("ratio"), std::exp(of.mean.value));
  EXPECT_EQ(number("ratio_low"), std::exp(of.interval.low));
  EXPECT_EQ(number("ratio_high"), std::exp(of.interval.high));
  EXPECT_EQ(Cells(table, "ratio")[0], "") << "a baseline";
  const Table plain = DataTable(Compared(TunedGrid()));
  EXPECT_THAT(Cells(plain, "scale"), ElementsAre("difference", "difference", "difference"));
  EXPECT_THAT(Cells(plain, "ratio"), ElementsAre("", "", ""));
}

TEST(MatchedTableTest, TellsMeansWithoutABaselineFromDifferences) {
  ComparisonInput input = OptimizersGrid();
  input.axes[1].base = "0.01";
  const Table table = MatchedTable(*Compare(input));
  ASSERT_EQ(table.columns.size(), 6u);
  EXPECT_EQ(table.columns[2].title, "0.01 (reference)");
  const auto& reference = table.columns[2].cells;
  EXPECT_EQ(reference[0].note, "");
  EXPECT_EQ(reference[1].note, "not in the grid");
  EXPECT_THAT(reference[2].text, testing::StartsWith("+0.20"));
  EXPECT_THAT(table.columns[3].cells[1].text, testing::StartsWith("2.8"));
  EXPECT_EQ(table.columns[3].cells[1].note, "mean; no baseline here");
}

TEST(SelectionTableTest, CountsSeedsByTheirSelectedValue) {
  EXPECT_EQ(RenderText(SelectionTable(Compared(TunedGrid()))),
            "                seeds by selected lr\n"
            "placement       0.002          0.004\n"
            "pre (baseline)      —             12\n"
            "post               12              —\n"
            "none                —             12\n");
  ComparisonInput alike = TunedGrid();
  for (Cell& cell : alike.cells) cell.value = cell.labels[1] == "0.004" ? 2 : 3;
  EXPECT_EQ(SelectionTable(Compared(alike)).columns.size(), 1u) << "all selected one value";
  EXPECT_EQ(SelectionTable(Compared(CanonicalGrid())).columns.size(), 1u) << "nothing is tuned";
}

TEST(SelectionTableTest, HasAGroupPerTunedAxis) {
  ComparisonInput input = TunedGrid();
  input.axes.push_back(MakeAxis("decay", {"0", "0.1"}, true, {0, .1}));
  for (Cell& cell : input.cells) cell.labels.push_back("0");
  const size_t cells = input.cells.size();
  for (size_t i = 0; i < cells; ++i) {
    Cell cell = input.cells[i];
    cell.labels[2] = "0.1";
    *cell.value += cell.labels[0] == "none" ? -.1 : .1;
    input.cells.push_back(cell);
  }
  const Table table = SelectionTable(Compared(input));
  EXPECT_EQ(Cells(table, "0.1"), (std::vector<std::string>{"", "", "12"}));
  ASSERT_EQ(GroupsOf(table).size(), 3u);
  EXPECT_EQ(GroupsOf(table)[2].name, "seeds by selected decay");
  EXPECT_THAT(TextOf(Compared(input), {}), HasSubstr("seeds by selected decay"));
}

TEST(ComparisonTextTest, PutsTableNoteVerdictAndWindowsOnLines) {
  const Comparison comparison = Compared(TunedGrid());
  RowWindows windows;
  windows.windows = {{"train/loss", {WindowSide::kLast, 100, Reduction::kMean}}};
  for (size_t row = 0; row < 3; ++row) {
    const std::vector<WindowValue> runs = {
        {Defined(2.5), 100, 0}, {Defined(2.7), 90, 0}, {NoNumber(Undefined::kNonFinite), 100, 1}};
    windows.rows.push_back({SummarizeWindow(runs)});
    EXPECT_EQ(windows.rows[row][0].left_out, 1u);
    EXPECT_EQ(windows.rows[row][0].fewest_points, 90u);
  }
  const std::string text = TextOf(comparison, windows);
  EXPECT_THAT(text, HasSubstr("\nAll at lr 0.008: “post” higher by 0.250"));
  EXPECT_THAT(text, HasSubstr("\n" + OverallVerdict(comparison).text + "\n"));
  EXPECT_THAT(text, HasSubstr("\nwarning: "));
  EXPECT_THAT(text, HasSubstr("\nnote: each lr is selected by leave-one-seed-out; the permutation "
                              "test repeats the selection\n"));
  EXPECT_THAT(text, HasSubstr("training loss, mean of the last 100"));
  EXPECT_THAT(text, HasSubstr("2.6 [1.3, 3.9] (2 of 3 runs)"));
}

TEST(ComparisonTextTest, SaysWhereMeansAreOfOtherSeeds) {
  ComparisonInput input = OneAxis({{"pre", Base(8)}, {"post", Shifted(Base(8), .1, .01)}});
  const std::string even = TextOf(Compared(input), {});
  EXPECT_THAT(even, Not(HasSubstr("need not equal")));
  EXPECT_THAT(Titles(BriefTable(Compared(input))), Not(Contains("n")));
  input.cells.resize(14);  // without the last two seeds of “post”
  const Comparison uneven = Compared(input);
  EXPECT_THAT(
      TextOf(uneven, {}),
      HasSubstr("\nnote: a setting's mean is over its paired seeds, the baseline's over all its "
                "seeds, so their difference need not equal Δ\n"));
  EXPECT_THAT(Cells(BriefTable(uneven), "n"), ElementsAre("8", "6"));
}

TEST(ComparisonTextTest, TellsEffectsOfCrossedAxes) {
  const ComparisonInput input = NormByResidual([](bool post, bool plain) {
    const bool both = post && plain;
    return Shifted(Base(8), (post ? .03 : 0) + (plain ? .1 : 0) + (both ? .05 : 0), both ? .01 : 0);
  });
  const std::string text = TextOf(Compared(input), {});
  EXPECT_THAT(
      text,
      HasSubstr("\ncrossed axes:\n"
                "effect                       combinations  n  Δ [95 % CI]                 p (sign "
                "flip)  p (Holm)\n"
                "post against pre                        2  8  +0.0550 [+0.0505, +0.0595]          "
                "0.008     0.016\n"
                "residual false against true             2  8  +0.1250 [+0.1205, +0.1295]          "
                "0.008     0.016\n"
                "post × residual false                   1  8  +0.0500 [+0.0411, +0.0589]          "
                "0.008     0.008\n"));
  EXPECT_THAT(TextOf(Compared(TunedGrid()), {}), Not(HasSubstr("crossed axes")));
}

TEST(ComparisonTextTest, SaysFirstThatRunsHaveNotEnded) {
  ComparisonInput input = TunedGrid();
  const size_t planned = input.cells.size();
  Unfinish(&input.cells[1]);
  const Comparison comparison = Compared(input);
  const std::string preliminary =
      absl::StrCat("preliminary, ", planned - 1, " of ", planned, " runs");
  const std::string text = TextOf(comparison, {});
  EXPECT_THAT(text, StartsWith(absl::StrCat(preliminary, "\n")));
  for (const char* word : {"better", "worse", "inconclusive", "most of", "the sign of"}) {
    EXPECT_THAT(text, Not(HasSubstr(word)));
  }
  EXPECT_THAT(Titles(BriefTable(comparison)), Not(Contains("p (Holm)")))
      << "of rows of which none has ended";
  EXPECT_THAT(RenderText(MainTable(comparison)), StartsWith(absl::StrCat(preliminary, "\n")));
  EXPECT_THAT(RenderLatex(MainTable(comparison)),
              HasSubstr(absl::StrCat("{l}{", preliminary, "} \\\\\n\\midrule\n")));
  const Table data = DataTable(comparison);
  EXPECT_EQ(Cells(data, "ended")[1], absl::StrCat(planned - 1));
  EXPECT_EQ(Cells(data, "planned")[1], absl::StrCat(planned));
  EXPECT_EQ(Cells(data, "verdict")[0], "");
  EXPECT_EQ(Cells(data, "verdict")[1], "preliminary");
  EXPECT_THAT(RenderCsv(data), StartsWith("key,label,"));
  EXPECT_EQ(RenderText(MainTable(Compared(TunedGrid()))).find("preliminary"), std::string::npos);
}

}  // namespace
}  // namespace ablate::report
