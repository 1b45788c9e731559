// A window of a curve over the runs of a setting.
#ifndef ABLATE_SERVER_REPORT_WINDOW_SUMMARY_H_
#define ABLATE_SERVER_REPORT_WINDOW_SUMMARY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/report/statistics.h"
#include "server/report/windows.h"

namespace ablate::report {

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

#endif  // ABLATE_SERVER_REPORT_WINDOW_SUMMARY_H_
