// Tests dot plots: outliers, long labels, the order of rows; and forest and summary with many
// settings.
#include "server/report/figure/dot_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/report/figure/dot_marks.h"
#include "tests/report/figure/example_grids.h"
#include "tests/report/figure/text_boxes.h"

namespace ablate::figure {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;
using testing::Not;

DotRow RowAt(const std::string& label, double mean, std::vector<double> seeds) {
  DotRow row;
  row.label = label;
  row.mean = report::Defined(mean);
  row.interval = report::DefinedInterval(mean - .01, mean + .01);
  for (const double seed : seeds) row.seeds.push_back({seed, std::nullopt});
  return row;
}

DotPlot PlotOf(std::vector<DotRow> rows) {
  DotPlot dots;
  dots.groups.resize(1);
  dots.groups[0].rows = std::move(rows);
  dots.zero = true;
  dots.footnote = "bar";
  return dots;
}

std::vector<std::string> TextList(const Figure& figure) {
  std::vector<std::string> texts;
  for (const Text& text : figure.texts) texts.push_back(text.text);
  return texts;
}

// Returns markers of a kind in a panel, one layer after another.
std::vector<Points> MarkersOf(const Panel& panel, const std::vector<Marker>& markers) {
  std::vector<Points> found;
  for (const Points& points : LayersOf<Points>(panel)) {
    if (points.radius < 1.2) continue;  // seeds are smaller
    if (std::count(markers.begin(), markers.end(), points.marker) > 0) found.push_back(points);
  }
  return found;
}

std::vector<Points> ArrowsOf(const Panel& panel) {
  return MarkersOf(panel, {Marker::kTriangleLeft, Marker::kTriangleRight});
}

const Text& TextOf(const Figure& figure, const std::string& text) {
  static const Text kNone;
  for (const Text& one : figure.texts) {
    if (one.text == text) return one;
  }
  ADD_FAILURE() << text;
  return kNone;
}

TEST(DotPlotTest, ShowsARowThatIsFarFromTheOthersAsAnArrowWithItsValue) {
  const DotPlot dots = PlotOf(
      {RowAt("a", .02, {.01, .03}), RowAt("b", -.01, {-.02, 0}), RowAt("far", -3, {-2.9, -3.1})});
  for (const double width : kWidths) {
    const auto figure = DrawDotPlot(dots, width);
    ASSERT_TRUE(figure.ok()) << figure.status();
    const Panel& panel = figure->panels[0];
    EXPECT_GT(panel.x.low, -.05) << "the others have the axis";
    const std::vector<Points> arrows = ArrowsOf(panel);
    ASSERT_EQ(arrows.size(), 2u) << "of the seeds and of the mean";
    for (const Points& arrow : arrows) {
      EXPECT_EQ(arrow.marker, Marker::kTriangleLeft);
      EXPECT_NEAR(arrow.x[0], panel.x.low, .1 * (panel.x.high - panel.x.low));
    }
    EXPECT_THAT(TextList(*figure), Contains("−3.000"));
    EXPECT_THAT(TextList(*figure).back(),
                HasSubstr("bar; arrows: beyond the axis, 1 mean and 2 seeds"));
  }
}

TEST(DotPlotTest, ShowsASeedThatIsFarFromTheRowsAsAnArrow) {
  std::vector<DotRow> rows = {RowAt("a", .02, {.01, .03}), RowAt("b", .01, {-.01, 0}),
                              RowAt("c", -.01, {-.02, 0})};
  rows[1].seeds.push_back({.9, 7});
  const auto one = DrawDotPlot(PlotOf(rows), 6.75);
  EXPECT_LT(one->panels[0].x.high, .1);
  ASSERT_EQ(ArrowsOf(one->panels[0]).size(), 1u);
  EXPECT_THAT(ArrowsOf(one->panels[0])[0].titles, ElementsAre("seed 7: 0.900"));
  EXPECT_THAT(TextList(*one), Contains("+0.900"));
  EXPECT_THAT(TextList(*one).back(), HasSubstr("beyond the axis, 1 seed"));
  rows[1].seeds.push_back({1.5, 8});
  const auto two = DrawDotPlot(PlotOf(rows), 6.75);
  EXPECT_THAT(ArrowsOf(two->panels[0])[0].titles, ElementsAre("seed 7: 0.900, seed 8: 1.50"));
  EXPECT_THAT(TextList(*two), Contains("2 to +1.50"));
}

TEST(DotPlotTest, ShowsAnIntervalThatGoesFarBeyondTheOthersUpToTheEdge) {
  std::vector<DotRow> rows = {RowAt("a", .02, {}), RowAt("b", .01, {}), RowAt("wide", .01, {})};
  rows[2].interval = report::DefinedInterval(-9, 9.02);
  const auto figure = DrawDotPlot(PlotOf(rows), 3.25);
  EXPECT_LT(figure->panels[0].x.high, .1);
  const std::vector<Points> arrows = ArrowsOf(figure->panels[0]);
  ASSERT_EQ(arrows.size(), 2u);
  EXPECT_NE(arrows[0].marker, arrows[1].marker);
  EXPECT_THAT(TextList(*figure).back(), HasSubstr("beyond the axis, 1 interval"));
}

TEST(DotPlotTest, WritesNoValueOverMarks) {
  std::vector<DotRow> rows = {RowAt("a", .02, {.01, .03}), RowAt("b", .01, {.029, .9}),
                              RowAt("c", .02, {.03, 0})};
  const auto figure = DrawDotPlot(PlotOf(rows), 3.25);
  EXPECT_EQ(ArrowsOf(figure->panels[0]).size(), 1u);
  EXPECT_THAT(TextList(*figure), Not(Contains("+0.900"))) << "the seed at 0.029 stands there";
}

TEST(DotPlotTest, HasOneScaleForTwoRowsAndForRowsThatAreNotMuchFurther) {
  for (const auto& rows :
       {std::vector<DotRow>{RowAt("a", .01, {}), RowAt("far", 3, {})},
        std::vector<DotRow>{RowAt("a", .02, {}), RowAt("b", .02, {}), RowAt("c", .25, {})}}) {
    const auto figure = DrawDotPlot(PlotOf(rows), 6.75);
    EXPECT_GT(figure->panels[0].x.high, rows.back().mean.value);
    EXPECT_THAT(ArrowsOf(figure->panels[0]), IsEmpty());
    EXPECT_EQ(TextList(*figure).back(), "bar");
  }
}

TEST(DotPlotTest, HasOneScaleWhereMostRowsEqualTheBaseline) {
  std::vector<DotRow> rows(3);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].mean = report::Defined(i == 2 ? 1 : 0);
  const auto figure = DrawDotPlot(PlotOf(rows), 6.75);
  EXPECT_GT(figure->panels[0].x.high, 1);
  EXPECT_THAT(ArrowsOf(figure->panels[0]), IsEmpty());
}

