// Figures of curves over steps: one or two panels side by side, or small multiples where there are
// many settings; and the words about them.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CURVE_PANELS_H_
#define ABLATE_SERVER_REPORT_FIGURE_CURVE_PANELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/report/figure/kinds.h"

namespace ablate::figure {

// The first: as ValueAxis chooses. The last: values are logarithms of ratios, which stand at the
// axis and in the CSV.
enum class ValueScale { kByValues, kLinear, kLogarithmic, kRatios };
enum class PlaceScale { kSteps, kLinear, kLogarithmic };  // of what the curves are over

struct CurvePanel {
  std::string title;   // may be empty if it is the only panel
  std::string remark;  // behind the title, in grey
  // Shows the last so many steps of what the settings have together; 0: all that their curves have.
  uint32_t last_steps = 0;
  ValueScale scale = ValueScale::kByValues;
  PlaceScale places = PlaceScale::kSteps;
  // Draws differences: a line at 0, which is in the range, and what its two sides mean, written
  // above an untitled panel. The range is that of all but the first tenth of the steps, where
  // differences may be so large that nothing would be seen of the rest.
  bool zero = false;
  std::string sides{};
};

// Titles of the axes, and what is said below.
struct CurveWords {
  std::string x, y, footnote;
};

// Whether each of the settings has a panel of its own: where there are more than fit into one, or
// styles do not tell them apart.
bool InSmallMultiples(const Input& input);

// "20-step average"; empty where nothing was averaged.
std::string SmoothingText(const Input& input, size_t panel);

// "mean of 12 seeds", "mean of 10 to 12 seeds", "one seed, no interval", over the settings.
std::string SeedsText(const Input& input);

// Whether some setting's mean has an interval.
bool AnyInterval(const Input& input);

// Returns "mean of 12 seeds, band: its 95 % interval", or "geometric mean …".
std::string MeanText(const Input& input, bool geometric);

// Returns the footnote of curves that are not over steps: these statements and which runs are left
// out, and before them what colours mean in small multiples.
std::string CurvesFootnote(const Input& input, std::vector<std::string> statements,
                           const std::vector<LeftOutRuns>& settings);

// Draws one analysed seed's line: its x are places.
using LineOf = ThinLine (*)(const AnalysedSeed& seed);

// Reduces the lines of each setting's seeds to a panel of their mean (AddMean) and, unless they are
// too many, the lines.
std::vector<ReducedSetting> ReduceLines(const Analysed& analysed, LineOf line_of, bool log);

// Returns "label,setting,step,seed,X,Y,low,high" rows below `head`: the means of `settings`, which
// ReduceLines made, without step and seed, and the seeds' lines without an interval.
std::string LinesCsv(const Input& input, absl::string_view head,
                     const std::vector<ReducedSetting>& settings, LineOf line_of);

// Only the picture, without a title, of whatever the curves of `input.settings` are over.
// INVALID_ARGUMENT as DrawCurves.
absl::StatusOr<Figure> DrawPanels(const Input& input, const std::vector<CurvePanel>& panels,
                                  const CurveWords& words);

// panel,setting,seed,step,value,low,high: means without a seed, seeds' lines without an interval;
// thinned as drawn.
std::string CurveCsv(const Input& input, const std::vector<CurvePanel>& panels);

// `panels` are in the order of the settings' own; `input.settings` is not empty.
// INVALID_ARGUMENT if there are more settings than fit on a page.
absl::StatusOr<Drawing> DrawCurves(const Input& input, const std::vector<CurvePanel>& panels);

// A caption; `what` says in a sentence what is at which place and over how many steps it is
// averaged.
std::string CurvesCaption(const Input& input, absl::string_view what);

// Where each setting's mean ends.
std::string CurvesDescription(const Input& input);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CURVE_PANELS_H_
