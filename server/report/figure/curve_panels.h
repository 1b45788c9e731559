// Figures of curves over steps: one or two panels side by side, or small multiples for many
// settings; and their texts.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CURVE_PANELS_H_
#define ABLATE_SERVER_REPORT_FIGURE_CURVE_PANELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/report/figure/kinds.h"

namespace ablate::figure {

// The first chooses as ValueAxis does. The last: values are logarithms of ratios, while axis and
// CSV show the ratios.
enum class ValueScale { kByValues, kLinear, kLogarithmic, kRatios };
enum class PlaceScale { kSteps, kLinear, kLogarithmic };  // scale of the x axis

struct CurvePanel {
  std::string title;   // may be empty if it is the only panel
  std::string remark;  // after the title, in grey
  // Shows the last so many steps of all settings' range; 0: all steps.
  uint32_t last_steps = 0;
  ValueScale scale = ValueScale::kByValues;
  PlaceScale places = PlaceScale::kSteps;
  // Draws differences: a line at 0, which is within the range, and labels for its two sides, above
  // an untitled panel. The range ignores the first tenth of the steps, because large differences
  // there would hide the rest.
  bool zero = false;
  std::string sides{};
  // Both axes are from 0 to 1, with a dotted line at which they are equal.
  bool diagonal = false;
};

// Titles of the axes, and the footnote.
struct CurveWords {
  std::string x, y, footnote;
};

// Returns true if the setting has something to draw.
bool HasRuns(const ReducedSetting& setting);

// Returns true if each setting gets a panel of its own: there are more than fit into one, or styles
// don't distinguish them.
bool InSmallMultiples(const Input& input);

// Returns "20-step average"; empty if nothing was averaged.
std::string SmoothingText(const Input& input, size_t panel);

// Returns "mean of 12 seeds", "mean of 10 to 12 seeds", "one seed, no interval", over the settings.
std::string SeedsText(const Input& input);

// Returns true if some setting's mean has an interval.
bool AnyInterval(const Input& input);

// Returns "band", or "bar" if each curve has one point only: the mark of an interval.
std::string IntervalMark(const Input& input);

// Returns "mean of 12 seeds, band: its 95 % interval", or "geometric mean …".
std::string MeanText(const Input& input, bool geometric);

// Returns ". Thin lines: single runs", or "" if the figure draws none.
std::string SeedLinesText(const Input& input);

// Returns the footnote of curves: these statements and the left-out runs, after the meaning of
// colours in small multiples.
std::string CurvesFootnote(const Input& input, std::vector<std::string> statements,
                           const std::vector<LeftOutRuns>& settings);

// Makes one analyzed seed's line; its x are coordinates.
using LineOf = ThinLine (*)(const AnalyzedSeed& seed);

// Reduces the lines of each setting's seeds to a panel of their mean (AddMean) and, unless they are
// too many, the lines.
std::vector<ReducedSetting> ReduceLines(const Analyzed& analyzed, LineOf line_of, bool log);

// Returns "label,setting,step,seed,X,Y,low,high" rows below `head`: the means of `settings`, made
// by ReduceLines, without step and seed, and the seeds' lines without an interval.
std::string LinesCsv(const Input& input, absl::string_view head,
                     const std::vector<ReducedSetting>& settings, LineOf line_of);

// Returns "pre at 2.40 and post without a mean": the settings' names, each followed by the text of
// its last panel's curve, if that isn't empty. At most `most` settings.
std::string EachCurve(const std::vector<ReducedSetting>& settings, size_t most,
                      absl::FunctionRef<std::string(const ReducedCurve&)> text_of);

// Draws the curves of `input.settings`, whatever their x axis, without a title. INVALID_ARGUMENT as
// DrawCurves.
absl::StatusOr<Figure> DrawPanels(const Input& input, const std::vector<CurvePanel>& panels,
                                  const CurveWords& words);

// Returns panel,setting,seed,step,value,low,high: means without a seed, seeds' lines without an
// interval; thinned as drawn.
std::string CurveCsv(const Input& input, const std::vector<CurvePanel>& panels);

// Draws the figure. `panels` are in the order of the settings' own; `input.settings` isn't empty.
// INVALID_ARGUMENT if there are more settings than fit on a page.
absl::StatusOr<Drawing> DrawCurves(const Input& input, const std::vector<CurvePanel>& panels);

// Returns a caption; `what` is a sentence about the curves and their averaging.
std::string CurvesCaption(const Input& input, absl::string_view what);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CURVE_PANELS_H_