TEST(DotPlotTest, BreaksALongLabelSoThatItCrossesNeitherMarksNorZero) {
  for (const double width : kWidths) {
    const auto figure =
        DrawDotPlot(PlotOf({RowAt("a", 1, {1}), RowAt("post, without any_residual.path", 2, {2}),
                            RowAt("b", 3, {3})}),
                    width);
    ASSERT_TRUE(figure.ok());
    const Panel& panel = figure->panels[0];
    std::string label;
    for (const Text& text : figure->texts) {
      if (text.size != 8 || text.align != Align::kLeft) continue;
      EXPECT_LT(text.x + TextWidth(text.text, text.size), panel.left) << text.text;
      absl::StrAppend(&label, text.text, "|");
    }
    EXPECT_EQ(label, width < 5 ? "a|post, without|any_residual.|path|b|"
                               : "a|post, without any_residual.|path|b|");
    std::vector<double> means;  // inches, from the top
    for (const Strokes& strokes : LayersOf<Strokes>(panel)) {
      if (strokes.dx[0] > 0) means.push_back(strokes.y[0]);
    }
    ASSERT_EQ(means.size(), 3u);
    EXPECT_NEAR(means[0] - means[1], means[1] - means[2], 1e-9) << "in the middle of its lines";
    EXPECT_THAT(Overlapping(*figure), IsEmpty());
    for (const Rule& rule : panel.rules) EXPECT_NE(rule.color.rgb, kWhite.rgb) << "covers zero";
  }
}

