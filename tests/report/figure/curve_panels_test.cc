// Tests curves: distinction of settings of crossed axes, ends of diverged runs, and interrupted
// lines.
#include "server/report/figure/curve_panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/report/figure/curve_layers.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/style.h"
#include "tests/report/figure/example_grids.h"

namespace ablate::figure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Figure DrawnAs(const std::string& kind, const Example& example, double width = 6.75) {
  return DrawingOf(kind, example.grid, width, example.shapes).figure;
}

TEST(CrossedCurvesTest, HaveTheHueOfTheFirstAxisAndTheDashOfTheSecond) {
  const Example example = Crossed("", {"pre", "post", "none"}, {"on", "off"}, false);
  for (const char* kind : {"loss", "difference"}) {
    std::map<uint32_t, std::vector<Dash>> dashes;  // by hue
    for (const Line& line : LayersOf<Line>(DrawnAs(kind, example).panels[0])) {
      if (line.width > 1) dashes[line.color.rgb].push_back(line.dash);
    }
    const Dash off = StyleOf(CrossedStyle(0, 1)).dash;
    EXPECT_EQ(dashes.size(), 3u);
    EXPECT_THAT(dashes[StyleOf(2).line.rgb], ElementsAre(off, Dash())) << kind;
    EXPECT_THAT(dashes[StyleOf(1).line.rgb], ElementsAre(off, Dash())) << kind;
  }
}

TEST(CrossedCurvesTest, AreToldApartInGreyByMarkersAndByTheLeadersOfLabels) {
  const Figure figure = DrawnAs("loss", Crossed("", {"pre", "post", "none"}, {"on", "off"}, false));
  std::map<Marker, size_t> markers;
  for (const Points& points : LayersOf<Points>(figure.panels[0])) {
    if (points.marker != Marker::kTriangle || points.x[0] > 500) ++markers[points.marker];
  }
  EXPECT_THAT(markers, ElementsAre(std::pair(Marker::kCircle, 2u), std::pair(Marker::kSquare, 2u),
                                   std::pair(Marker::kTriangle, 2u)));
  const Dash off = StyleOf(CrossedStyle(0, 1)).dash;
  EXPECT_EQ(std::count_if(figure.rules.begin(), figure.rules.end(),
                          [&off](const Rule& rule) { return rule.dash == off; }),
            3);
}

TEST(CrossedCurvesTest, HaveNoMarkersOfOneAxis) {
  const Figure figure = DrawnAs("loss", {"norms", NormsGrid(2), NormsShapes()});
  EXPECT_THAT(LayersOf<Points>(figure.panels[0]), testing::IsEmpty());
}

TEST(ManySettingsTest, HaveAPanelEachWhereNoStyleTellsThemApart) {
  Example example = Outlier();
  example.shapes.resize(4);
  EXPECT_EQ(DrawnAs("loss", example).panels.size(), 4u) << "of twelve settings four have curves";
}

TEST(ManySettingsTest, HaveNoPanelWithoutRuns) {
  Example example = Outlier();
  for (size_t i = 3; i < example.shapes.size(); ++i) example.shapes[i].seeds = 0;
  const Figure figure = DrawnAs("loss", example);
  EXPECT_EQ(figure.panels.size(), 3u);
  EXPECT_THAT(TextsIn(figure), HasSubstr("; without values: without-3, without-4"));
}

// Returns a panel of values from 0 to 10 over 100 steps.
Panel ShownPanel() {
  Panel panel;
  panel.x.high = 100;
  panel.y.high = 10;
  return panel;
}

ReducedCurve DivergedCurve(std::vector<double> values) {
  ReducedCurve curve;
  ThinLine line;
  line.diverged = true;
  for (size_t i = 0; i < values.size(); ++i) line.x.push_back(static_cast<double>(i));
  line.y = std::move(values);
  curve.seeds.push_back(std::move(line));
  return curve;
}

TEST(DivergencesTest, AreCrossesAtTheLastFinitePoint) {
  Panel panel = ShownPanel();
  AddDivergences(DivergedCurve({1, 2, 9.5, std::nan("")}), kInk, &panel);
  const std::vector<Points> marks = LayersOf<Points>(panel);
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(marks[0].marker, Marker::kCross);
  EXPECT_THAT(marks[0].x, ElementsAre(2));
  EXPECT_THAT(marks[0].y, ElementsAre(9.5));
}

