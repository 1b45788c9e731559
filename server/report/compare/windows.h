// Reduces and smooths curves: windows at their ends, trailing and cumulative means; and summarizes
// a window over a setting's runs. Non-finite points are never averaged away: a result that would
// contain one is undefined. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_WINDOWS_H_
#define ABLATE_SERVER_REPORT_COMPARE_WINDOWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

enum class Reduction { kMean, kMin, kMax };
enum class WindowSide { kAll, kFirst, kLast };

struct Window {
  WindowSide side = WindowSide::kAll;
  size_t points = 0;  // at least 1 with kFirst and kLast, ignored with kAll
  Reduction reduction = Reduction::kMean;
};

struct WindowValue {
  Number value;       // undefined: kTooFewRuns (an empty curve), kNonFinite (a point in the window)
  size_t points = 0;  // number in the window: fewer than requested if the curve is shorter
  size_t nonfinite = 0;  // of these
};

// Reduces a window to a value. INVALID_ARGUMENT unless the window has at least one point.
absl::StatusOr<WindowValue> Reduce(absl::Span<const double> values, const Window& window);

// A curve to draw: NaN values break the line.
struct Curve {
  std::vector<uint32_t> steps;  // ascending
  std::vector<double> values;   // one per step
  size_t nonfinite = 0;         // points of the input that are not finite
};

inline constexpr size_t kMaxSmoothing = 100000;

// Returns the mean of the last `width` points at each point that has as many (the valid part; empty
// if the curve is shorter), at the last one's step; NaN if one of them isn't finite. `steps` and
// `values` have equal lengths. INVALID_ARGUMENT unless 1 <= width <= kMaxSmoothing. Time O(points).
absl::StatusOr<Curve> TrailingMean(absl::Span<const uint32_t> steps,
                                   absl::Span<const double> values, size_t width);

// Returns the mean of all points up to each one; NaN from the first that isn't finite.
Curve CumulativeMean(absl::Span<const uint32_t> steps, absl::Span<const double> values);

// A window that a report asks for.
struct MetricWindow {
  std::string key;
  Window window;
};

// Returns "training loss, mean of the last 100", "held-out loss, smallest".
std::string WindowName(const MetricWindow& window, MetricSource source);

struct WindowSummary {
  Summary over;                // the windows' values, one per run that has one, off the scale
  std::vector<double> values;  // these values
  size_t left_out = 0;         // runs without one
  size_t fewest_points = 0;    // points in the smallest window of `over`
};

// Summarizes a window over the converged runs of one setting. On the scale of ratios the mean is
// geometric and the interval one of logarithms, unless a value isn't positive. Pure.
WindowSummary SummarizeWindow(absl::Span<const WindowValue> runs, Scale scale = Scale::kDifference);

// The windows of a comparison: for each of its rows, one summary per window.
struct RowWindows {
  std::vector<MetricWindow> windows;
  std::vector<std::vector<WindowSummary>> rows;
};

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_WINDOWS_H_
