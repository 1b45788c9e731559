// Tests the metric over a numeric axis: the choice of axis, its lines, and points left out of
// means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/style.h"
#include "tests/report/compare/example_grid.h"
#include "tests/report/figure/example_curves.h"
#include "tests/report/figure/text_boxes.h"

namespace ablate::figure {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::vector<double> kModelWidths = {16, 32, 64, 128};

// A grid's figure of a kind, and its texts.
struct Drawn {
  Drawing drawing;
  std::string caption, description, texts;

  const Panel& panel() const { return drawing.figure.panels.at(0); }
};

Drawn DrawnOf(const report::ComparisonInput& grid, double width = 3.25, const Kind& kind = kAxis) {
  report::CompareOptions options;
  options.resamples = 0;
  const auto comparison = report::Compare(grid, options);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  const Input input = MakeInput(kind, grid, *comparison, {}, width);
  Drawn drawn{DrawingOf(kind, input), kind.caption(input), "", ""};
  drawn.description = drawn.drawing.figure.description;
  drawn.texts = TextsIn(drawn.drawing.figure);
  return drawn;
}

bool WantedIn(const report::ComparisonInput& grid) { return kAxis.wanted(*report::Compare(grid)); }

std::vector<std::string> TickLabels(const Drawn& drawn) {
  std::vector<std::string> labels;
  for (const Tick& tick : drawn.panel().x.ticks) labels.push_back(tick.label);
  return labels;
}

// Rings around markers.
size_t Rings(const Drawn& drawn) {
  size_t rings = 0;
  for (const Points& points : LayersOf<Points>(drawn.panel())) {
    if (points.open && points.radius > 3) rings += points.x.size();
  }
  return rings;
}

TEST(AxisTest, DrawsALineASettingOfTheOtherAxesInItsColour) {
  const Drawn drawn = DrawnOf(WidthsGrid(kModelWidths, 3));
  const std::vector<Line> lines = LayersOf<Line>(drawn.panel());
  ASSERT_EQ(lines.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i].x.size(), kModelWidths.size());
    EXPECT_EQ(lines[i].color.rgb, StyleOf(2 - i).line.rgb);
  }
  EXPECT_THAT(drawn.texts, AllOf(HasSubstr("\nn0\n"), HasSubstr("\nn1\n"), HasSubstr("\nn2\n"),
                                 StartsWith("width\nHeld-out loss")));
  EXPECT_THAT(drawn.caption, AllOf(StartsWith("Held-out loss over width: mean and 95 % interval"),
                                   HasSubstr(" Lines are settings of norm.")));
  EXPECT_THAT(drawn.description, AllOf(StartsWith("Means of held-out loss over width: n0 2."),
                                       HasSubstr(" at 16, "), HasSubstr("; n1 2.")));
}

TEST(AxisTest, GivesTheBaselinesLineTheBaselinesColour) {
  report::ComparisonInput grid = WidthsGrid(kModelWidths, 3);
  grid.baseline["norm"] = "n1";
  std::vector<uint32_t> colors;
  for (const Line& line : LayersOf<Line>(DrawnOf(grid).panel())) colors.push_back(line.color.rgb);
  EXPECT_THAT(colors, ElementsAre(StyleOf(2).line.rgb, kInk.rgb, StyleOf(1).line.rgb));
}

TEST(AxisTest, IsLogarithmicFromAFactorOfEightOn) {
  EXPECT_TRUE(DrawnOf(WidthsGrid({16, 32, 128}, 2)).panel().x.log);
  EXPECT_FALSE(DrawnOf(WidthsGrid({16, 32, 120}, 2)).panel().x.log);
  EXPECT_FALSE(DrawnOf(WidthsGrid({0, 1, 100}, 2)).panel().x.log);
}

TEST(AxisTest, HasTicksAtTheValuesInAscendingOrder) {
  const Drawn drawn = DrawnOf(WidthsGrid({64, 16, 128, 32}, 2));
  EXPECT_THAT(TickLabels(drawn), ElementsAre("16", "32", "64", "128"));
  for (const Line& line : LayersOf<Line>(drawn.panel())) {
    EXPECT_TRUE(std::is_sorted(line.x.begin(), line.x.end()));
  }
}