TEST(DivergencesTest, AreTrianglesAtTheEdgeWhereTheyLieBeyondThePanel) {
  for (const auto& [value, marker] :
       {std::pair{500.0, Marker::kTriangle}, std::pair{-3.0, Marker::kTriangleDown}}) {
    Panel panel = ShownPanel();
    const ReducedCurve curve = DivergedCurve({1, value});
    AddDivergences(curve, kInk, &panel);
    const std::vector<Points> marks = LayersOf<Points>(panel);
    ASSERT_EQ(marks.size(), 1u);
    EXPECT_EQ(marks[0].marker, marker) << "no cross at a value that it never had";
    EXPECT_THAT(marks[0].x, ElementsAre(1));
    EXPECT_THAT(marks[0].y, ElementsAre(value > 0 ? 10 : 0));
    DivergenceMarks found;
    FindDivergences(curve, panel, &found);
    EXPECT_FALSE(found.crosses);
    EXPECT_EQ(found.above, value > 0);
    EXPECT_EQ(found.below, value < 0);
  }
}

TEST(DivergencesTest, AreSaidBelowByTheMarkThatTheyHave) {
  const auto footnote = [](double explosion) {
    const Example example = {"",
                             Settings({{"a", {2, 2.1}}, {"b", {2.2, 2.1}}}),
                             {{"a", 3, 2, 300, 2}, {"b", 3, 2, 300, 4, 1, explosion}}};
    return TextsIn(DrawnAs("loss", example));
  };
  EXPECT_THAT(footnote(2), HasSubstr("▲\u00a0diverged, above the panel"));
  EXPECT_THAT(footnote(2), Not(HasSubstr("×")));
  EXPECT_THAT(footnote(0), HasSubstr("×\u00a0diverged, not in the mean: b 1 of 4"));
}

// Returns the line of a setting in its own colour.
Line LineOf(const Figure& figure, Color color) {
  for (const Line& line : LayersOf<Line>(figure.panels.at(0))) {
    if (line.color.rgb == color.rgb && line.width > 1) return line;
  }
  ADD_FAILURE();
  return {};
}

TEST(SensitivityTest, InterruptsTheLineWhereRunsDiverged) {
  const Figure figure = DrawnAs("sensitivity", {"", NormsGrid(), {}});
  const Line none = LineOf(figure, StyleOf(2).line);
  ASSERT_EQ(none.y.size(), 6u);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isfinite(none.y[i])) << i;
  EXPECT_TRUE(std::isnan(none.y[4])) << "10 of 12 diverged";
  EXPECT_TRUE(std::isnan(none.y[5])) << "all diverged";
  size_t hollow = 0;
  for (const Points& points : LayersOf<Points>(figure.panels[0])) {
    if (points.color.rgb == kWhite.rgb) hollow += points.x.size();
  }
  EXPECT_EQ(hollow, 1u) << "the mean of the other two stays";
  double highest = 0;
  for (const report::Cell& cell : NormsGrid().cells) {
    highest = std::max(highest, cell.value.value_or(0));
  }
  EXPECT_LT(figure.panels[0].y.high, highest + .2 * (highest - 2))
      << "the interval of those two, which is not drawn, takes no room";
  for (const double y : LineOf(figure, StyleOf(0).line).y) EXPECT_TRUE(std::isfinite(y));
}

TEST(SensitivityTest, ShowsMeansOfOtherSettingsThatNoLineGoesThrough) {
  const Example example = Crossed("", {"pre", "post", "none"}, {"on", "half", "off"}, true);
  const Figure figure = DrawnAs("sensitivity", example);
  ASSERT_EQ(figure.panels.size(), 9u);
  size_t alone = 0;
  for (const Points& points : LayersOf<Points>(figure.panels[0])) {
    for (const double y : points.y) {
      alone += points.color.rgb == kOthers.rgb && std::isfinite(y) ? 1 : 0;
    }
  }
  EXPECT_EQ(alone, 2u) << "pre/half and post/on, of which two of four seeds diverged at 0.1";
}

TEST(SensitivityTest, HasNoPanelOfASettingWithoutRuns) {
  Example example = Crossed("", {"pre", "post", "none"}, {"on", "half", "off"}, true);
  for (report::Cell& cell : example.grid.cells) {
    const bool late = cell.labels[0] == "none" && cell.labels[1] == "off";
    if (late) cell.outcome = report::RunOutcome::kUnfinished;
  }
  const Figure figure = DrawnAs("sensitivity", example);
  EXPECT_EQ(figure.panels.size(), 8u);
  EXPECT_THAT(TextsIn(figure), HasSubstr("without values: “none, off”"));
}

TEST(SensitivityTest, DrawsNumbersInTheirOrderWhateverTheSpecs) {
  report::ComparisonInput grid = NormsGrid(2);
  std::swap(grid.axes[1].labels[0], grid.axes[1].labels[3]);
  std::swap(grid.axes[1].values[0], grid.axes[1].values[3]);
  const std::vector<double> x = LineOf(DrawnAs("sensitivity", {"", grid, {}}), kInk).x;
  EXPECT_EQ(x.size(), 6u);
  EXPECT_TRUE(std::is_sorted(x.begin(), x.end()));
}

}  // namespace
}  // namespace ablate::figure
