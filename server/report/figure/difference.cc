// Paired differences to the baseline over training.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/report/compare/decision.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analyzed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {
namespace {

using report::Better;
using report::Comparison;
using report::ComparisonRow;

constexpr double kYTitle = 1.7;  // inches

std::vector<ReducedCurve> ReduceDifference(const SettingCurves& curves,
                                           const CurveOptions& options) {
  return {ReduceSmoothed(curves.seeds, options.smooth, 0, UINT32_MAX, true)};
}

// Returns the baseline's name if all rows have the same one; otherwise "".
std::string OneBaseline(const Comparison& comparison) {
  const auto shared = report::SharedBaseline(comparison);
  return shared.has_value() ? comparison.rows[*shared].label : "";
}

CurvePanel PanelOf(const Comparison& comparison) {
  CurvePanel panel;
  panel.scale =
      comparison.scale == report::Scale::kRatio ? ValueScale::kRatios : ValueScale::kLinear;
  panel.zero = true;
  if (comparison.better == Better::kNeither) return panel;
  const std::string name = OneBaseline(comparison);
  const std::string than = ElideMiddle(name.empty() ? "its baseline" : name, 1, kSmallSize);
  const bool lower = comparison.better == Better::kLower;
  panel.sides = absl::StrCat(lower ? "better" : "worse", " ↓ · ", lower ? "worse" : "better",
                             " than ", than, " ↑");
  return panel;
}

// Returns true if some row and its baseline are trained for different numbers of steps.
bool DifferInLength(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const ComparisonRow& row) {
    const auto& changed = row.changed;
    return row.compared() &&
           std::find(changed.begin(), changed.end(), "training.steps") != changed.end();
  });
}

// Returns true if the lines are averages over steps, unlike the compared values.
bool IsSmoothed(const Input& input) {
  return std::any_of(input.settings.begin(), input.settings.end(),
                     [](const ReducedSetting& setting) { return setting.panels[0].smoothed > 1; });
}

// Returns the runs of settings and baselines that are in no line: those that diverged, and settings
// without a pair.
std::vector<LeftOutRuns> LeftOut(const Input& input) {
  std::vector<LeftOutRuns> runs;
  for (const ComparisonRow& row : input.comparison->rows) {
    const auto drawn =
        std::find_if(input.settings.begin(), input.settings.end(),
                     [&row](const ReducedSetting& setting) { return setting.label == row.label; });
    const bool without = drawn != input.settings.end() && !HasRuns(*drawn);
    runs.push_back(
        {row.label, without && row.diverged < row.n, row.n - row.diverged, row.diverged});
  }
  return runs;
}

// Adds the compared value and its interval beside a line that is an average.
void AddCompared(const Comparison& comparison, const ReducedSetting& setting, Panel* panel) {
  const ReducedCurve& curve = setting.panels[0];
  for (const ComparisonRow& row : comparison.rows) {
    const report::PairedStatistics& difference = row.difference;
    if (row.label != setting.label || !difference.mean.defined() || curve.x.empty()) continue;
    const double x = comparison.at.has_value() ? *comparison.at : curve.x.back();
    const Color color = StyleOf(setting.style).line;
    if (difference.interval.defined()) {
      const double low = difference.interval.low;
      panel->layers.push_back(
          Strokes{{x}, {low}, {0}, {difference.interval.high - low}, color, 1.2});
    }
    panel->layers.push_back(
        Points{{x}, {difference.mean.value}, color, Marker::kCircle, true, 1.8});
  }
}

// Adds a rule at the compared step to every panel.
void AddStepRule(uint32_t step, Figure* figure) {
  for (Panel& panel : figure->panels) {
    const double x = XInches(panel, step);
    if (x < panel.left || x > panel.right) continue;
    panel.rules.push_back({x, panel.bottom, x, panel.top, kSecondary, 0.6, {1.5, 1.5}});
  }
}

