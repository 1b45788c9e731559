// One function pair a kind of figure; kinds.cc has the table.
#ifndef ABLATE_SERVER_REPORT_FIGURE_DRAW_H_
#define ABLATE_SERVER_REPORT_FIGURE_DRAW_H_

#include <vector>

#include "absl/status/statusor.h"
#include "server/report/figure/input.h"

namespace ablate::figure {

// Mean, band and thin seeds of a metric over all steps.
std::vector<Track> ReduceLoss(const SettingCurves& curves, const CurveOptions& options);
absl::StatusOr<Drawing> DrawLoss(const Input& input);

// The same over the first and over the last steps, each with a range of its own.
std::vector<Track> ReduceWindows(const SettingCurves& curves, const CurveOptions& options);
absl::StatusOr<Drawing> DrawWindows(const Input& input);

// Cumulative mean and trailing mean.
std::vector<Track> ReduceCumulative(const SettingCurves& curves, const CurveOptions& options);
absl::StatusOr<Drawing> DrawCumulative(const Input& input);

// Paired differences to the baseline, with intervals and seeds.
absl::StatusOr<Drawing> DrawForest(const Input& input);

// The metric over the values of the first tuned axis, with counts of divergences.
absl::StatusOr<Drawing> DrawSensitivity(const Input& input);

// Each setting's metric as a dot with its interval, or the spec's summaries.
absl::StatusOr<Drawing> DrawSummary(const Input& input);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_DRAW_H_
