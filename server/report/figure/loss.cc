// The kind `loss`: mean, band and thin seeds over all steps.
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/draw.h"

namespace ablate::figure {

std::vector<Track> ReduceLoss(const SettingCurves& curves, const CurveOptions& options) {
  return {SmoothedTrack(curves.seeds, options.smooth, 0, UINT32_MAX, true)};
}

absl::StatusOr<Drawing> DrawLoss(const Input& input) {
  return DrawCurves(input, "loss", {CurvePanel{}});
}

}  // namespace ablate::figure
