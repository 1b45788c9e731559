// Loss on planes in parameter space as maps on one colour scale, for the figures of landscapes and
// of trajectories. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_LOSS_PLANES_H_
#define ABLATE_SERVER_REPORT_FIGURE_LOSS_PLANES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/figure/analyzed.h"
#include "server/report/figure/map_panels.h"

namespace ablate::figure {

// A plane from one run's analysis. What it points to must outlive it.
struct LossPlane {
  const AnalyzedSetting* setting = nullptr;
  const AnalyzedSeed* seed = nullptr;
  const std::vector<double>* x = nullptr;  // coordinates along the first axis, which is drawn as x
  const std::vector<double>* y = nullptr;  // and along the second

  // Returns the loss at coordinate a of the first axis and b of the second.
  double At(size_t a, size_t b) const { return seed->values[a * y->size() + b]; }
};

// Returns the scale of the losses of all planes, logarithmic if they differ by much.
ColorScale LossScale(const std::vector<LossPlane>& planes);

// Draws a plane's cells with contour lines, the same losses in every panel, and a × at each
// non-finite point; adds the number of those to `holes`.
MapPanel PanelOf(const LossPlane& plane, const ColorScale& scale, size_t* holes);

// Returns "lines of equal loss divide the scale into 10 equal parts" and, if there are holes, the
// meaning of ×.
std::vector<std::string> PlaneSentences(size_t holes);

// Returns "pre from 2.1 to 3.4, post without a finite loss".
std::string RangesText(const std::vector<LossPlane>& planes);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_LOSS_PLANES_H_
