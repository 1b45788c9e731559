// The kinds of figures there are.
#ifndef ABLATE_SERVER_REPORT_FIGURE_KINDS_H_
#define ABLATE_SERVER_REPORT_FIGURE_KINDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/report/figure/input.h"

namespace ablate::figure {

struct Kind {
  absl::string_view name;
  absl::string_view key;  // the curves' default metric; empty: draws no curves
  // Reduces one setting's curves to what Draw needs of it, so that only one setting's are in memory
  // at a time. Null if it draws no curves.
  std::vector<Track> (*reduce)(const SettingCurves& curves, const CurveOptions& options);
  absl::StatusOr<Drawing> (*draw)(const Input& input);
  bool row_windows = false;  // shows Input::windows
};

absl::Span<const Kind> Kinds();

// Null if there is none of that name.
const Kind* FindKind(absl::string_view name);

// "loss, windows, …".
std::string KindNames();

inline constexpr double kNarrowest = 2, kWidest = 12;  // inches

// Reduces with the setting's label and colour.
SettingTracks ReduceSetting(const Kind& kind, const SettingCurves& curves,
                            const CurveOptions& options);

// `input.width` is from kNarrowest to kWidest. INVALID_ARGUMENT if there is more than fits on a
// page, FAILED_PRECONDITION if there is nothing to show in this kind. Pure, safe from any thread.
absl::StatusOr<Drawing> Draw(const Kind& kind, const Input& input);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_KINDS_H_
