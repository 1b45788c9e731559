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

struct CurvePanel {
  std::string title;   // may be empty if it is the only panel
  std::string remark;  // behind the title, in grey
  // Shows the last so many steps of what the settings have together; 0: all that their curves have.
  uint32_t last_steps = 0;
};

// "20-step average"; empty where nothing was averaged.
std::string SmoothingText(const Input& input, size_t panel);

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