TEST(AxisTest, DrawsOneLineWithoutALabelWhereNothingElseVaries) {
  const Drawn drawn = DrawnOf(WidthsGrid(kModelWidths, 1));
  EXPECT_EQ(LayersOf<Line>(drawn.panel()).size(), 1u);
  EXPECT_THAT(drawn.drawing.csv, HasSubstr("\nwidth,,16,,2."));
  EXPECT_THAT(drawn.texts, Not(HasSubstr("base\n")));
  EXPECT_THAT(drawn.description, StartsWith("Means of held-out loss over width: 2."));
  EXPECT_THAT(drawn.caption, Not(HasSubstr("Lines are")));
}

TEST(AxisTest, RingsTheBaselineWhereThereIsOne) {
  report::ComparisonInput grid = WidthsGrid(kModelWidths, 1);
  grid.baseline["width"] = "64";
  const Drawn drawn = DrawnOf(grid);
  EXPECT_EQ(Rings(drawn), 1u);
  EXPECT_THAT(drawn.texts, HasSubstr("ring: baseline"));
  EXPECT_THAT(drawn.caption, HasSubstr("A ring marks the baseline."));

  report::ComparisonInput within = WidthsGrid(kModelWidths, 2);
  within.by = "norm";
  const Drawn several = DrawnOf(within);
  EXPECT_EQ(Rings(several), 0u);
  EXPECT_THAT(absl::StrCat(several.texts, several.caption), Not(HasSubstr("ring")));
}

TEST(AxisTest, LeavesDivergedRunsOutOfMeansAndCountsThem) {
  report::ComparisonInput grid = WidthsGrid(kModelWidths, 2);
  Diverge({"32", "n1"}, &grid);
  Diverge({"64", "n1"}, &grid, 1);
  const Drawn drawn = DrawnOf(grid);
  const Line line = LayersOf<Line>(drawn.panel()).at(0);
  EXPECT_TRUE(std::isnan(line.y[1])) << "no mean where all diverged";
  EXPECT_TRUE(std::isnan(line.y[2])) << "no line where some diverged";
  const double mean =
      (*grid.cells[grid.cells.size() - 5].value + *grid.cells[grid.cells.size() - 4].value) / 2;
  EXPECT_THAT(drawn.drawing.csv, HasSubstr(absl::StrCat("\nwidth,n1,64,,", CsvNumber(mean), ",")));
  EXPECT_THAT(drawn.texts, AllOf(HasSubstr("\n3/3\n"), HasSubstr("\n1/3\n"), HasSubstr("hollow")));
  EXPECT_THAT(drawn.texts, Not(HasSubstr("in all")));
  EXPECT_THAT(drawn.caption, AllOf(HasSubstr("numbers above: runs"), HasSubstr("Hollow point")));
  EXPECT_THAT(drawn.drawing.csv, HasSubstr("\nwidth,n1,32,,,,,3,3\n"));
}

TEST(AxisTest, CountsDivergedRunsBelowWhereValuesStandTooClose) {
  std::vector<double> depths;
  for (int i = 1; i <= 24; ++i) depths.push_back(i);
  report::ComparisonInput grid = WidthsGrid(depths, 2, 12);
  Diverge({"3", "n1"}, &grid);
  const Drawn drawn = DrawnOf(grid);
  EXPECT_THAT(drawn.texts, AllOf(HasSubstr("12 runs diverged in all"), Not(HasSubstr("12/12"))));
  EXPECT_THAT(drawn.caption, Not(HasSubstr("numbers above")));
}

TEST(AxisTest, JoinsTheNeighboursOfAMissingCombination) {
  report::ComparisonInput grid = WidthsGrid(kModelWidths, 2);
  Exclude({"64", "n1"}, &grid);
  const Drawn drawn = DrawnOf(grid);
  const Line line = LayersOf<Line>(drawn.panel()).at(0);
  ASSERT_EQ(line.y.size(), 3u);
  for (const double y : line.y) EXPECT_TRUE(std::isfinite(y));
  EXPECT_THAT(drawn.drawing.csv, AllOf(HasSubstr("width,n0,64,"), Not(HasSubstr("width,n1,64,"))));

  Diverge({"16", "n1"}, &grid);
  const std::string counts = DrawnOf(grid).texts;
  EXPECT_EQ(std::count(counts.begin(), counts.end(), '\xB7'), 2) << "· at 32 and 128";
}

