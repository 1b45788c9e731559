// A window of a curve over the runs of a setting.
#include "server/report/window_summary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::report {

std::string WindowName(const MetricWindow& window) {
  constexpr absl::string_view kReductions[] = {"mean", "smallest", "largest"};
  std::string name =
      absl::StrCat(window.key, ", ", kReductions[static_cast<int>(window.window.reduction)]);
  if (window.window.side == WindowSide::kAll) return name;
  return absl::StrCat(name, " of the ",
                      window.window.side == WindowSide::kFirst ? "first " : "last ",
                      window.window.points);
}

WindowSummary SummarizeWindow(absl::Span<const WindowValue> runs) {
  WindowSummary summary;
  std::vector<double> values;
  for (const WindowValue& run : runs) {
    if (!run.value.defined()) {
      ++summary.left_out;
      continue;
    }
    summary.fewest_points =
        values.empty() ? run.points : std::min(summary.fewest_points, run.points);
    values.push_back(run.value.value);
  }
  summary.over = Summarize(values);
  summary.values = std::move(values);
  return summary;
}

}  // namespace ablate::report
