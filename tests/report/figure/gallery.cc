// Draws every kind of figure from examples, ordinary and degenerate, into a folder, for viewing; or
// one text as SVG, for reading back.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/report/figure/render.h"
#include "tests/report/figure/example_curves.h"
#include "tests/report/figure/example_grids.h"

namespace ablate::figure {
namespace {

std::vector<Example> Examples() {
  const double none = std::nan("");
  const std::string longest = "a-setting-with-a-very-long-label-of-about-sixty-characters-17";
  std::vector<Example> examples = {{"norms", NormsGrid(), NormsShapes()},
                                   {"seed", NormsGrid(1), NormsShapes()}};
  for (CurveShape& shape : examples[1].shapes) shape.seeds = 1;
  Example twelve{"twelve", {}, {}};
  std::vector<std::pair<std::string, std::vector<double>>> rows;
  for (int i = 0; i < 12; ++i) {
    const std::string label = i == 10 ? longest : i == 11 ? "scale^{2}" : absl::StrCat("s", i);
    twelve.shapes.push_back({label, 3.4, 2.3 + 0.05 * i});
    rows.push_back({label, {}});
    for (int s = 0; s < 12; ++s) rows.back().second.push_back(2.4 + .01 * i + .01 * ((s * i) % 5));
  }
  twelve.grid = Settings(rows);
  examples.push_back(twelve);
  examples.push_back({"bad",
                      Settings({{"pre", {2.4, 2.5, 2.45}},
                                {longest, {2.5, none, 2.6}},
                                {"`all` diverged", {none, none, none}},
                                {"equal", {2.4, 2.5, 2.45}}}),
                      {{"pre"},
                       {longest, 3.4, 2.6, 1000, 12, 2},
                       {"`all` diverged", 3.5, 2.7, 1000, 3, 3},
                       {"equal", 3.4, 2.4, 1000, 12}}});
  examples.push_back({"flat", Settings({{"one", {2, 2}}, {"two", {2, 2}}}), {{"one", 2, 2, 1, 1}}});
  // More settings than colours, two tuned values, runs shorter than a window.
  Example ten{"ten", {}, {}};
  rows.clear();
  for (int i = 0; i < 10; ++i) {
    rows.push_back({absl::StrCat("s", i), {2.4 + .01 * i, 2.5 - .01 * i, 2.45}});
    ten.shapes.push_back({rows.back().first, 3.4, 2.3, 60, 3});
  }
  ten.grid = Settings(rows);
  ten.grid.axes.push_back({"lr", {"0.003", "0.01"}, true, {.003, .01}, "0.01"});
  for (report::Cell& cell : ten.grid.cells) cell.labels.emplace_back("0.003");
  for (size_t i = 0, all = ten.grid.cells.size(); i < all; ++i) {
    ten.grid.cells.push_back(ten.grid.cells[i]);
    ten.grid.cells.back().labels[1] = "0.01";
    ten.grid.cells.back().value = *ten.grid.cells[i].value + .05;
  }
  examples.push_back(ten);
  Example two{"short", Settings({{"a", {2.4, 2.5}}, {"b", {2.6, 2.7}}}), {}};
  two.shapes = {{"a", 3.4, 2.4, 60, 2}, {"b", 3.4, 2.6, 60, 2}};
  examples.push_back(two);
  examples.push_back(Outlier());
  examples.push_back(LongLabels());
  examples.push_back(Crossed("crossed32", {"pre", "post", "none"}, {"on", "off"}, true));
  examples.push_back(Crossed("crossed23", {"pre", "post"}, {"on", "half", "off"}, false));
  examples.push_back(
      Crossed("crossed34", {"pre", "post", "none"}, {"on", "half", "third", "off"}, true));
  // Norms over decades, compared as ratios.
  Example ratios{"ratios", {}, {{"pre", 40, 20}, {"post", 90, 34}, {"none", 30, 4}}};
  rows = {{"pre", {}}, {"post", {}}, {"none", {}}};
  for (int s = 0; s < 12; ++s) {
    rows[0].second.push_back(std::exp(s % 7));
    rows[1].second.push_back(1.6 * std::exp(s % 7 + .1 * (s % 3)));
    rows[2].second.push_back(.2 * std::exp(s % 7 + .2 * (s % 2)));
  }
  ratios.grid = Settings(rows);
  ratios.grid.key = "train/gradient_norm";
  ratios.grid.better = report::Better::kNeither;
  ratios.grid.scale = report::Scale::kRatio;
  examples.push_back(ratios);
  // Three settings, one far away; one run explodes within a few steps.
  examples.push_back({"three",
                      Settings({{"pre", {2.4, 2.41, 2.42}},
                                {"post", {2.43, 2.41, 2.44}},
                                {"none", {2.38, 2.4, 2.39}},
                                {"far", {4.4, 4.6, 5.2}}}),
                      {{"pre", 3.4, 2.4, 500, 3},
                       {"post", 3.4, 2.43, 500, 3, 1, 40},
                       {"none", 3.4, 2.39, 500, 3},
                       {"far", 3.4, 2.5, 500, 3, 2}}});
  return examples;
}

// Few and many lines, values and divergences over a numeric axis.
std::vector<Example> AxisExamples() {
  std::vector<Example> examples = {{"line", WidthsGrid({16, 32, 64, 128, 256}, 1, 5), {}},
                                   {"two-values", WidthsGrid({16, 32}, 3, 5), {}},
                                   {"linear", WidthsGrid({2, 4, 6, 12}, 2, 1), {}},
                                   {"six-lines", WidthsGrid({16, 32, 64, 128, 256}, 6, 5), {}},
                                   {"twelve-lines", WidthsGrid({16, 32, 64, 128}, 12, 5), {}}};
  std::vector<double> depths;
  for (int i = 1; i <= 20; ++i) depths.push_back(i);
  for (const size_t lines : {size_t{3}, size_t{8}}) {
    examples.push_back({absl::StrCat("depths", lines), WidthsGrid(depths, lines, 12), {}});
    examples.push_back(
        {absl::StrCat("diverged", lines), WidthsGrid({16, 32, 64, 128, 256}, lines, 12), {}});
    for (size_t i = examples.size() - 2; i < examples.size(); ++i) {
      report::ComparisonInput& grid = examples[i].grid;
      const std::vector<std::string>& labels = grid.axes[0].labels;
      Diverge({labels[1], "n1"}, &grid);
      Diverge({labels[3], "n1"}, &grid, 2);
      Diverge({labels[4], "n2"}, &grid, 11);
      Exclude({labels[2], "n2"}, &grid);
    }
  }
  examples.push_back({"contexts", WidthsGrid({16, 32, 64, 128}, 2, 5), {}});
  for (report::Cell& cell : examples.back().grid.cells) cell.scored["context"] = cell.labels[0];
  return examples;
}

// Draws `text` in an SVG on stdout.
int DrawText(const std::string& text) {
  Figure figure;
  figure.name = "text";
  figure.title = text;
  figure.width = 12;
  figure.texts.push_back({0.1, 1, text, 7, {}});
  const std::string svg = Svg(figure);
  std::fwrite(svg.data(), 1, svg.size(), stdout);
  return 0;
}

// Metrics by block of few and of many settings, shallow and deep, on both axes.
struct DepthExample {
  std::string name, key;
  std::vector<DepthShape> shapes;
};

std::vector<DepthExample> DepthExamples() {
  std::vector<DepthExample> examples = {
      {"depth2", "gradient", {{"residual", 20, 8, 0, .02, 1.1}, {"plain", 20, 8, 0, 1e-7, 2}}},
      {"depth100",
       "gradient",
       {{"residual", 100, 8, 0, .02, 1.01}, {"plain", 50, 8, 2, 1e-12, 1.7}}},
      {"aligned", "alignment", {{"FA", 20, 8, 0, .3, 1.02}, {"DFA", 12, 8, 0, .1, 1.1}}},
  };
  DepthExample ten{"depth10", "gradient", {}};
  for (uint32_t i = 0; i < 10; ++i) {
    ten.shapes.push_back({absl::StrCat("setting ", i), i % 2 == 0 ? 100u : 20u, 8, 0,
                          std::pow(10, -static_cast<double>(i)), 1.05 + .02 * i});
  }
  examples.push_back(ten);
  ten.name = "aligned10";
  ten.key = "alignment";
  for (size_t i = 0; i < ten.shapes.size(); ++i) {
    ten.shapes[i].at_input = .02 + .01 * static_cast<double>(i);
    ten.shapes[i].factor = 1.01;
  }
  examples.push_back(ten);
  return examples;
}

absl::Status WritePng(const std::string& path, const Figure& figure) {
  const auto png = Render(figure, Format::kPng);
  if (!png.ok()) return png.status();
  std::ofstream file(path);
  return (file << *png).flush() ? absl::OkStatus() : absl::UnavailableError(path);
}

int DrawDepths(const std::string& folder) {
  for (const DepthExample& example : DepthExamples()) {
    std::vector<std::pair<std::string, std::vector<double>>> rows;
    Input input;
    for (const DepthShape& shape : example.shapes) {
      rows.push_back({shape.label, {2, 2.1}});
      FamilySetting setting = MakeDepth(shape, input.family.size());
      if (example.key == "alignment") {  // has none at the embedding
        for (FamilySeed& seed : setting.seeds) seed.values.erase(0);
      }
      input.family.push_back(std::move(setting));
    }
    const auto comparison = report::Compare(Settings(rows));
    input.comparison = &*comparison;
    input.key = example.key;
    input.title = "depth";
    for (const auto& [suffix, width] : {std::pair{"column", 3.25}, std::pair{"double", 6.75}}) {
      input.width = width;
      const auto drawing = Draw(kDepth, input);
      if (!drawing.ok()) return 1;
      const std::string path = absl::StrCat(folder, "/", example.name, "-", suffix, ".png");
      if (!WritePng(path, drawing->figure).ok()) return 1;
    }
  }
  return 0;
}

int DrawAxes(const std::string& folder) {
  for (const Example& example : AxisExamples()) {
    const auto comparison = report::Compare(example.grid);
    for (const auto& [suffix, width] : {std::pair{"column", 3.25}, std::pair{"double", 6.75}}) {
      const auto drawing = Draw(kAxis, MakeInput(kAxis, example.grid, *comparison, {}, width));
      if (!drawing.ok()) return 1;
      const std::string path = absl::StrCat(folder, "/axis-", example.name, "-", suffix, ".png");
      if (!WritePng(path, drawing->figure).ok()) return 1;
    }
  }
  return 0;
}

// Draws the forms of analyses that DrawAll doesn't draw: all except each kind's first.
int DrawForms(const std::string& folder) {
  const std::vector<CurveShape> shapes = {{"pre"}, {"post"}, {"none", 3, 2, 1000, 12, 2}};
  const auto comparison = report::Compare(NormsGrid(2));
  for (const Kind* kind : Kinds()) {
    for (size_t form = 1; form < kind->forms.size(); ++form) {
      for (const auto& [suffix, width] : {std::pair{"column", 3.25}, std::pair{"double", 6.75}}) {
        Input input = MakeInput(*kind, NormsGrid(2), *comparison, shapes, width);
        input.analyzed = MakeAnalyzed(kind->forms[form], shapes);
        if (kind->forms[form].analysis == "attention") input.analyzed.prompt = "anna lee";
        const auto drawing = Draw(*kind, input);
        if (!drawing.ok()) return 1;
        const std::string path =
            absl::StrCat(folder, "/form", form, "-", kind->name, "-", suffix, ".png");
        if (!WritePng(path, drawing->figure).ok()) return 1;
      }
    }
  }
  return 0;
}

int DrawAll(const std::string& folder) {
  for (const Example& example : Examples()) {
    const auto comparison = report::Compare(example.grid);
    for (const Kind* each : Kinds()) {
      const Kind& kind = *each;
      for (const auto& [suffix, width] : {std::pair{"column", 3.25}, std::pair{"double", 6.75}}) {
        const auto drawing =
            Draw(kind, MakeInput(kind, example.grid, *comparison, example.shapes, width));
        if (!drawing.ok()) continue;
        const std::string path =
            absl::StrCat(folder, "/", example.name, "-", kind.name, "-", suffix, ".png");
        if (!WritePng(path, drawing->figure).ok()) return 1;
      }
    }
  }
  if (const int failed = DrawForms(folder); failed != 0) return failed;
  if (const int failed = DrawAxes(folder); failed != 0) return failed;
  return DrawDepths(folder);
}

int Main(int argc, char** argv) {
  if (argc == 2) return DrawAll(argv[1]);
  if (argc == 3 && std::string(argv[1]) == "--text") return DrawText(argv[2]);
  std::fprintf(stderr, "usage: figure_gallery FOLDER | --text TEXT\n");
  return 64;
}

}  // namespace
}  // namespace ablate::figure

int main(int argc, char** argv) { return ablate::figure::Main(argc, argv); }
