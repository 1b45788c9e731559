// The kind `curves`: cumulative mean and trailing mean.
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/curve_text.h"
#include "server/report/figure/draw.h"

namespace ablate::figure {

std::vector<Track> ReduceCumulative(const SettingCurves& curves, const CurveOptions& options) {
  std::vector<SeedCurve> accumulated;
  for (const SeedCurve& curve : curves.seeds) accumulated.push_back(Accumulated(curve));
  return {MakeTrack(accumulated, false),
          SmoothedTrack(curves.seeds, options.smooth, 0, UINT32_MAX, false)};
}

absl::StatusOr<Drawing> DrawCumulative(const Input& input) {
  return DrawCurves(input, "curves",
                    {{"Cumulative mean", "", 0}, {"Trailing mean", SmoothingText(input, 1), 0}});
}

}  // namespace ablate::figure