std::string DifferenceCaption(const Input& input) {
  const bool by_sequence = input.comparison->unit != report::Unit::kSeed;
  return absl::StrCat(
      DifferenceName(input.comparison->scale, input.Metric()), " to the baseline over training, ",
      by_sequence
          ? "of one run per setting. The interval over sequences is in the figure forest."
          : absl::StrCat("paired by seed. Line: ", report::MeanName(input.comparison->scale),
                         " over the seeds on which both converged. Band: its pointwise 95 % t "
                         "interval. Thin lines: single seeds."),
      " The first steps may lie outside the panel.", ChosenText(*input.comparison));
}

// Returns the last finite index of a mean.
std::optional<size_t> LastOf(const ReducedCurve& curve) {
  for (size_t i = curve.mean.size(); i-- > 0;) {
    if (std::isfinite(curve.mean[i])) return i;
  }
  return std::nullopt;
}

std::string AtText(report::Scale scale, const ReducedCurve& curve, size_t place) {
  const bool interval = std::isfinite(curve.low[place]) && curve.low[place] < curve.high[place];
  const auto ends = interval ? report::DefinedInterval(curve.low[place], curve.high[place])
                             : report::NoInterval(report::Undefined::kTooFewPairs);
  return report::ShownDifference(scale, report::Defined(curve.mean[place]), ends).text();
}

// The index from which the difference has its final sign, and the index nearest to the middle of
// training at which it has the other.
struct Reversal {
  size_t from = 0, before = 0;
};

std::optional<Reversal> ReversalOf(const ReducedCurve& curve) {
  const std::optional<size_t> last = LastOf(curve);
  if (!last.has_value() || curve.mean[*last] == 0) return std::nullopt;
  const double first_step = curve.x.front(), steps = curve.x[*last] - first_step;
  const auto other = [&](size_t i) {
    return curve.x[i] > first_step + steps / 10 && curve.mean[i] * curve.mean[*last] < 0;
  };
  std::optional<Reversal> reversal;
  const double middle = first_step + steps / 2;
  for (size_t i = 0; i < *last; ++i) {
    if (!other(i)) continue;
    if (!reversal.has_value()) reversal = Reversal{i + 1, i};
    reversal->from = i + 1;
    if (std::abs(curve.x[i] - middle) < std::abs(curve.x[reversal->before] - middle)) {
      reversal->before = i;
    }
  }
  return reversal;
}

// Returns "leads", "falls behind"; "is higher" if neither direction is better.
absl::string_view StandsText(int toward, Better better) {
  if (better == Better::kNeither) return toward > 0 ? "is higher" : "is lower";
  return toward > 0 ? "leads" : "falls behind";
}

// Returns "step 700".
std::string StepText(double step) { return absl::StrCat("step ", std::llround(step)); }

std::string DifferenceDescription(const Input& input) {
  const auto end = [&](const ReducedCurve& curve) {
    const std::optional<size_t> last = LastOf(curve);
    return last.has_value() ? AtText(input.comparison->scale, curve, *last) : "";
  };
  const bool ratio = input.comparison->scale == report::Scale::kRatio;
  std::string text =
      absl::StrCat(ratio ? "Ratios of " : "Differences in ", input.Metric().text, " over steps",
                   IsSmoothed(input) ? absl::StrCat(", ", SmoothingText(input, 0)) : "",
                   ". They end: ", EachCurve(input.settings, kMostNamed, end), ".");
  for (const std::string& reversal : ReversalTexts(input))
    absl::StrAppend(&text, " ", reversal, ".");
  return text;
}

