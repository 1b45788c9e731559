// The loss on planes of parameters as maps on one scale of colours: what the figures of landscapes
// and of trajectories share. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_LOSS_PLANES_H_
#define ABLATE_SERVER_REPORT_FIGURE_LOSS_PLANES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/figure/analysed.h"
#include "server/report/figure/map_panels.h"

namespace ablate::figure {

// A plane that one run's analysis gave. Pointers outlive it.
struct LossPlane {
  const AnalysedSetting* setting = nullptr;
  const AnalysedSeed* seed = nullptr;
  const std::vector<double>* x = nullptr;  // places along the first axis, which is drawn as x
  const std::vector<double>* y = nullptr;  // and along the second

  // At the a-th place along the first axis and the b-th along the second.
  double At(size_t a, size_t b) const { return seed->values[a * y->size() + b]; }
};

// The losses of all planes, logarithmic where they differ by much.
ColorScale LossScale(const std::vector<LossPlane>& planes);

// The cells of a plane with lines of equal loss, the same losses in every panel; a × at each point
// that is not finite, of which `holes` counts more.
MapPanel PanelOf(const LossPlane& plane, const ColorScale& scale, size_t* holes);

// "lines of equal loss divide the scale into 10 equal parts", and where there are holes what × is.
std::vector<std::string> PlaneSentences(size_t holes);

// "pre from 2.1 to 3.4, post without a finite loss".
std::string RangesText(const std::vector<LossPlane>& planes);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_LOSS_PLANES_H_
