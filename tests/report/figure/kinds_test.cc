// Tests every kind: ordinary, degenerate and hostile input, equal bytes twice.
#include "server/report/figure/kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/report/figure/render.h"
#include "tests/report/figure/example_curves.h"
#include "tests/report/figure/example_grids.h"
#include "tests/report/figure/text_boxes.h"

namespace ablate::figure {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<Example> Examples() {
  const double none = std::nan("");
  const std::string longest = "a setting with a very long label, of sixty characters in all";
  std::vector<Example> examples = {{"norms", NormsGrid(), NormsShapes()}};
  examples.push_back({"one seed", NormsGrid(1), {{"pre", 3, 2, 300, 1}, {"post", 3, 2, 300, 1}}});
  examples.push_back({"one point", Settings({{"a", {2}}, {"b", {2}}}), {{"a", 2, 2, 1, 1}}});
  examples.push_back({"all diverged",
                      Settings({{"a", {none, none}}, {"b", {none, none}}}),
                      {{"a", 3, 2, 300, 2, 2}, {"b", 3, 2, 300, 2, 2}}});
  examples.push_back({"zero range", Settings({{"a", {2, 2}}, {"b", {2, 2}}}), {{"a", 2, 2, 2, 1}}});
  Example twelve{"twelve", {}, {}};
  std::vector<std::pair<std::string, std::vector<double>>> rows;
  for (int i = 0; i < 12; ++i) {
    const std::string label = absl::StrCat(i == 3 ? longest : "setting ", i);
    rows.push_back({label, {2.4 + .01 * i, 2.5, 2.45 + .02 * (i % 3)}});
    twelve.shapes.push_back({label, 3.4, 2.3 + .05 * i, 300, 3, i == 5 ? 2u : 0u});
  }
  twelve.grid = Settings(rows);
  examples.push_back(twelve);
  Example other{"other data", NormsGrid(), NormsShapes()};
  for (report::Cell& cell : other.grid.cells) {
    cell.scored["data"] = cell.labels[0] == "none" ? "b" : "a";
  }
  examples.push_back(other);
  const std::string hostile = "`touch x` $(id) \"'\\{}<&>^{2}_x \xE2\x80\xAE \n\x01 \xFF";
  examples.push_back({"widths",
                      WidthsGrid({16, 32, 64, 128}, 2),
                      {{"16/n0", 3, 2, 300, 2}, {"16/n1", 3, 2, 300, 2, 1}}});
  examples.push_back({"hostile",
                      Settings({{hostile, {2, 2.1}}, {longest, {2.2, none}}}),
                      {{hostile, 3, 2, 300, 2}, {longest, 3, 2, 300, 2, 1}}});
  examples.push_back(Outlier());
  examples.push_back(LongLabels());
  examples.push_back(Crossed("crossed", {"pre", "post", "none"}, {"on", "off"}, true));
  examples.push_back(
      Crossed("many crossed", {"pre", "post", "none"}, {"on", "half", "off"}, false));
  return examples;
}

class KindsTest : public testing::TestWithParam<size_t> {
 protected:
  const Example example_ = Examples()[GetParam()];
  const absl::StatusOr<report::Comparison> comparison_ = report::Compare(example_.grid);