TEST(DotPlotTest, ElidesLongLabelsWhereThePageHasNoRoomForTheirLines) {
  std::vector<DotRow> rows;
  for (int i = 0; i < 30; ++i) {
    rows.push_back(RowAt(absl::StrCat("a label that has no room in the column ", i), i, {}));
  }
  const auto figure = DrawDotPlot(PlotOf(rows), 3.25);
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_TRUE(absl::StrContains(figure->texts[0].text, "…")) << figure->texts[0].text;
}

TEST(DotPlotTest, SortsTheBestFirstAndWhatHasNoMeanLast) {
  std::vector<DotRow> rows = {RowAt("a", 2, {}), RowAt("none", 0, {}), RowAt("b", -1, {}),
                              RowAt("c", 3, {})};
  rows[1].mean = report::NoNumber(report::Undefined::kAllDiverged);
  const auto labels = [&rows] {
    std::vector<std::string> found;
    for (const DotRow& row : rows) found.push_back(row.label);
    return found;
  };
  SortRows(report::Better::kLower, &rows);
  EXPECT_THAT(labels(), ElementsAre("b", "a", "c", "none"));
  SortRows(report::Better::kHigher, &rows);
  EXPECT_THAT(labels(), ElementsAre("c", "a", "b", "none"));
}

Figure DrawnAs(const std::string& kind, const report::ComparisonInput& grid, double width) {
  return DrawingOf(kind, grid, width).figure;
}

// Returns those of the texts that a figure has, in its order.
std::vector<std::string> Those(const Figure& figure, const std::vector<std::string>& of) {
  std::vector<std::string> found;
  for (const Text& text : figure.texts) {
    if (std::count(of.begin(), of.end(), text.text) > 0) found.push_back(text.text);
  }
  return found;
}

// Returns eight settings: s2 is established as better, s1 and s3 as worse, the others are
// undecided.
report::ComparisonInput EightSettings() {
  std::vector<std::pair<std::string, std::vector<double>>> rows;
  const std::vector<double> effects = {0, .3, -.2, .1, 0, 0, 0, 0};
  for (size_t i = 0; i < effects.size(); ++i) {
    rows.push_back({absl::StrCat("s", i), {}});
    for (int seed = 0; seed < 12; ++seed) {
      const double noise = .01 * ((seed * 7 + static_cast<int>(i) * 3) % 5 - 2);
      rows.back().second.push_back(2 + .1 * seed + effects[i] + (i == 0 ? 0 : noise));
    }
  }
  return Settings(rows);
}

TEST(ForestTest, HasOneInkAndIsSortedWhereThereAreMoreSettingsThanHues) {
  const Figure figure = DrawnAs("forest", EightSettings(), 6.75);
  const std::vector<std::string> rows = Those(figure, {"s1", "s2", "s3", "s4", "s5", "s6", "s7"});
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows.front(), "s2");
  EXPECT_THAT(std::vector<std::string>(rows.end() - 2, rows.end()), ElementsAre("s3", "s1"));
  for (const std::string& row : rows) EXPECT_EQ(TextOf(figure, row).color.rgb, kInk.rgb);
  const std::vector<Points> means = MarkersOf(figure.panels[0], {Marker::kCircle});
  ASSERT_EQ(means.size(), 7u);
  for (size_t i = 0; i < means.size(); ++i) {
    EXPECT_EQ(means[i].open, i > 0 && i < 5) << i;
    EXPECT_EQ(means[i].color.rgb, kInk.rgb);
  }
  EXPECT_THAT(TextList(figure), Contains(HasSubstr("filled: established or probable")));
}

