#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/kinds.h"

namespace ablate::figure {
namespace {

constexpr absl::string_view kTrainLoss = "train/loss";

// In the first window at most this many steps are averaged: the curve falls within a few there, and
// a longer average would hide it.
constexpr uint32_t kFirstSmooth = 5;

bool Always(const report::Comparison&) { return true; }

std::string SmoothText(const Input& input) {
  return input.curves.smooth > 1 ? absl::StrCat("trailing means over ", input.curves.smooth,
                                                " steps (at most a fifth of the curve)")
                                 : std::string("unsmoothed values");
}

std::vector<ReducedCurve> ReduceLoss(const SettingCurves& curves, const CurveOptions& options) {
  return {ReduceSmoothed(curves.seeds, options.smooth, 0, UINT32_MAX, true, options.log)};
}

absl::StatusOr<Drawing> DrawLoss(const Input& input) { return DrawCurves(input, {CurvePanel{}}); }

std::string LossCaption(const Input& input) {
  return CurvesCaption(input, absl::StrCat(SmoothText(input), "."));
}

std::vector<ReducedCurve> ReduceWindows(const SettingCurves& curves, const CurveOptions& options) {
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
      ReduceSmoothed(curves.seeds, std::min(options.smooth, kFirstSmooth), first, end, true,
                     options.log),
      ReduceSmoothed(curves.seeds, options.smooth, start, UINT32_MAX, true, options.log),
  };
}

// Returns the total range of steps of the settings' curves.
uint64_t StepsOf(const Input& input) {
  uint32_t first = UINT32_MAX, last = 0;
  for (const ReducedSetting& setting : input.settings) {
    for (const ReducedCurve& curve : setting.panels) {
      if (curve.converged + curve.diverged == 0) continue;
      first = std::min(first, curve.first_step);
      last = std::max(last, curve.last_step);
    }
  }
  return first > last ? 0 : uint64_t{last} - first + 1;
}

// Returns one panel if the first window has all steps, which the last would repeat. The second's
// `last_steps` is 0 if it has all.
std::vector<CurvePanel> WindowPanels(const Input& input) {
  const std::string all = "All steps";
  const uint64_t steps = StepsOf(input);
  const uint32_t first = input.curves.first_steps, last = input.curves.last_steps;
  if (steps <= first) return {{all, SmoothingText(input, 0)}};
  const CurvePanel left = {absl::StrCat("First ", first, " steps"), SmoothingText(input, 0)};
  if (steps <= last) return {left, {all, SmoothingText(input, 1)}};
  return {left, {absl::StrCat("Last ", last, " steps"), SmoothingText(input, 1), last}};
}

absl::StatusOr<Drawing> DrawWindows(const Input& input) {
  return DrawCurves(input, WindowPanels(input));
}

// Returns the text about smoothing; the first window has its own.
std::string WindowsSmoothText(const Input& input, bool one_panel) {
  if (input.curves.smooth <= kFirstSmooth) return SmoothText(input);
  const std::string second = one_panel ? "" : absl::StrCat(" and over ", input.curves.smooth);
  return absl::StrCat("trailing means over ", kFirstSmooth, second,
                      " steps (at most a fifth of the curve)");
}

std::string WindowsCaption(const Input& input) {
  const std::vector<CurvePanel> panels = WindowPanels(input);
  const bool one_panel = panels.size() == 1;
  std::string shown = "all steps";
  if (!one_panel) {
    const uint32_t last = panels[1].last_steps;
    shown = absl::StrCat("the first ", input.curves.first_steps, " steps on the left and ",
                         last == 0 ? "all" : absl::StrCat("the last ", last), " on the right");
  }
  return CurvesCaption(input, absl::StrCat(shown, "; ", WindowsSmoothText(input, one_panel), "."));
}

std::vector<ReducedCurve> ReduceCumulative(const SettingCurves& curves,
                                           const CurveOptions& options) {
  std::vector<SeedCurve> accumulated;
  for (const SeedCurve& curve : curves.seeds) accumulated.push_back(Accumulated(curve));
  return {ReduceSeeds(accumulated, false, options.log),
          ReduceSmoothed(curves.seeds, options.smooth, 0, UINT32_MAX, false, options.log)};
}

absl::StatusOr<Drawing> DrawCumulative(const Input& input) {
  return DrawCurves(input,
                    {{"Cumulative mean", "", 0}, {"Trailing mean", SmoothingText(input, 1), 0}});
}

std::string CumulativeCaption(const Input& input) {
  return CurvesCaption(input, absl::StrCat("the mean of all steps so far on the left, ",
                                           SmoothText(input), " on the right."));
}

}  // namespace

// Mean, band and thin seeds of a metric over all steps.
constexpr Kind kLoss = {
    .name = "loss",
    .title = "Loss",
    .key = kTrainLoss,
    .wide = false,
    .folded = false,
    .reads = Reads::kCurves,
    .forms = {},
    .wanted = Always,
    .reduce = ReduceLoss,
    .draw = DrawLoss,
    .caption = LossCaption,
};

// The same over the first and over the last steps, each with its own range.
constexpr Kind kWindows = {
    .name = "windows",
    .title = "The first and the last steps",
    .key = kTrainLoss,
    .wide = true,
    .folded = true,
    .reads = Reads::kCurves,
    .forms = {},
    .wanted = Always,
    .reduce = ReduceWindows,
    .draw = DrawWindows,
    .caption = WindowsCaption,
};

constexpr Kind kCurves = {
    .name = "curves",
    .title = "Cumulative and trailing mean",
    .key = kTrainLoss,
    .wide = true,
    .folded = true,
    .reads = Reads::kCurves,
    .forms = {},
    .wanted = Always,
    .reduce = ReduceCumulative,
    .draw = DrawCumulative,
    .caption = CumulativeCaption,
};

}  // namespace ablate::figure