  // Returns the reason why there is no figure of the kind; empty if there is one.
  std::string Refusal(const Kind& kind) const {
    const bool diverged = example_.name == "all diverged";
    if (kind.name == "sensitivity" && comparison_->tuned_axes.empty()) return "tuned";
    if (kind.name == "axis" && example_.name != "widths") return "numeric `values`";
    if (kind.reads == Reads::kPairs && comparison_->family > 0 &&
        (example_.shapes.size() < 2 || diverged)) {
      return "baseline converged has points of";
    }
    if (kind.reads == Reads::kAnalysis && diverged) return std::string(kind.key);
    if (kind.reads == Reads::kLevels && diverged) return "analyze robustness";
    return kind.reads == Reads::kBlocks && diverged ? "evaluation.record" : "";
  }
};

TEST_P(KindsTest, DrawsWithinTheFigureWithoutOverlaps) {
  ASSERT_TRUE(comparison_.ok()) << comparison_.status();
  for (const Kind* each : Kinds()) {
    const Kind& kind = *each;
    for (const double width : kWidths) {
      SCOPED_TRACE(absl::StrCat(example_.name, " ", std::string(kind.name), " ", width));
      const auto drawing =
          Draw(kind, MakeInput(kind, example_.grid, *comparison_, example_.shapes, width));
      const std::string refusal = Refusal(kind);
      if (!refusal.empty()) {
        EXPECT_EQ(drawing.status().code(), absl::StatusCode::kFailedPrecondition);
        EXPECT_THAT(drawing.status().message(), HasSubstr(refusal));
        continue;
      }
      ASSERT_TRUE(drawing.ok()) << drawing.status();
      EXPECT_THAT(Outside(drawing->figure), testing::IsEmpty());
      EXPECT_THAT(Overlapping(drawing->figure), testing::IsEmpty());
      EXPECT_GT(std::count(drawing->csv.begin(), drawing->csv.end(), '\n'), 1);
      const std::string svg = Svg(drawing->figure);
      const std::string name(kind.name);
      EXPECT_THAT(svg, HasSubstr(absl::StrCat("aria-labelledby=\"", name,
                                              "-title\" aria-describedby=\"", name, "-desc\"")));
      EXPECT_THAT(svg, testing::Not(testing::ContainsRegex("nan|inf[^o]")));
      EXPECT_TRUE(Render(drawing->figure, Format::kPng).ok());
    }
  }
}

TEST(KindTest, DrawsEveryFormOfItsAnalyses) {
  const auto comparison = report::Compare(NormsGrid(2));
  const std::vector<CurveShape> shapes = {{"pre"}, {"post"}, {"none", 3, 2, 9, 12, 2}};
  for (const Kind* kind : Kinds()) {
    for (const ArrayForm& form : kind->forms) {
      for (const double width : kWidths) {
        SCOPED_TRACE(absl::StrCat(kind->name, " ", form.array, " ", form.axes, " ", width));
        Input input = MakeInput(*kind, NormsGrid(2), *comparison, shapes, width);
        input.analyzed = MakeAnalyzed(form, shapes);
        const auto drawing = Draw(*kind, input);
        ASSERT_TRUE(drawing.ok()) << drawing.status();
        EXPECT_THAT(Outside(drawing->figure), testing::IsEmpty());
        EXPECT_THAT(Overlapping(drawing->figure), testing::IsEmpty());
        EXPECT_THAT(kind->caption(input), HasSubstr("at step 1000"));
        EXPECT_NE(drawing->figure.description, "");
        EXPECT_TRUE(Render(drawing->figure, Format::kPdf).ok());
      }
    }
  }
}

// Returns a file of the repository.
std::string FileText(const std::string& path) {
  std::ifstream file(absl::StrCat(ABLATE_SOURCE, "/", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(KindTest, LacksNothing) {
  for (const Kind* kind : Kinds()) {
    SCOPED_TRACE(kind->name);
    EXPECT_EQ(FindKind(kind->name), kind);
    for (const absl::string_view text : {kind->name, kind->title}) EXPECT_NE(text, "");
    EXPECT_TRUE(kind->wanted && kind->draw && kind->caption);
    const bool of_comparison = kind->reads == Reads::kComparison ||
                               kind->reads == Reads::kWindows || kind->reads == Reads::kPairs;
    EXPECT_EQ(kind->key.empty(), of_comparison);
    EXPECT_EQ(kind->reduce != nullptr,
              kind->reads == Reads::kCurves || kind->reads == Reads::kPairs);
    EXPECT_EQ(!kind->forms.empty(), kind->reads == Reads::kAnalysis);
  }
}

TEST(KindTest, IsInTheTableIfItIsDeclared) {
  const std::string header = FileText("server/report/figure/kinds.h");
  const size_t begin = header.find("extern const Kind "), end = header.find(';', begin);
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(std::count(header.begin() + static_cast<std::ptrdiff_t>(begin),
                       header.begin() + static_cast<std::ptrdiff_t>(end), ',') +
                1,
            static_cast<std::ptrdiff_t>(Kinds().size()));
}

TEST(KindTest, StandsInReportsWhereItHasSomethingToShow) {
  const auto in_report = [](const report::ComparisonInput& grid) {
    std::vector<std::string> names;
    for (const Kind* kind : KindsInReport(*report::Compare(grid))) names.emplace_back(kind->name);
    return names;
  };
  EXPECT_THAT(in_report(NormsGrid(2)),
              ElementsAre("forest", "difference", "sensitivity", "loss", "summary", "depth",
                          "levels", "landscape", "eigenvalues", "reliability", "matrix",
                          "trajectory", "windows", "curves"));
  report::ComparisonInput of_analysis = NormsGrid(2);
  of_analysis.key = "spectrum/stable_rank";
  of_analysis.choice_key = "eval/loss";
  for (report::Cell& cell : of_analysis.cells) cell.choice = cell.value;
  EXPECT_THAT(in_report(of_analysis), testing::Not(testing::Contains("sensitivity")));
  const Kind& sensitivity = *FindKind("sensitivity");
  const auto drawn = Draw(
      sensitivity, MakeInput(sensitivity, of_analysis, *report::Compare(of_analysis), {}, 6.75));
  EXPECT_THAT(std::string(drawn.status().message()),
              HasSubstr("expected the metric by which tuned values are selected, eval/loss, at"));
  EXPECT_THAT(
      in_report(Settings({{"a", {2, 3}}, {"b", {3, 4}}})),
      ElementsAre("forest", "difference", "loss", "summary", "depth", "levels", "landscape",
                  "eigenvalues", "reliability", "matrix", "trajectory", "windows", "curves"));
  EXPECT_THAT(in_report(Settings({{"a", {2, 3}}})),
              ElementsAre("loss", "summary", "depth", "levels", "landscape", "eigenvalues",
                          "reliability", "matrix", "trajectory", "windows", "curves"));
}

// Checks the lists of kinds that people read, which are written by hand.
TEST(KindTest, IsInTheDocumentsAndInTheHelp) {
  std::vector<std::string> names;
  for (const Kind* kind : Kinds()) {
    EXPECT_THAT(FileText("docs/reference/figures.md"),
                HasSubstr(absl::StrCat("](#", kind->name, ")")))
        << "no row of the table of questions leads to its section";
    names.emplace_back(kind->name);
  }
  const std::string last = names.back();
  names.pop_back();
  const std::string all = absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
  const std::string command =  // its literals joined
      absl::StrReplaceAll(FileText("client/commands/figure.cc"), {{"\"\n    \"", ""}});
  EXPECT_THAT(command, HasSubstr(absl::StrCat("\"", all, "\"")));
  EXPECT_THAT(FileText("proto/ablate/v1/report.proto"), HasSubstr(absl::StrCat("// ", all, ";")));
}

std::string ExampleName(const testing::TestParamInfo<size_t>& info) {
  std::string name = Examples()[info.param].name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Examples, KindsTest, testing::Range<size_t>(0, 13), ExampleName);

// Returns the line of a CSV with this beginning.
std::string LineOf(const std::string& csv, const std::string& begin) {
  for (const absl::string_view line : absl::StrSplit(csv, '\n')) {
    if (absl::StartsWith(line, begin)) return std::string(line);
  }
  return "";
}

TEST(ForestTest, MarksRowsThatAreScoredOnOtherData) {
  report::ComparisonInput grid = NormsGrid();
  for (report::Cell& cell : grid.cells) cell.scored["data"] = cell.labels[0] == "none" ? "b" : "a";
  for (const double width : kWidths) {
    const Drawing drawing = DrawingOf("forest", grid, width);
    const auto& texts = drawing.figure.texts;
    EXPECT_EQ(std::count_if(texts.begin(), texts.end(),
                            [](const Text& text) {
                              return absl::EndsWith(text.text, "(other evaluation data)");
                            }),
              2)
        << "none at its own choice, and at the shared one";
    const std::string& csv = drawing.csv;
    EXPECT_THAT(csv, StartsWith("group,setting,baseline,seed,difference,low,high,n,pairs,wins,"
                                "ended,planned,verdict\n"));
    EXPECT_THAT(LineOf(csv, "each at its selected lr,post,pre,,"), EndsWith(",216,216,worse"));
    EXPECT_THAT(LineOf(csv, "each at its selected lr,none,pre,,"),
                EndsWith(",216,216,scored-differently"));
    EXPECT_THAT(LineOf(csv, "each at its selected lr,none,pre,42,"),
                EndsWith(",216,216,scored-differently"));
    EXPECT_THAT(LineOf(csv, "all at lr 0.01,post,pre,,"), EndsWith(",216,216,"));
    EXPECT_THAT(LineOf(csv, "all at lr 0.01,none,pre,,"), EndsWith(",216,216,scored-differently"));
  }
}

TEST(ForestTest, CountsInItsCsvHowManyRunsHaveEnded) {
  report::ComparisonInput grid = Settings({{"a", {2, 2.1, 2.2}}, {"b", {2.2, 2.2, 2.4}}});
  grid.cells.back().outcome = report::RunOutcome::kUnfinished;
  grid.cells.back().value.reset();
  EXPECT_THAT(DrawingOf("forest", grid, 6.75).csv, HasSubstr(",5,6,preliminary\n"));
}

TEST(ForestTest, PointsToNothingBetterWhereNeitherIs) {
  report::ComparisonInput grid = Settings({{"a", {2, 2.1, 2.2}}, {"b", {2.2, 2.2, 2.4}}});
  grid.better = report::Better::kNeither;
  for (const double width : kWidths) {
    const Drawing drawing = DrawingOf("forest", grid, width);
    const std::string texts = TextsIn(drawing.figure);
    EXPECT_THAT(
        texts, AllOf(Not(HasSubstr("wins")), Not(HasSubstr("\n3/3\n")), Not(HasSubstr("\n0/3\n"))));
    if (width > 5) {  // a column has no room for these
      EXPECT_THAT(texts, AllOf(HasSubstr("\n← lower\n"), HasSubstr("\nhigher →\n")));
    }
    EXPECT_THAT(drawing.csv, HasSubstr(",3,3,,6,6,"));
  }
}

TEST(ForestTest, HasRatiosWhereTheyAreCompared) {
  report::ComparisonInput grid =
      Settings({{"a", {1, 10, 100, 1000}}, {"b", {2.1, 19, 210, 1900}}, {"c", {.5, 5, 51, 490}}});
  grid.key = "train/gradient_norm";
  grid.scale = report::Scale::kRatio;
  for (const double width : kWidths) {
    const Drawing drawing = DrawingOf("forest", grid, width);
    EXPECT_THAT(Outside(drawing.figure), ElementsAre());
    EXPECT_THAT(Overlapping(drawing.figure), ElementsAre());
    const Panel& panel = drawing.figure.panels[0];
    std::map<std::string, double> ticks;
    for (const Tick& tick : panel.x.ticks) ticks[tick.label] = tick.at;
    ASSERT_EQ(ticks.count("×1") + ticks.count("×2"), 2u);
    EXPECT_EQ(ticks["×1"], 0);
    EXPECT_NEAR(ticks["×2"], std::log(2), 1e-12);
    ASSERT_EQ(panel.rules.size(), 1u);
    EXPECT_NEAR(panel.rules[0].x0, XInches(panel, 0), 1e-12) << "the rule stands at ×1";
    EXPECT_THAT(TextsIn(drawing.figure), AllOf(HasSubstr("\ngradient norm, ratio to a\n"),
                                               HasSubstr("\n×1.997 [1.822, 2.190]\n")));
    EXPECT_THAT(drawing.csv, StartsWith("group,setting,baseline,seed,ratio,low,high,"));
    EXPECT_THAT(LineOf(drawing.csv, ",b,a,0,"), StartsWith(",b,a,0,2.1,,"));
    EXPECT_THAT(drawing.figure.description, HasSubstr("Ratios of gradient norm: b ×1.997 ["));
  }
}

TEST(SmallMultiplesTest, CallNothingTheBaselineWhereThereAreSeveral) {
  report::ComparisonInput grid = NormsGrid(2);
  grid.axes[1].tuned = false;
  for (const char* by : {"", "placement"}) {
    grid.by = by;
    const auto comparison = report::Compare(grid);
    ASSERT_TRUE(comparison.ok()) << comparison.status();
    std::vector<CurveShape> shapes;
    for (const auto& row : comparison->rows) shapes.push_back({row.label, 3, 2, 50, 2});
    const std::string texts = TextsIn(DrawingOf("loss", grid, 6.75, shapes).figure);
    EXPECT_EQ(absl::StrContains(texts, "black: baseline"), *by == '\0');
  }
}

TEST(SmallMultiplesTest, FitOnAPageWithTitlesAndFootnote) {
  size_t drawn = 0, refused = 0;
  for (size_t settings = 12; settings <= 66; settings += 6) {
    std::vector<std::pair<std::string, std::vector<double>>> rows;
    std::vector<CurveShape> shapes;
    for (size_t i = 0; i < settings; ++i) {
      rows.push_back({absl::StrCat("setting ", i), {2.5}});
      shapes.push_back({rows.back().first, 3, 2, 20, 1});
    }
    const report::ComparisonInput grid = Settings(rows);
    const auto comparison = report::Compare(grid);
    const Kind& kind = *FindKind("windows");
    const auto drawing = Draw(kind, MakeInput(kind, grid, *comparison, shapes, 6.75));
    ++(drawing.ok() ? drawn : refused);
    if (drawing.ok()) {
      EXPECT_LE(drawing->figure.height, 9) << settings;
    }
  }
  EXPECT_GT(drawn, 0u);
  EXPECT_GT(refused, 0u);
}

// Returns the labels on the x axes of a figure's lowest panels.
std::vector<std::string> ValueLabels(const Figure& figure) {
  std::vector<std::string> labels;
  for (const Panel& panel : figure.panels) {
    for (const Tick& tick : panel.x.ticks) {
      if (!tick.label.empty()) labels.push_back(tick.label);
    }
  }
  return labels;
}

TEST(SmallMultiplesTest, LabelBothOfTwoTunedValues) {
  report::ComparisonInput grid;
  grid.key = "eval/loss";
  grid.axes = {{"norm", {}, false, {}, {}}, {"lr", {"0.003", "0.01"}, true, {.003, .01}, "0.01"}};
  for (int setting = 0; setting < 9; ++setting) {
    grid.axes[0].labels.push_back(absl::StrCat("n", setting));
    for (const std::string& learning_rate : grid.axes[1].labels) {
      report::Cell cell;
      cell.labels = {grid.axes[0].labels.back(), learning_rate};
      cell.outcome = report::RunOutcome::kDone;
      cell.value = 2 + .1 * setting;
      grid.cells.push_back(std::move(cell));
    }
  }
  for (const double width : kWidths) {
    const std::vector<std::string> labels =
        ValueLabels(DrawingOf("sensitivity", grid, width).figure);
    EXPECT_GE(labels.size(), 6u);
    EXPECT_EQ(std::count(labels.begin(), labels.end(), "0.003"),
              std::count(labels.begin(), labels.end(), "0.01"));
  }
}

TEST(WindowsTest, TitleWhatIsThere) {
  const report::ComparisonInput grid = Settings({{"a", {2, 2.1}}, {"b", {2.2, 2.3}}});
  const auto titles = [&](uint32_t steps) {
    const Figure figure =
        DrawingOf("windows", grid, 6.75, {{"a", 3, 2, steps, 2}, {"b", 3, 2, 9, 2}}).figure;
    std::vector<std::string> found;
    for (const Text& text : figure.texts) {
      if (absl::EndsWith(text.text, " steps")) found.push_back(text.text);
    }
    EXPECT_EQ(figure.panels.size(), found.size());
    return found;
  };
  EXPECT_THAT(titles(60), ElementsAre("All steps"));
  EXPECT_THAT(titles(100), ElementsAre("All steps"));
  EXPECT_THAT(titles(150), ElementsAre("First 100 steps", "All steps"));
  EXPECT_THAT(titles(201), ElementsAre("First 100 steps", "Last 200 steps"));
}

TEST(KindTest, GivesTheSameBytesTwice) {
  const auto grid = NormsGrid(2);
  const auto comparison = report::Compare(grid);
  const Kind& kind = *FindKind("loss");
  const Input input =
      MakeInput(kind, grid, *comparison, {{"pre", 3, 2, 200, 2}, {"post", 3, 2.5, 200, 2}}, 3.25);
  const auto first = Draw(kind, input), second = Draw(kind, input);
  EXPECT_EQ(first->csv, second->csv);
  for (const Format format : {Format::kSvg, Format::kPdf, Format::kPng}) {
    const auto a = Render(first->figure, format);
    const auto b = Render(second->figure, format);
    ASSERT_TRUE(a.ok()) << a.status();
    EXPECT_TRUE(*a == *b) << MediaType(format);
  }
}

}  // namespace
}  // namespace ablate::figure