absl::StatusOr<Drawing> DrawDifference(const Input& input) {
  const Comparison& comparison = *input.comparison;
  const bool many = InSmallMultiples(input);
  const report::MetricName name = input.Metric();
  const std::string baseline = OneBaseline(comparison);
  const bool ratio = comparison.scale == report::Scale::kRatio;
  const bool by_sequence = comparison.unit != report::Unit::kSeed;
  std::vector<std::string> parts = {by_sequence ? "one run per setting" : SeedsText(input)};
  if (const std::string average = SmoothingText(input, 0); !average.empty()) {
    parts.push_back(average);
  }
  if (AnyInterval(input)) {
    parts.push_back(
        absl::StrCat("band: 95 % t interval of the ", report::MeanName(comparison.scale)));
  }
  if (DifferInLength(comparison)) parts.emplace_back("only steps that both have");
  const bool marked = !many && IsSmoothed(input);
  if (marked) parts.emplace_back("○ compared value, of one step, with interval");
  if (comparison.at.has_value()) {
    parts.push_back(absl::StrCat("dotted: step ", *comparison.at, ", the compared one"));
  }
  std::vector<std::string> statements;
  if (std::string named = BaselineNote(comparison.scale, name, baseline, kYTitle); !named.empty()) {
    statements.push_back(std::move(named));
  }
  statements.push_back(
      absl::StrCat(by_sequence ? "" : "paired by seed: ", absl::StrJoin(parts, ", ")));
  if (by_sequence) statements.emplace_back("the interval over sequences is in forest");
  if (many) statements.emplace_back("orange: the panel's own setting, grey: the others");
  const std::string footnote = FootnoteOf(std::move(statements), LeftOut(input), "drawn");
  const std::vector<CurvePanel> panels = {PanelOf(comparison)};
  ASSIGN_OR_RETURN(
      auto figure,
      DrawPanels(input, panels,
                 {"Step", DifferenceTitle(comparison.scale, name, baseline, kYTitle), footnote}));
  Drawing drawing;
  drawing.figure = std::move(figure);
  for (const ReducedSetting& setting : input.settings) {
    if (marked) AddCompared(comparison, setting, &drawing.figure.panels[0]);
  }
  if (comparison.at.has_value()) AddStepRule(*comparison.at, &drawing.figure);
  drawing.figure.title = absl::StrCat(
      input.title, ": ", ratio ? "ratio of " : "difference in ", name.text,
      baseline.empty() ? "" : absl::StrCat(ratio ? " to " : " vs ", baseline), " over steps");
  drawing.figure.description = DifferenceDescription(input);
  drawing.csv = CurveCsv(input, panels);
  return drawing;
}

}  // namespace

std::vector<std::string> ReversalTexts(const Input& input) {
  const Comparison& comparison = *input.comparison;
  std::vector<std::string> texts;
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.compared()) continue;
    const report::Decision decision = report::Decide(comparison, row);
    if (!report::SaysWhichWay(decision.grade) || row.by_wins || decision.toward == 0) continue;
    for (const ReducedSetting& setting : input.settings) {
      if (setting.label != row.label) continue;
      const ReducedCurve& curve = setting.panels[0];
      const std::optional<Reversal> reversal = ReversalOf(curve);
      // A mean that ends elsewhere than the verdict is of other runs, or smoothed.
      const std::optional<size_t> last = LastOf(curve);
      if (!reversal.has_value() || curve.mean[*last] * row.difference.mean.value <= 0) continue;
      texts.push_back(absl::StrCat(
          report::Quoted(row.label), " ", StandsText(decision.toward, comparison.better),
          " on average only from ", StepText(curve.x[reversal->from]), " on: at ",
          StepText(curve.x[reversal->before]), " the ",
          comparison.scale == report::Scale::kRatio ? "ratio" : "difference", " is ",
          AtText(comparison.scale, curve, reversal->before)));
    }
  }
  return texts;
}

// The paired difference over training, one line per setting.
constexpr Kind kDifference = {
    .name = "difference",
    .title = "Differences over training",
    .key = "",
    .wide = false,
    .folded = false,
    .reads = Reads::kPairs,
    .forms = {},
    .wanted = [](const Comparison& comparison) { return comparison.family > 0; },
    .reduce = ReduceDifference,
    .draw = DrawDifference,
    .caption = DifferenceCaption,
};

}  // namespace ablate::figure