TEST(AxisTest, TakesTheAxisOfMostValues) {
  report::ComparisonInput grid = WidthsGrid({16, 32, 64}, 4);
  grid.axes[1] = {"depth", {"1", "2", "4", "6"}, false, {1, 2, 4, 6}, {}};
  for (report::Cell& cell : grid.cells) {
    cell.labels[1] = grid.axes[1].labels[static_cast<size_t>(cell.labels[1][1] - '0')];
  }
  const Drawn drawn = DrawnOf(grid);
  EXPECT_THAT(TickLabels(drawn), ElementsAre("1", "2", "4", "6"));
  EXPECT_EQ(LayersOf<Line>(drawn.panel()).size(), 3u);
  EXPECT_THAT(drawn.texts, HasSubstr("\nwidth 32\n"));
}

TEST(AxisTest, DrawsEachPointAtItsChosenValues) {
  report::ComparisonInput grid = WidthsGrid(kModelWidths, 1);
  grid.axes.push_back({"lr", {"0.01", "0.1"}, true, {.01, .1}, {}});
  const size_t cells = grid.cells.size();
  for (size_t i = 0; i < cells; ++i) {
    report::Cell worse = grid.cells[i];
    grid.cells[i].labels.emplace_back("0.01");
    worse.labels.emplace_back("0.1");
    *worse.value += 1;
    grid.cells.push_back(worse);
  }
  const Drawn drawn = DrawnOf(grid);
  const std::vector<Line> plain = LayersOf<Line>(DrawnOf(WidthsGrid(kModelWidths, 1)).panel());
  EXPECT_EQ(LayersOf<Line>(drawn.panel()).at(0).y, plain.at(0).y);
  EXPECT_THAT(drawn.caption, HasSubstr("Each point is at its selected lr."));
}

TEST(AxisTest, SaysWhatIsNotComparable) {
  report::ComparisonInput grid = WidthsGrid(kModelWidths, 2);
  for (report::Cell& cell : grid.cells) cell.scored["model.context"] = cell.labels[0];
  const Drawn within = DrawnOf(grid);
  EXPECT_THAT(within.texts,
              HasSubstr("seeds; settings of width are evaluated on different held-out"));
  EXPECT_THAT(
      within.caption,
      HasSubstr("Settings of width are evaluated on different held-out data, so not comparable."));

  report::ComparisonInput alone = WidthsGrid(kModelWidths, 1);
  for (report::Cell& cell : alone.cells) cell.scored["a"] = cell.labels[0] == "64" ? "x" : "y";
  EXPECT_THAT(DrawnOf(alone).caption,
              HasSubstr("Evaluated on other held-out data than the baseline, so not comparable: "
                        "width 64."));
  EXPECT_THAT(DrawnOf(WidthsGrid(kModelWidths, 2)).caption, Not(HasSubstr("comparable")));
}

TEST(AxisTest, NeedsAnAxisOfNumbersThatIsNotTuned) {
  for (const report::ComparisonInput& grid :
       {NormsGrid(2), Settings({{"a", {2}}, {"b", {2}}}), WidthsGrid({16}, 2)}) {
    const auto comparison = report::Compare(grid);
    const absl::Status status = Draw(kAxis, MakeInput(kAxis, grid, *comparison, {}, 3.25)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith("kind: axis"), HasSubstr("at least two numeric `values`")));
    EXPECT_FALSE(WantedIn(grid));
  }
  report::ComparisonInput by_rate = NormsGrid(2);
  by_rate.by = "lr";
  EXPECT_THAT(DrawnOf(by_rate).texts, StartsWith("lr\n")) << "which is not tuned then";
}

TEST(AxisTest, StandsInAReportFromThreeValuesOn) {
  EXPECT_FALSE(WantedIn(WidthsGrid({16, 32}, 2)));
  EXPECT_EQ(LayersOf<Line>(DrawnOf(WidthsGrid({16, 32}, 2)).panel()).size(), 2u);
  EXPECT_TRUE(WantedIn(WidthsGrid({16, 32, 64}, 2)));
  std::vector<std::string> kinds;
  for (const Kind* kind : KindsInReport(*report::Compare(WidthsGrid(kModelWidths, 2)))) {
    kinds.emplace_back(kind->name);
  }
  EXPECT_THAT(kinds, Contains("axis"));
}

