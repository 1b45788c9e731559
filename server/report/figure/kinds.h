// The kinds of figures: their inputs and outputs, and the table of all kinds. Pure functions, safe
// from any thread.
#ifndef ABLATE_SERVER_REPORT_FIGURE_KINDS_H_
#define ABLATE_SERVER_REPORT_FIGURE_KINDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/windows.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analyzed.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/family.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// Options for reducing curves, in steps.
struct CurveOptions {
  uint32_t smooth = 20;                          // of the trailing mean
  uint32_t first_steps = 100, last_steps = 200;  // for the kind `windows`
  bool log = false;  // geometric means and intervals of logarithms, for norms
};

struct Input {
  const report::Comparison* comparison = nullptr;  // never null
  // Axes of the grid, read by `sensitivity`.
  std::vector<report::Axis> axes;
  // Key of the curves, family of metrics, or the analysis's label.
  std::string key;
  CurveOptions curves;
  std::vector<ReducedSetting> settings;  // for kinds that draw curves: reduced by the kind
  // For the kind `summary`; null or without windows: the comparison's metric.
  const report::RowWindows* windows = nullptr;
  std::vector<FamilySetting> family;  // for kinds that read a family of metrics
  Analyzed analyzed;                  // for kinds that read an analysis
  double width = 3.25;                // inches
  std::string title;                  // the experiment's, for alternative text

  // Returns the name of `key` as a metric.
  report::MetricName Metric() const { return report::NameOfMetric(key, comparison->source); }
};

struct Drawing {
  Figure figure;
  std::string csv;  // the drawn numbers
};

// Source of a kind's data, besides the comparison.
enum class Reads {
  kComparison,  // nothing more
  kWindows,     // Input::windows
  kCurves,      // Input::settings, by `reduce`
  kPairs,       // the same for differences to the baseline (PairedCurves), of rows that have one
  kBlocks,      // Input::family by block: in a report only if runs have such metrics
  kLevels,      // Input::family by level, likewise
  kAnalysis,    // Input::analyzed: in a report one figure for each label of such an analysis
};

// The complete definition of a kind. No member has a default, so that the compiler reports a
// missing one.
struct Kind {
  absl::string_view name;
  absl::string_view title;  // in a report
  absl::string_view key;    // default of Input::key; empty: shows the compared metric
  bool wide;                // two columns wide in a report, after all others
  bool folded;              // folded in a report, because it repeats others
  Reads reads;
  absl::Span<const ArrayForm> forms;  // for kinds that read analyses: the arrays that they draw
  // Returns true if a report shows it, because the comparison has data for it.
  bool (*wanted)(const report::Comparison& comparison);
  // Reduces one setting's curves for `draw`, so that only one setting's curves are in memory at a
  // time. Null if it draws no curves.
  std::vector<ReducedCurve> (*reduce)(const SettingCurves& curves, const CurveOptions& options);
  // Called by Draw, which sets the figure's name.
  absl::StatusOr<Drawing> (*draw)(const Input& input);
  // Returns sentences for a report: what is drawn and how. For analyses, call it only after the
  // data were read.
  std::string (*caption)(const Input& input);
};

// To add a kind, define a constant like these in a file of its own and add it to the table of
// kinds.cc.
extern const Kind kLoss, kWindows, kCurves, kForest, kDifference, kAxis, kSensitivity, kSummary,
    kDepth, kLevels, kLandscape, kEigenvalues, kReliability, kMatrix, kTrajectory;

// Returns all kinds; none is null.
absl::Span<const Kind* const> Kinds();

// Returns the kinds that a report on the comparison shows, in its order: comparisons first, wide
// ones last.
std::vector<const Kind*> KindsInReport(const report::Comparison& comparison);

// Returns the kind of that name; null if there is none.
const Kind* FindKind(absl::string_view name);

// Returns what the keys of the kind's family differ in; nothing if it reads no family.
std::optional<Along> AlongOf(const Kind& kind);

// Returns "loss, windows, …".
std::string KindNames();

inline constexpr double kMinWidth = 2, kMaxWidth = 12;  // inches

// Reduces the curves and sets the setting's label and colour.
ReducedSetting ReduceSetting(const Kind& kind, const SettingCurves& curves,
                             const CurveOptions& options);

// Draws a figure. `input.width` is from kMinWidth to kMaxWidth. INVALID_ARGUMENT if there is more
// than fits on a page, FAILED_PRECONDITION if this kind has nothing to show.
absl::StatusOr<Drawing> Draw(const Kind& kind, const Input& input);

// A figure of one label of an analysis.
struct LabelledDrawing {
  std::string label;
  Drawing drawing;
};

inline constexpr size_t kMaxStacked = 6;

// Places the drawings, 1 to kMaxStacked of one width, one below another, each with its label as a
// heading; a single one stays as it is. Joins their CSV below one head. FAILED_PRECONDITION, naming
// the field `key`, if their heads differ.
absl::StatusOr<Drawing> Stack(std::vector<LabelledDrawing> drawings);

// Returns sentences about settings whose difference at the end has grade leans or better and had
// the opposite sign after the first tenth of training: "“none” leads on average only from step 700
// on: at step 500 the difference is +0.016 [−0.009, +0.041]". `input` is one of kDifference.
std::vector<std::string> ReversalTexts(const Input& input);

// Shared by kinds.

// Returns the labels of settings of any kind.
template <class Setting>
std::vector<std::string> LabelsOf(const std::vector<Setting>& settings) {
  std::vector<std::string> labels;
  for (const Setting& setting : settings) labels.push_back(setting.label);
  return labels;
}

// Returns the same for a list.
template <class Setting>
std::vector<std::string> NamesOf(const std::vector<Setting>& settings) {
  std::vector<std::string> names = LabelsOf(settings);
  for (std::string& name : names) name = report::Listed(name);
  return names;
}

// Returns the names of those that have seeds to draw, for a list.
template <class Setting>
std::vector<std::string> NamesOfDrawn(const std::vector<Setting>& settings) {
  std::vector<std::string> labels;
  for (const Setting& setting : settings) {
    if (!setting.seeds.empty()) labels.push_back(report::Listed(setting.label));
  }
  return labels;
}

inline constexpr size_t kMostNamed = 12;  // settings in a title or description

// Returns the title of a figure of an analysis: "names-norm: loss landscape (LABEL) of pre and
// post".
std::string AnalyzedTitle(const Input& input, absl::string_view what);

// Returns " Settings are combinations of placement and residual."; "" for one axis.
std::string SettingsText(const report::Comparison& comparison);

// The same, and " Each setting is shown at its selected lr." if that is tuned.
std::string ChosenText(const report::Comparison& comparison);

// Returns a CSV field, quoted if necessary and cleaned like all output.
std::string CsvText(absl::string_view text);

// Returns the shortest decimal that reads back as the same number; empty if it isn't finite.
std::string CsvNumber(double value);

// Appends a line of fields: texts, whole numbers, and other numbers by CsvNumber.
template <class... Fields>
void AddCsvRow(std::string* csv, const Fields&... fields) {
  const auto text = [](const auto& field) -> std::string {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_floating_point_v<Field>) return CsvNumber(field);
    if constexpr (std::is_integral_v<Field>) return absl::StrCat(field);
    if constexpr (!std::is_arithmetic_v<Field>) return CsvText(field);
  };
  absl::StrAppend(csv, absl::StrJoin({text(fields)...}, ","), "\n");
}

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_KINDS_H_
