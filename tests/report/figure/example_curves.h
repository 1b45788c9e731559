// Makes curves and grids like those of twelve seeds of a small transformer, from a generator.
#ifndef ABLATE_TESTS_REPORT_FIGURE_EXAMPLE_CURVES_H_
#define ABLATE_TESTS_REPORT_FIGURE_EXAMPLE_CURVES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/paired.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/style.h"

namespace ablate::figure {

// Standard normal draws.
class Noise {
 public:
  explicit Noise(uint64_t seed) : stream_(seed) {}
  double operator()() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += stream_.Uniform();
    return sum - 6;
  }

 private:
  report::RandomStream stream_;
};

// A setting's loss: from `start` to `end`, with noise that all settings of a seed partly share.
struct CurveShape {
  std::string label;
  double start = 3.4, end = 2.35;
  uint32_t steps = 1000, seeds = 12;
  uint32_t diverging = 0;   // seeds that blow up half way
  double explosion = 0.02;  // growth of their loss per step
};

inline SettingCurves MakeCurves(const CurveShape& shape, size_t style) {
  SettingCurves setting{shape.label, style, {}};
  for (uint32_t seed = 42; seed < 42 + shape.seeds; ++seed) {
    Noise shared(seed), own(seed * 31 + style);
    const double offset = own() * 0.03;
    SeedCurve curve{seed, {}, {}, seed < 42 + shape.diverging};
    for (uint32_t step = 0; step < shape.steps; ++step) {
      const double decay = std::exp(-static_cast<double>(step) / 60);
      double value = shape.end + offset + (shape.start - shape.end) * decay + 0.25 * shared() +
                     0.2 * own() - 0.0001 * step;
      if (curve.diverged && step > shape.steps / 2)
        value += shape.explosion * (step - shape.steps / 2);
      curve.steps.push_back(step);
      curve.values.push_back(value);
      if (curve.diverged && step > shape.steps / 2 + 100) break;
    }
    setting.seeds.push_back(std::move(curve));
  }
  return setting;
}

// Returns placement × learning rate × seed, near the published numbers: held-out losses whose tuned
// differences are +0.03 and −0.04, and runs without norms that diverge at high rates.
inline report::ComparisonInput NormsGrid(uint32_t seeds = 12) {
  report::ComparisonInput input;
  input.key = "eval/loss";
  input.axes.resize(2);
  input.axes[0].name = "placement";
  input.axes[0].labels = {"pre", "post", "none"};
  input.axes[1].name = "lr";
  input.axes[1].labels = {"0.001", "0.002", "0.004", "0.01", "0.02", "0.04"};
  input.axes[1].values = {.001, .002, .004, .01, .02, .04};
  input.axes[1].tuned = true;
  input.axes[1].base = "0.01";
  const double losses[3][6] = {{2.515, 2.459, 2.437, 2.445, 2.484, 2.561},
                               {2.507, 2.468, 2.495, 2.749, 2.827, 2.828},
                               {2.461, 2.412, 2.394, 2.415, 3.145, 3.2}};
  for (uint32_t seed = 42; seed < 42 + seeds; ++seed) {
    Noise shared(seed);
    const double offset = shared() * 0.012;
    for (size_t placement = 0; placement < 3; ++placement) {
      for (size_t lr = 0; lr < 6; ++lr) {
        Noise own(seed * 97 + placement * 11 + lr);
        report::Cell cell;
        cell.labels = {input.axes[0].labels[placement], input.axes[1].labels[lr]};
        cell.seed = seed;
        const double spread = placement == 1 && lr == 3 ? 0.08 : 0.008;
        cell.value = losses[placement][lr] + offset + spread * own();
        const bool diverged = placement == 2 && (lr == 5 || (lr == 4 && seed % 6 != 0));
        cell.outcome = diverged ? report::RunOutcome::kDiverged : report::RunOutcome::kDone;
        input.cells.push_back(std::move(cell));
      }
    }
  }
  return input;
}

// One axis without tuning; values by seed from 0, NaN for a run that diverged.
inline report::ComparisonInput Settings(
    const std::vector<std::pair<std::string, std::vector<double>>>& settings) {
  report::ComparisonInput input;
  input.key = "eval/loss";
  input.axes.resize(1);
  input.axes[0].name = "setting";
  for (const auto& [label, values] : settings) {
    input.axes[0].labels.push_back(label);
    for (size_t seed = 0; seed < values.size(); ++seed) {
      report::Cell cell;
      cell.labels = {label};
      cell.seed = static_cast<uint32_t>(seed);
      const bool diverged = std::isnan(values[seed]);
      cell.outcome = diverged ? report::RunOutcome::kDiverged : report::RunOutcome::kDone;
      if (!diverged) cell.value = values[seed];
      input.cells.push_back(std::move(cell));
    }
  }
  return input;
}

