// The kinds of figures: what they are drawn from, what they give, and the table of all there are.
// Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_FIGURE_KINDS_H_
#define ABLATE_SERVER_REPORT_FIGURE_KINDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/windows.h"
#include "server/report/figure/analysed.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/depth.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// How curves are reduced, in steps.
struct CurveOptions {
  uint32_t smooth = 20;                          // of the trailing mean
  uint32_t first_steps = 100, last_steps = 200;  // of the kind `windows`
};

struct Input {
  const report::Comparison* comparison = nullptr;  // never null
  // Axes of the grid that it compares; read by `sensitivity`.
  std::vector<report::Axis> axes;
  // Of the curves; the family of metrics by block; or the analysis's label.
  std::string key;
  CurveOptions curves;
  std::vector<ReducedSetting> settings;  // of kinds that draw curves: reduced by the kind
  // Of the kind `summary`; null or without windows: the comparison's metric.
  const report::RowWindows* windows = nullptr;
  std::vector<DepthSetting> depth;  // of kinds that read metrics by block
  Analysed analysed;                // of kinds that read an analysis
  double width = 3.25;              // inches
  std::string title;                // of the experiment, for those who can't see the figure
};

struct Drawing {
  Figure figure;
  std::string csv;  // the numbers that are drawn
};

// Where what a kind shows comes from, beside the comparison.
enum class Reads {
  kComparison,  // nothing more
  kWindows,     // Input::windows
  kCurves,      // Input::settings, by `reduce`
  kPairs,       // the same of differences to the baseline (PairedCurves), of rows that have one
  kBlocks,      // Input::depth: in a report only if runs have such metrics
  kAnalysis,    // Input::analysed: in a report one figure for each label of such an analysis
};

// All that there is to say about a kind. No member has a default, so that one that is forgotten is
// an error of the compiler.
struct Kind {
  absl::string_view name;
  absl::string_view title;  // in a report
  absl::string_view help;   // what it shows, in a line: the row of docs/reference/figures.md
  absl::string_view key;    // the default of Input::key; empty: shows the compared metric
  bool wide;                // takes the width of two columns in a report, behind all that do not
  bool folded;              // in a report stands behind a fold: says again what others say
  Reads reads;
  absl::Span<const ArrayForm> forms;  // of kinds that read analyses: what they draw of them
  // Whether a report shows it: whether the comparison has anything for it.
  bool (*wanted)(const report::Comparison& comparison);
  // Reduces one setting's curves to what `draw` needs of it, so that only one setting's are in
  // memory at a time. Null if it draws no curves.
  std::vector<ReducedCurve> (*reduce)(const SettingCurves& curves, const CurveOptions& options);
  // Called by Draw, which names and describes the figure.
  absl::StatusOr<Drawing> (*draw)(const Input& input);
  // Sentences for a report: what is drawn and how; and what can be seen, for those who can't. Of an
  // analysis only once it was read.
  std::string (*caption)(const Input& input);
  std::string (*description)(const Input& input);
};

// To add a kind: a constant like these in a file of its own, and its place in the table of
// kinds.cc.
extern const Kind kLoss, kWindows, kCurves, kForest, kDifference, kAxis, kSensitivity, kSummary,
    kDepth, kLandscape, kEigenvalues, kMatrix, kTrajectory;

// All kinds; none is null.
absl::Span<const Kind* const> Kinds();

// Those that a report on the comparison shows, in its order: first what compares, wide ones last.
std::vector<const Kind*> KindsInReport(const report::Comparison& comparison);

// Null if there is none of that name.
const Kind* FindKind(absl::string_view name);

// "loss, windows, …".
std::string KindNames();

inline constexpr double kMinWidth = 2, kMaxWidth = 12;  // inches

// Reduces with the setting's label and colour.
ReducedSetting ReduceSetting(const Kind& kind, const SettingCurves& curves,
                             const CurveOptions& options);

// `input.width` is from kMinWidth to kMaxWidth. INVALID_ARGUMENT if there is more than fits on a
// page, FAILED_PRECONDITION if there is nothing to show in this kind.
absl::StatusOr<Drawing> Draw(const Kind& kind, const Input& input);

// What kinds share.

// Returns the labels of settings of any kind.
template <class Setting>
std::vector<std::string> LabelsOf(const std::vector<Setting>& settings) {
  std::vector<std::string> labels;
  for (const Setting& setting : settings) labels.push_back(setting.label);
  return labels;
}

inline constexpr size_t kMostNamed = 12;  // settings in a title or description

// "names-norm: loss landscape (LABEL) of pre and post": the title of a figure of an analysis.
std::string AnalysedTitle(const Input& input, absl::string_view what);

// " Settings are placement/residual."; "" of one axis.
std::string SettingsText(const report::Comparison& comparison);

// The same, and " Each setting is shown at its selected lr." where that is tuned.
std::string ChosenText(const report::Comparison& comparison);

// Quoted where it must be, cleaned as everything that leaves.
std::string CsvText(const std::string& text);

// The shortest decimal that reads back as the same number; empty for what is not finite.
std::string CsvNumber(double value);

// Appends a line of fields, which are CSV already.
void AddCsvRow(const std::vector<std::string>& fields, std::string* csv);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_KINDS_H_
