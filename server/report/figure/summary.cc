#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/dot_plot.h"
#include "server/report/figure/kinds.h"

namespace ablate::figure {
namespace {

using report::Comparison;
using report::ComparisonRow;

DotRow RowOf(const std::string& label, size_t style, std::vector<DotSeed> values,
             const report::Summary& own, size_t without, report::Unit unit) {
  DotRow row;
  row.label = label;
  row.style = StyleOf(style);
  row.mean = own.mean;
  row.interval = own.interval;
  const size_t all = own.n + without;
  // By sequence the only run, without any sequence, is left out.
  const std::string n = without == 0 || unit != report::Unit::kSeed
                            ? text::Grouped(own.n)
                            : absl::StrCat(own.n, " of ", all);
  row.columns = {n};
  row.short_remark = UnitsText(unit, n);
  row.seeds = std::move(values);
  return row;
}

// The shown texts of one row.
struct RowValues {
  std::vector<DotSeed> seeds;
  report::Summary own;
  size_t left_out = 0;  // converged runs without a value
};

RowValues MetricValues(const ComparisonRow& row, report::Unit unit) {
  RowValues values{{}, row.own};
  for (const report::SeedRun& run : row.runs) {
    const bool shown = !run.diverged && unit == report::Unit::kSeed;
    if (shown) values.seeds.push_back({run.value, run.seed});
  }
  return values;
}

RowValues WindowValues(const report::WindowSummary& summary) {
  RowValues values{{}, summary.over, summary.left_out};
  for (const double value : summary.values) values.seeds.push_back({value, std::nullopt});
  return values;
}

std::string WindowName(const Input& input, size_t window) {
  return report::WindowName(input.windows->windows[window], input.comparison->source);
}

// Returns the rows of a window, or of the compared metric.
DotGroup SummaryGroup(const Input& input, std::optional<size_t> window, std::string* csv) {
  const Comparison& comparison = *input.comparison;
  const bool compared = !window.has_value(), many = HasManySettings(comparison);
  const report::Unit unit = compared ? comparison.unit : report::Unit::kSeed;  // of the mean
  const bool by_sequence = unit != report::Unit::kSeed;
  const std::vector<size_t> styles = StyleIndices(comparison);
  DotGroup group;
  group.title = compared ? "" : WindowName(input, *window);
  group.axis_title = AxisTitle(
      compared ? comparison.Metric()
               : report::NameOfMetric(input.windows->windows[*window].key, comparison.source));
  for (size_t row = 0; row < comparison.rows.size(); ++row) {
    const ComparisonRow& of = comparison.rows[row];
    auto [seeds, own, left_out] =
        compared ? MetricValues(of, unit) : WindowValues(input.windows->rows[row][*window]);
    if (of.diverged > 0 && of.diverged == of.n) {
      own.mean = report::NoNumber(report::Undefined::kAllDiverged);
    }
    AddCsvRow(csv, group.title, of.label, own.mean.value, own.interval.low, own.interval.high,
              by_sequence ? std::min<size_t>(own.n, 1) : own.n, of.diverged,
              by_sequence ? absl::StrCat(own.n) : "");
    group.rows.push_back(RowOf(of.label, many ? kPlainStyle : styles[row], std::move(seeds), own,
                               of.diverged + left_out, unit));
    // Verdicts are about the compared metric only.
    if (many && compared && of.compared()) group.rows.back().mark = MarkOf(comparison, of);
  }
  WriteValues(false, report::Scale::kDifference, &group);
  if (many) SortRows(compared ? comparison.better : report::Better::kLower, &group.rows);
  return group;
}

bool HasWindows(const Input& input) {
  return input.windows != nullptr && !input.windows->windows.empty();
}

// Returns the name of the figure's means: those of norms are geometric.
std::string MeanNameOf(const Input& input) {
  if (!HasWindows(input)) return std::string(report::MeanName(input.comparison->scale));
  const auto is_norm = [&input](const report::MetricWindow& window) {
    return report::ScaleOfMetric(window.key, input.comparison->source) == report::Scale::kRatio;
  };
  const auto& windows = input.windows->windows;
  if (std::all_of(windows.begin(), windows.end(), is_norm)) return "geometric mean";
  return std::any_of(windows.begin(), windows.end(), is_norm) ? "mean (norms: geometric)" : "mean";
}

// Returns true if intervals are over sequences, and no dots are shown.
bool IsBySequence(const Input& input) {
  return !HasWindows(input) && input.comparison->unit != report::Unit::kSeed;
}

std::string SummaryCaption(const Input& input) {
  return absl::StrCat(
      HasWindows(input) ? "Curve summaries" : SentenceName(input.comparison->Metric()),
      " of each setting: ", MeanNameOf(input),
      IsBySequence(input) ? " and 95 % interval over the sequences that its model read."
                          : " and 95 % interval over its own converged runs; dots are single runs.",
      ChosenText(*input.comparison));
}

// Returns "pre 2.40, post 2.43".
std::string MeansText(const std::vector<std::string>& labels,
                      const std::vector<const report::Summary*>& summaries) {
  std::vector<std::string> means;
  for (size_t i = 0; i < labels.size(); ++i) {
    const report::Summary& own = *summaries[i];
    if (!own.mean.defined()) continue;
    means.push_back(absl::StrCat(
        labels[i], " ",
        report::Plain(own.mean.value, report::DecimalsFor(own.mean.value, own.interval))));
  }
  return means.empty() ? "none" : report::Enumerated(means, kMostNamed);
}

std::string SummaryDescription(const Input& input) {
  std::vector<std::string> labels;
  std::vector<const report::Summary*> own;
  for (const ComparisonRow& row : input.comparison->rows) {
    labels.push_back(report::Listed(row.label));
    own.push_back(&row.own);
  }
  if (!HasWindows(input)) {
    return absl::StrCat("Means of ", input.comparison->Metric().text, ": ", MeansText(labels, own),
                        ".");
  }
  std::string text;
  for (size_t window = 0; window < input.windows->windows.size(); ++window) {
    for (size_t row = 0; row < own.size(); ++row) own[row] = &input.windows->rows[row][window].over;
    absl::StrAppend(&text, text.empty() ? "" : " ", "Means of ", WindowName(input, window), ": ",
                    MeansText(labels, own), ".");
  }
  return text;
}

absl::StatusOr<Drawing> DrawSummary(const Input& input) {
  DotPlot dots;
  Drawing drawing;
  drawing.csv = "value,setting,mean,low,high,n,diverged,sequences\n";
  const size_t windows = input.windows == nullptr ? 0 : input.windows->windows.size();
  for (size_t i = 0; i < windows; ++i) dots.groups.push_back(SummaryGroup(input, i, &drawing.csv));
  if (windows == 0) dots.groups.push_back(SummaryGroup(input, std::nullopt, &drawing.csv));
  const bool empty = std::all_of(dots.groups.begin(), dots.groups.end(),
                                 [](const DotGroup& group) { return group.rows.empty(); });
  if (empty)
    return absl::FailedPreconditionError(
        "kind: summary has no run to show yet. Retry when a run has ended");
  const std::string mean = MeanNameOf(input);
  dots.value_title = absl::StrCat(mean, " [95 % interval]");
  dots.column_titles = {
      UnitsTitle(IsBySequence(input) ? report::Unit::kSequence : report::Unit::kSeed)};
  dots.footnote = IsBySequence(input)
                      ? "bar: 95 % t interval of the mean over sequences"
                      : absl::StrCat("small dots: seeds; bar: 95 % t interval of the ", mean,
                                     " over converged seeds");
  if (windows == 0 && HasManySettings(*input.comparison)) {
    absl::StrAppend(&dots.footnote, "; ", kMarkText, ", stroke: baseline");
  }
  ASSIGN_OR_RETURN(drawing.figure, DrawDotPlot(dots, input.width));
  drawing.figure.title = absl::StrCat(input.title, ": ", dots.groups[0].axis_title, " by setting");
  drawing.figure.description = SummaryDescription(input);
  return drawing;
}

}  // namespace

// Each setting's metric as a dot with its interval and seeds, or the spec's summaries.
constexpr Kind kSummary = {
    .name = "summary",
    .title = "Settings",
    .key = "",
    .wide = false,
    .folded = true,
    .reads = Reads::kWindows,
    .forms = {},
    .wanted = [](const Comparison&) { return true; },
    .reduce = nullptr,
    .draw = DrawSummary,
    .caption = SummaryCaption,
};

}  // namespace ablate::figure