// Returns widths × norms n0, n1, … × seeds from 0, or widths alone: losses that fall with the width
// and are further apart for small widths.
inline report::ComparisonInput WidthsGrid(const std::vector<double>& widths, size_t norms,
                                          uint32_t seeds = 3) {
  report::ComparisonInput input;
  input.key = "eval/loss";
  input.axes.resize(norms > 1 ? 2 : 1);
  input.axes[0].name = "width";
  input.axes[0].values = widths;
  for (const double width : widths) input.axes[0].labels.push_back(absl::StrCat(width));
  if (norms > 1) input.axes[1].name = "norm";
  for (size_t norm = 0; norm < norms; ++norm) {
    if (norms > 1) input.axes[1].labels.push_back(absl::StrCat("n", norm));
    for (size_t width = 0; width < widths.size(); ++width) {
      for (uint32_t seed = 0; seed < seeds; ++seed) {
        Noise own(seed * 97 + norm * 11 + width);
        report::Cell cell;
        cell.labels = {input.axes[0].labels[width]};
        if (norms > 1) cell.labels.push_back(input.axes[1].labels[norm]);
        cell.seed = seed;
        cell.outcome = report::RunOutcome::kDone;
        const double share = 1 / (1 + static_cast<double>(width));
        cell.value = 2 + (.5 + .1 * static_cast<double>(norm)) * share + .02 * own();
        input.cells.push_back(std::move(cell));
      }
    }
  }
  return input;
}

// Makes all runs, or the first so many, at a combination of labels diverge.
inline void Diverge(const std::vector<std::string>& labels, report::ComparisonInput* input,
                    uint32_t seeds = std::numeric_limits<uint32_t>::max()) {
  for (report::Cell& cell : input->cells) {
    if (cell.labels != labels || cell.seed >= seeds) continue;
    cell.outcome = report::RunOutcome::kDiverged;
    cell.value.reset();
  }
}

// Removes the cells at a combination of labels from the grid.
inline void Exclude(const std::vector<std::string>& labels, report::ComparisonInput* input) {
  auto& cells = input->cells;
  cells.erase(std::remove_if(cells.begin(), cells.end(),
                             [&](const report::Cell& cell) { return cell.labels == labels; }),
              cells.end());
}

// A setting's metrics by block: `at_input` at the embedding, multiplied by `factor` at each of
// `blocks`, with noise.
struct DepthShape {
  std::string label;
  uint32_t blocks = 20, seeds = 12, diverged = 0;
  double at_input = 1e-3, factor = 1.2, noise = 0.2;
};

inline FamilySetting MakeDepth(const DepthShape& shape, size_t style) {
  FamilySetting setting{shape.label, style, 1000, {}, shape.seeds, shape.diverged};
  for (uint32_t seed = 42; seed < 42 + shape.seeds; ++seed) {
    Noise own(seed * 31 + style);
    FamilySeed& values = setting.seeds.emplace_back();
    values.seed = seed;
    double value = shape.at_input * std::exp(shape.noise * own());
    for (uint32_t position = 0; position <= shape.blocks; ++position) {
      values.values[position] = value * std::exp(shape.noise * own());
      value *= shape.factor;
    }
  }
  return setting;
}

// Returns a setting's loss increases at three levels of a perturbation, for the kind `levels`.
inline FamilySetting MakeLevels(const CurveShape& shape, size_t style) {
  const uint32_t converged = shape.seeds - shape.diverging;
  FamilySetting setting{shape.label, style, 1000, {}, converged, shape.diverging};
  for (uint32_t seed = 42; seed < 42 + converged; ++seed) {
    Noise own(seed * 31 + style);
    FamilySeed& values = setting.seeds.emplace_back();
    values.seed = seed;
    const double steep = 2 + 0.2 * static_cast<double>(style % 5) + 0.2 * own();
    for (const double level : {0.1, 0.2, 0.4}) values.values[level] = steep * level + .02 * own();
  }
  return setting;
}

