// The kind `windows`: the first and the last steps of the curves, each with a range of its own.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/curve_text.h"
#include "server/report/figure/draw.h"

namespace ablate::figure {
std::vector<Track> ReduceWindows(const SettingCurves& curves, const CurveOptions& options) {
  uint32_t first = UINT32_MAX, last = 0;
  for (const SeedCurve& curve : curves.seeds) {
    if (curve.steps.empty()) continue;
    first = std::min(first, curve.steps.front());
    last = std::max(last, curve.steps.back());
  }
  const uint32_t end =
      first > UINT32_MAX - options.first_steps ? UINT32_MAX : first + options.first_steps - 1;
  const uint32_t start = last >= options.last_steps ? last - options.last_steps + 1 : 0;
  return {
      SmoothedTrack(curves.seeds, std::min(options.smooth, kFirstSmooth), first, end, true),
      SmoothedTrack(curves.seeds, options.smooth, start, UINT32_MAX, true),
  };
}

absl::StatusOr<Drawing> DrawWindows(const Input& input) {
  return DrawCurves(
      input, "windows",
      {{absl::StrCat("First ", input.curves.first_steps, " steps"), SmoothingText(input, 0), 0},
       {absl::StrCat("Last ", input.curves.last_steps, " steps"), SmoothingText(input, 1),
        input.curves.last_steps}});
}

}  // namespace ablate::figure