TEST(ForestTest, KeepsColoursAndTheOrderOfTheSpecWhereSettingsAreFew) {
  report::ComparisonInput grid = EightSettings();
  const auto last = [](const report::Cell& cell) { return cell.labels[0] == "s7"; };
  grid.cells.erase(std::remove_if(grid.cells.begin(), grid.cells.end(), last), grid.cells.end());
  grid.axes[0].labels.pop_back();
  const Figure figure = DrawnAs("forest", grid, 6.75);
  EXPECT_THAT(Those(figure, {"s1", "s2", "s3", "s4", "s5", "s6"}),
              ElementsAre("s1", "s2", "s3", "s4", "s5", "s6"));
  EXPECT_EQ(TextOf(figure, "s2").color.rgb, StyleOf(2).text.rgb);
  EXPECT_THAT(MarkersOf(figure.panels[0], {Marker::kCircle}), IsEmpty());
  EXPECT_THAT(TextList(figure), Not(Contains(HasSubstr("filled"))));
}

TEST(ForestTest, JudgesNoRowAtASharedValue) {
  const Example crossed = Crossed("", {"pre", "post", "none"}, {"on", "half", "off"}, true);
  const Figure figure = DrawnAs("forest", crossed.grid, 6.75);
  ASSERT_EQ(figure.panels.size(), 2u);
  EXPECT_EQ(MarkersOf(figure.panels[0], {Marker::kCircle}).size(), 8u);
  EXPECT_THAT(MarkersOf(figure.panels[1], {Marker::kCircle}), IsEmpty());
}

TEST(ForestTest, SaysWhichTunedValuesWereChosen) {
  report::ComparisonInput grid = NormsGrid();
  // The first seed's run of "none" at 0.004 is bad, so that 0.01 is selected on the other seeds.
  for (report::Cell& cell : grid.cells) {
    if (cell.labels[0] == "none" && cell.labels[1] == "0.004" && cell.seed == 42) {
      cell.value = *cell.value + 1;
    }
  }
  const Figure wide = DrawnAs("forest", grid, 6.75);
  EXPECT_EQ(TextOf(wide, "lr").x, TextOf(wide, "0.002").x);
  EXPECT_THAT(Those(wide, {"0.002", "0.01 11/12 …", "0.004", "0.01"}),
              ElementsAre("0.002", "0.01 11/12 …"))
      << "of post and of none; at the shared value nothing was chosen";
  EXPECT_THAT(TextList(wide), Contains("pre: lr 0.004"));
  const Figure narrow = DrawnAs("forest", grid, 3.25);
  EXPECT_EQ(TextOf(narrow, "lr 0.002").x, TextOf(narrow, "post").x);
  EXPECT_LT(TextOf(narrow, "lr 0.002").y, TextOf(narrow, "post").y);
  EXPECT_THAT(TextList(narrow), Contains("lr 0.01 11/12 …"));
}

TEST(ForestTest, SaysNothingOfTunedValuesWhereNoneIs) {
  for (const double width : kWidths) {
    const Figure figure =
        DrawnAs("forest", Settings({{"a", {2, 2.1, 2.2}}, {"b", {2.2, 2.2, 2.4}}}), width);
    EXPECT_THAT(TextList(figure), Each(Not(HasSubstr("lr"))));
  }
}

TEST(ForestTest, LeavesItsAxisRoomBesideLongNamesOfTunedAxes) {
  report::ComparisonInput grid = NormsGrid(3);
  grid.axes[1].name = "training.optimizer.groups.of_the_embedding.learning_rate";
  const Figure figure = DrawnAs("forest", grid, 6.75);
  EXPECT_GT(figure.panels[0].right - figure.panels[0].left, 2);
}

