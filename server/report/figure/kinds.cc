// The kinds of figures there are.
#include "server/report/figure/kinds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/clean_text.h"
#include "server/report/figure/draw.h"

namespace ablate::figure {
namespace {

constexpr double kNarrowest = 2, kWidest = 12;  // inches

constexpr absl::string_view kTrain = "train/loss";

constexpr Kind kKinds[] = {
    {"loss", "mean, band and seeds over all steps", kTrain, false, ReduceLoss, DrawLoss},
    {"windows", "the first and the last steps", kTrain, false, ReduceWindows, DrawWindows},
    {"curves", "cumulative and trailing mean", kTrain, false, ReduceCumulative, DrawCumulative},
    {"forest", "paired differences to the baseline", "", false, nullptr, DrawForest},
    {"sensitivity", "the metric over a tuned axis", "", false, nullptr, DrawSensitivity},
    {"summary", "each setting's value with its interval", "", true, nullptr, DrawSummary},
};

}  // namespace

absl::Span<const Kind> Kinds() { return kKinds; }

absl::StatusOr<const Kind*> FindKind(absl::string_view name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  const auto append = [](std::string* out, const Kind& kind) { absl::StrAppend(out, kind.name); };
  return absl::InvalidArgumentError(
      absl::StrCat("kind: \"", report::CleanText(name.substr(0, 100)),
                   "\" is none; allowed: ", absl::StrJoin(kKinds, ", ", append)));
}

SettingTracks ReduceSetting(const Kind& kind, const SettingCurves& curves,
                            const CurveOptions& options) {
  return {curves.label, curves.style, kind.reduce(curves, options)};
}

absl::StatusOr<Drawing> Draw(const Kind& kind, const Input& input) {
  if (!(input.width >= kNarrowest && input.width <= kWidest)) {
    return absl::InvalidArgumentError(
        absl::StrCat("width: ", input.width, " inches; allowed: ", kNarrowest, " to ", kWidest));
  }
  const bool points =
      std::any_of(input.settings.begin(), input.settings.end(), [](const SettingTracks& setting) {
        return std::any_of(setting.tracks.begin(), setting.tracks.end(),
                           [](const Track& track) { return track.converged + track.diverged > 0; });
      });
  if (kind.reduce != nullptr && !points) {
    return absl::FailedPreconditionError(
        absl::StrCat("key: no run has points of ", report::CleanText(input.key), " yet"));
  }
  return kind.draw(input);
}

}  // namespace ablate::figure