// Returns arrays of the text of eleven tokens: a boundary, words, halves of characters.
inline std::map<std::string, std::vector<double>> GreekTokens() {
  std::map<std::string, std::vector<double>> arrays;
  for (const char* token : {"", "When", " Mary", " and", " \xCE", "\xB1", " went", "\n",
                            " incomprehensibilities", ",", " gave"}) {
    for (const char* byte = token; *byte != 0; ++byte) {
      arrays["token_text"].push_back(static_cast<unsigned char>(*byte));
    }
    arrays["token_ends"].push_back(static_cast<double>(arrays["token_text"].size()));
  }
  return arrays;
}

// Returns a plausible result of an analysis of this form: losses that rise from 2, eigenvalues that
// fall, predictions that are too sure, sites that differ more the further they are apart, causal
// attention.
inline AnalyzedSeed MakeAnalyzedSeed(const ArrayForm& form, uint32_t seed, size_t style) {
  Noise own(seed * 31 + style);
  AnalyzedSeed one;
  one.seed = seed;
  one.step = 1000;
  one.number = 2;
  const double steep = 1 + static_cast<double>(style % 5) + 0.2 * own();
  const auto places = [&one](size_t points) {
    for (size_t i = 0; i < points; ++i) {
      one.places.push_back(2.0 * static_cast<double>(i) / static_cast<double>(points - 1) - 1);
    }
  };
  if (form.axes == "direction,alpha") {
    one.shape = {3, 21};
    places(21);
    for (size_t d = 0; d < 3; ++d) {
      for (const double x : one.places) one.values.push_back(2 + (steep + 0.1 * own()) * x * x);
    }
  } else if (form.axes == "plane,alpha,beta") {
    one.shape = {1, 15, 15};
    places(15);
    for (const double x : one.places) {
      for (const double y : one.places) {
        one.values.push_back(2 + 2 * steep * x * x + y * y + 0.8 * x * y);
      }
    }
  } else if (form.analysis == "trajectory") {
    one.shape = {15, 15};
    places(15);
    std::vector<double> alphas;
    for (const double y : one.places) alphas.push_back(2 * y + 1.5);
    for (const double x : alphas) {
      for (const double y : one.places) one.values.push_back(2 + 0.2 * steep * x * x + y * y);
    }
    one.beside = {{"alphas", alphas},
                  {"way", {3, -.4, 2.2, .5, 1.2, .6, .5, .2, .2, -.1, 0, 0}},
                  {"way_losses", {4, 3, 2.6, 2.3, 2.1, 2}},
                  {"explained_shares", {.8, .12}}};
  } else if (form.analysis == "patch") {
    const bool heads = form.axes == "block,head";
    one.shape = {form.axes == "depth,position" ? size_t{5} : size_t{4},
                 heads ? size_t{6} : size_t{11}};
    for (size_t i = 0; i < one.shape[0] * one.shape[1]; ++i) {
      one.values.push_back(.1 * own() + (i % one.shape[1] == 3 ? .2 * steep : 0));
    }
    if (!heads) one.beside = GreekTokens();
  } else if (form.array == "bin_accuracy") {
    one.number = 0.05 * steep;
    one.shape = {10};
    std::vector<double> confidence, targets;
    for (size_t i = 0; i < 10; ++i) {
      const double middle = (static_cast<double>(i) + .5) / 10;
      const bool any = i > 0;  // no prediction is less sure than by chance
      targets.push_back(any ? std::round(800 * std::exp(-.4 * steep * middle)) : 0);
      confidence.push_back(any ? middle : std::nan(""));
      one.values.push_back(any ? std::min(1.0, std::pow(middle, 1 + .2 * steep)) : std::nan(""));
    }
    one.beside = {{"bin_confidence", confidence}, {"bin_targets", targets}};
  } else if (form.array == "singular_values") {
    one.shape = {64};
    for (size_t i = 0; i < 64; ++i) {
      one.values.push_back(std::pow(static_cast<double>(i + 1), -0.4 * steep) *
                           std::exp(0.05 * own()));
    }
    std::sort(one.values.rbegin(), one.values.rend());
  } else {
    const bool of_heads = form.axes == "block,head,query,key";
    const size_t blocks = of_heads ? 12 : form.axes == "block,query,key" ? 2 : 1, side = 9;
    const bool cka = form.array == "cka";
    one.shape = {side, side};
    if (form.axes == "block,query,key") one.shape.insert(one.shape.begin(), blocks);
    if (of_heads) one.shape.insert(one.shape.begin(), {3, 4});
    for (size_t i = 0; i < blocks * side * side; ++i) {
      const size_t row = i / side % side, column = i % side;
      const double apart = std::abs(static_cast<double>(row) - static_cast<double>(column));
      const double masked = column > row ? 0 : 1 / static_cast<double>(row + 1);
      one.values.push_back(cka ? std::exp(-0.1 * steep * apart) : masked);
    }
  }
  return one;
}