// Returns a comparison of one run per setting, each of so many sequences; `post` may diverge.
report::ComparisonInput BySequence(size_t sequences, bool diverged) {
  report::ComparisonInput input = Settings({{"pre", {2}}, {"post", {2.5}}});
  input.key = "predictions/loss";
  input.unit = report::Unit::kSequence;
  for (report::Cell& cell : input.cells) {
    for (size_t i = 0; i < sequences; ++i) {
      cell.by_sequence.push_back(*cell.value + (i % 2 == 0 ? .1 : -.1) * *cell.value);
    }
  }
  if (diverged) {
    input.cells[1].outcome = report::RunOutcome::kDiverged;
    input.cells[1].value.reset();
    input.cells[1].by_sequence.clear();
  }
  return input;
}

Drawing DrawnBySequence(const std::string& kind, bool diverged, double width) {
  const auto comparison = report::Compare(BySequence(2000, diverged), {{}, 0});
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  Input input;
  input.comparison = &*comparison;
  input.key = comparison->key;
  input.width = width;
  Drawing drawing = DrawingOf(*FindKind(kind), input);
  EXPECT_THAT(Overlapping(drawing.figure), IsEmpty());
  EXPECT_THAT(Outside(drawing.figure), IsEmpty());
  return drawing;
}

TEST(ForestTest, CountsSequencesApartFromRuns) {
  const Drawing wide = DrawnBySequence("forest", false, 6.75);
  EXPECT_THAT(TextList(wide.figure), AllOf(Contains("sequences"), Contains("2,000"),
                                           Contains("0/2,000"), Not(Contains("n"))));
  EXPECT_THAT(TextList(DrawnBySequence("forest", false, 3.25).figure),
              Contains("2,000 sequences, wins 0"));
  EXPECT_THAT(wide.csv, HasSubstr(",1,2000,0,")) << "n, pairs and wins";
}

TEST(ForestTest, MarksARunThatDivergedBySequence) {
  EXPECT_THAT(TextList(DrawnBySequence("forest", true, 6.75).figure), Contains("(diverged)"));
  const Drawing narrow = DrawnBySequence("forest", true, 3.25);
  EXPECT_THAT(TextList(narrow.figure), Contains("(diverged)"));
  EXPECT_THAT(narrow.csv, HasSubstr(",0,0,0,")) << "n, pairs and wins";
}

TEST(SummaryTest, CountsSequencesApartFromRuns) {
  const Drawing drawing = DrawnBySequence("summary", true, 6.75);
  EXPECT_THAT(TextList(drawing.figure), AllOf(Contains("sequences"), Contains("2,000")));
  EXPECT_THAT(drawing.csv, AllOf(HasSubstr("n,diverged,sequences\n"), HasSubstr(",1,0,2000\n"),
                                 HasSubstr(",0,1,0\n")));
}

TEST(SummaryTest, MarksTheBaselineAmongManySettingsByItsStroke) {
  const Figure figure = DrawnAs("summary", EightSettings(), 6.75);
  EXPECT_EQ(MarkersOf(figure.panels[0], {Marker::kCircle}).size(), 7u);
  EXPECT_EQ(Those(figure, {"s0", "s1", "s2"}), (std::vector<std::string>{"s2", "s0", "s1"}));
  EXPECT_THAT(TextList(figure), Contains(HasSubstr("stroke: baseline")));
}

TEST(SummaryTest, MeasuresFromTheMedianWhatIsFar) {
  const Figure figure = DrawnAs(
      "summary", Settings({{"a", {2, 2.01}}, {"b", {2, 2.02}}, {"c", {2.01, 2}}, {"d", {60, 61}}}),
      6.75);
  EXPECT_THAT(figure.panels[0].x.high, AllOf(Gt(2.0), Lt(3.0)));
  EXPECT_EQ(ArrowsOf(figure.panels[0]).size(), 2u);
}

}  // namespace
}  // namespace ablate::figure
