// The kinds of figures there are.
#include "server/report/figure/kinds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/clean_text.h"
#include "server/report/figure/draw.h"

namespace ablate::figure {
namespace {

constexpr absl::string_view kTrain = "train/loss";

constexpr Kind kKinds[] = {
    {"loss", kTrain, ReduceLoss, DrawLoss},
    {"windows", kTrain, ReduceWindows, DrawWindows},
    {"curves", kTrain, ReduceCumulative, DrawCumulative},
    {"forest", "", nullptr, DrawForest},
    {"sensitivity", "", nullptr, DrawSensitivity},
    {"summary", "", nullptr, DrawSummary, true},
};

}  // namespace

absl::Span<const Kind> Kinds() { return kKinds; }

const Kind* FindKind(absl::string_view name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

std::string KindNames() {
  const auto append = [](std::string* out, const Kind& kind) { absl::StrAppend(out, kind.name); };
  return absl::StrJoin(kKinds, ", ", append);
}

SettingTracks ReduceSetting(const Kind& kind, const SettingCurves& curves,
                            const CurveOptions& options) {
  return {curves.label, curves.style, kind.reduce(curves, options)};
}

absl::StatusOr<Drawing> Draw(const Kind& kind, const Input& input) {
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