inline Analyzed MakeAnalyzed(const ArrayForm& form, const std::vector<CurveShape>& shapes) {
  Analyzed analyzed;
  analyzed.form = &form;
  analyzed.options = {
      {"direction", {"filter"}}, {"estimator", {"debiased"}}, {"clean", {"a", "b"}}};
  analyzed.inputs = "at most 2,000 held-out tokens";
  for (size_t i = 0; i < shapes.size(); ++i) {
    AnalyzedSetting setting{
        shapes[i].label, i, {}, shapes[i].seeds - shapes[i].diverging, shapes[i].diverging};
    const size_t analyzed_seeds =
        form.every_seed ? setting.converged : std::min<size_t>(setting.converged, 1);
    for (uint32_t seed = 42; seed < 42 + analyzed_seeds; ++seed) {
      setting.seeds.push_back(MakeAnalyzedSeed(form, seed, i));
    }
    analyzed.settings.push_back(std::move(setting));
  }
  return analyzed;
}

// Returns an input over a comparison, which must outlive it, with curves, a family of metrics, or
// the first form of an analysis, for each of the shapes.
inline Input MakeInput(const Kind& kind, const report::ComparisonInput& grid,
                       const report::Comparison& comparison, const std::vector<CurveShape>& shapes,
                       double width) {
  Input input;
  input.comparison = &comparison;
  input.axes = grid.axes;
  input.title = "norm placement";
  input.key = kind.key.empty() ? comparison.key : std::string(kind.key);
  input.width = width;
  // Shapes are in the order of the comparison's rows.
  const std::vector<size_t> indices = StyleIndices(comparison);
  const auto style = [&indices](size_t i) { return i < indices.size() ? indices[i] : i; };
  if (kind.reads == Reads::kAnalysis) input.analyzed = MakeAnalyzed(kind.forms[0], shapes);
  for (size_t i = 0; i < input.analyzed.settings.size(); ++i) {
    input.analyzed.settings[i].style = style(i);
  }
  for (size_t i = 0; kind.reads == Reads::kBlocks && i < shapes.size(); ++i) {
    const uint32_t converged = shapes[i].seeds - shapes[i].diverging;
    input.family.push_back(MakeDepth({shapes[i].label, 20, converged, shapes[i].diverging}, i));
    input.family.back().style = style(i);
  }
  for (size_t i = 0; kind.reads == Reads::kLevels && i < shapes.size(); ++i) {
    input.family.push_back(MakeLevels(shapes[i], style(i)));
  }
  if (kind.reduce == nullptr) return input;
  const bool paired = kind.reads == Reads::kPairs;
  for (size_t i = paired ? 1 : 0; i < shapes.size(); ++i) {
    SettingCurves curves = MakeCurves(shapes[i], i);
    curves.style = style(i);
    input.settings.push_back(ReduceSetting(
        kind, paired ? PairedCurves(comparison.scale, curves, MakeCurves(shapes[0], 0)) : curves,
        input.curves));
  }
  return input;
}

inline std::vector<CurveShape> NormsShapes() {
  return {{"pre", 3.4, 2.4}, {"post", 3.45, 2.75}, {"none", 4.6, 2.36}};
}

// Returns the drawing of an input. Throws the status, which fails a test, if there is none.
inline Drawing DrawingOf(const Kind& kind, const Input& input) { return Draw(kind, input).value(); }

// Returns the drawing of a kind over a grid. Throws as above.
inline Drawing DrawingOf(absl::string_view kind, const report::ComparisonInput& grid, double width,
                         const std::vector<CurveShape>& shapes = {}) {
  const auto comparison = report::Compare(grid);
  const Kind& found = *FindKind(kind);
  return DrawingOf(found, MakeInput(found, grid, *comparison, shapes, width));
}

// Returns the layers of one type, in the panel's order, last setting first.
template <typename L>
std::vector<L> LayersOf(const Panel& panel) {
  std::vector<L> found;
  for (const Layer& layer : panel.layers) {
    if (const auto* one = std::get_if<L>(&layer)) found.push_back(*one);
  }
  return found;
}

// Returns the texts of a figure, one per line.
inline std::string TextsIn(const Figure& figure) {
  std::string texts;
  for (const Text& text : figure.texts) texts += text.text + "\n";
  return texts;
}

}  // namespace ablate::figure

#endif  // ABLATE_TESTS_REPORT_FIGURE_EXAMPLE_CURVES_H_
