// Panels with curves over steps: one or two side by side, or small multiples where there are many
// settings.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CURVE_PANELS_H_
#define ABLATE_SERVER_REPORT_FIGURE_CURVE_PANELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/figure/input.h"

namespace ablate::figure {

struct CurvePanel {
  std::string title;   // may be empty if it is the only panel
  std::string remark;  // behind the title, in grey
  // Shows the last so many steps of what the settings have together; 0: all that their tracks have.
  uint32_t last_steps = 0;
};

// Which runs have a thin line of their own in some panel: not all where it would be a thicket.
struct ShownSeeds {
  bool converged = false, diverged = false;
};
ShownSeeds SeedsShown(const Input& input);

// `panels` are in the order of the settings' tracks; `input.settings` is not empty.
// INVALID_ARGUMENT if there are more settings than fit on a page.
absl::StatusOr<Drawing> DrawCurves(const Input& input, const std::string& name,
                                   const std::vector<CurvePanel>& panels);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CURVE_PANELS_H_