TEST(AxisTest, DrawsManyLinesAsSmallMultiples) {
  const Drawn drawn = DrawnOf(WidthsGrid(kModelWidths, 12), 6.75);
  EXPECT_EQ(drawn.drawing.figure.panels.size(), 12u);
  EXPECT_EQ(LayersOf<Line>(drawn.panel()).size(), 12u);
  EXPECT_THAT(drawn.texts, HasSubstr("black: the baseline's line; grey: the other lines"));

  const report::ComparisonInput grid = WidthsGrid({16, 32}, 80, 1);
  const auto comparison = report::Compare(grid);
  const absl::Status status = Draw(kAxis, MakeInput(kAxis, grid, *comparison, {}, 3.25)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most"));
}

TEST(AxisTest, KeepsItsTextsInsideAndApart) {
  std::vector<double> depths;
  for (int i = 1; i <= 20; ++i) depths.push_back(i);
  for (const std::vector<double>& values :
       {kModelWidths, depths, {1000000, 2000000}, {.00001, .5, 7}}) {
    for (const size_t lines : {1, 2, 6, 7, 12}) {
      report::ComparisonInput grid = WidthsGrid(values, lines, 12);
      std::vector<std::string> first = {grid.axes[0].labels[0]};
      if (lines > 1) first.emplace_back("n1");
      Diverge(first, &grid);
      for (const double width : {3.25, 6.75}) {
        SCOPED_TRACE(absl::StrCat(values.size(), " values, ", lines, " lines, ", width));
        const Drawn drawn = DrawnOf(grid, width);
        EXPECT_THAT(Outside(drawn.drawing.figure), IsEmpty());
        EXPECT_THAT(Overlapping(drawn.drawing.figure), IsEmpty());
      }
    }
  }
}

TEST(SensitivityTest, DrawsNoLineThatRunsBack) {
  report::ComparisonInput grid = WidthsGrid({64, 16, 128}, 2);
  grid.axes[0].tuned = true;
  grid.axes[0].base = "64";
  const Drawn drawn = DrawnOf(grid, 3.25, kSensitivity);
  EXPECT_THAT(TickLabels(drawn), ElementsAre("16", "64", "128"));
  for (const Line& line : LayersOf<Line>(drawn.panel())) {
    EXPECT_TRUE(std::is_sorted(line.x.begin(), line.x.end()));
  }
  EXPECT_THAT(drawn.description, testing::ContainsRegex(" at 16, .* at 64 and .* at 128"));
}

TEST(SensitivityTest, JoinsTheValuesThatASettingWasTriedAt) {
  report::ComparisonInput grid = report::OptimizersGrid();
  const auto expect_lines = [](const Panel& panel) {
    for (const Line& line : LayersOf<Line>(panel)) {
      EXPECT_EQ(line.x.size(), 2u);
      for (const double y : line.y) EXPECT_TRUE(std::isfinite(y));
    }
  };
  const Drawn drawn = DrawnOf(grid, 3.25, kSensitivity);
  EXPECT_THAT(TickLabels(drawn), ElementsAre("0.001", "0.003", "0.01", "0.1", "0.3"));
  EXPECT_EQ(LayersOf<Line>(drawn.panel()).size(), 3u);
  expect_lines(drawn.panel());
  grid.axes[1].tuned = false;
  expect_lines(DrawnOf(grid).panel());
  for (size_t i = 0; i < 5; ++i) {
    const std::string label = absl::StrCat("other", i);
    grid.axes[0].labels.push_back(label);
    for (const char* lr : {"0.001", "0.1"}) {
      grid.cells.push_back(report::MakeCell({label, lr}, 0, 2));
    }
  }
  grid.axes[1].tuned = true;
  const Drawn multiples = DrawnOf(grid, 3.25, kSensitivity);
  ASSERT_EQ(multiples.drawing.figure.panels.size(), 8u);
  for (const Panel& panel : multiples.drawing.figure.panels) expect_lines(panel);
}

TEST(SensitivityTest, LeavesAGapWhereResultsAreMissing) {
  report::ComparisonInput grid = report::OptimizersGrid();
  for (report::Cell& cell : grid.cells) {
    if (cell.labels[1] == "0.01") cell.value.reset();
  }
  size_t gaps = 0;
  for (const Line& line : LayersOf<Line>(DrawnOf(grid, 3.25, kSensitivity).panel())) {
    ASSERT_EQ(line.y.size(), 2u);
    gaps += static_cast<size_t>(!std::isfinite(line.y[1]));
  }
  EXPECT_EQ(gaps, 2u) << "of adamw and lion";
}

}  // namespace
}  // namespace ablate::figure
