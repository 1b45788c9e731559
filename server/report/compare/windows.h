// A curve reduced or smoothed: windows at its ends, trailing and cumulative means; and a window
// over the runs of a setting. Nothing here averages a non-finite point away: what would contain one
// does not exist. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_WINDOWS_H_
#define ABLATE_SERVER_REPORT_COMPARE_WINDOWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

enum class Reduction { kMean, kMin, kMax };
enum class WindowSide { kAll, kFirst, kLast };

struct Window {
  WindowSide side = WindowSide::kAll;
  size_t points = 0;  // at least 1 with kFirst and kLast, not read with kAll
  Reduction reduction = Reduction::kMean;
};

struct WindowValue {
  Number value;       // undefined: kTooFewRuns (an empty curve), kNonFinite (a point in the window)
  size_t points = 0;  // that the window holds: fewer than asked for where the curve is shorter
  size_t nonfinite = 0;  // of them
};

// INVALID_ARGUMENT unless the window asks for at least one point.
absl::StatusOr<WindowValue> Reduce(absl::Span<const double> values, const Window& window);

// A curve to draw: NaN values break the line.
struct Curve {
  std::vector<uint32_t> steps;  // ascending
  std::vector<double> values;   // one a step
  size_t nonfinite = 0;         // points of the input that broke it
};

inline constexpr size_t kMaxSmoothing = 100000;

// The mean of the last `width` points at each point that has as many (the valid part; empty if the
// curve is shorter), drawn at the last one's step; NaN where one of them is not finite. `steps` and
// `values` have one length. INVALID_ARGUMENT unless 1 <= width <= kMaxSmoothing. Time
// O(points).
absl::StatusOr<Curve> TrailingMean(absl::Span<const uint32_t> steps,
                                   absl::Span<const double> values, size_t width);

// The mean of all points up to each one; NaN from the first that is not finite.
Curve CumulativeMean(absl::Span<const uint32_t> steps, absl::Span<const double> values);

// One that a report asks for.
struct MetricWindow {
  std::string key;
  Window window;
};

// "train/loss, mean of the last 100", "eval/loss, smallest".
std::string WindowName(const MetricWindow& window);

struct WindowSummary {
  Summary over;                // the windows' values, one a run where it exists
  std::vector<double> values;  // those
  size_t left_out = 0;         // runs where it does not
  size_t fewest_points = 0;    // that a window of `over` holds
};

// Over the converged runs of one setting. Pure.
WindowSummary SummarizeWindow(absl::Span<const WindowValue> runs);

// The windows of a comparison: for each of its rows one summary a window.
struct RowWindows {
  std::vector<MetricWindow> windows;
  std::vector<std::vector<WindowSummary>> rows;
};

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_WINDOWS_H_
