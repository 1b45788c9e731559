// The windows that a spec asks for (report.summaries), read for the rows of a comparison.
#include "server/service/row_windows.h"

#include <set>
#include <utility>

namespace ablate::service {
namespace {

report::Reduction ReductionOf(v1::Reduce::Value reduce) {
  if (reduce == v1::Reduce::min) return report::Reduction::kMin;
  return reduce == v1::Reduce::max ? report::Reduction::kMax : report::Reduction::kMean;
}

report::MetricWindow ToWindow(const v1::Window& message) {
  report::MetricWindow window{message.key(), {}};
  window.window.reduction = ReductionOf(message.reduce());
  if (message.has_first()) {
    window.window.side = report::WindowSide::kFirst;
    window.window.points = message.first();
  } else if (message.has_last()) {
    window.window.side = report::WindowSide::kLast;
    window.window.points = message.last();
  }
  return window;
}

// The cells of converged runs, each once.
std::vector<size_t> ConvergedCells(const report::Comparison& comparison,
                                   const std::vector<std::vector<size_t>>& rows) {
  std::set<size_t> cells;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < rows[row].size(); ++i) {
      if (!comparison.rows[row].runs[i].diverged) cells.insert(rows[row][i]);
    }
  }
  return {cells.begin(), cells.end()};
}

using WindowValues = std::map<size_t, report::WindowValue>;  // by cell

// Fills in the windows of one key, one a window; those of other keys stay as they are.
absl::Status ReadKey(storage::Store* store, const TrainedGrid& grid, const std::string& key,
                     const std::vector<size_t>& cells, const Cancelled& cancelled,
                     const std::vector<report::MetricWindow>& windows,
                     std::vector<WindowValues>* values, Damages* damages) {
  return VisitCurves(
      store, grid, key, cells, cancelled,
      [&](size_t cell, const Points& points) -> absl::Status {
        for (size_t i = 0; i < windows.size(); ++i) {
          if (windows[i].key != key) continue;
          auto value = report::Reduce(points.values, windows[i].window);
          if (!value.ok()) return value.status();
          (*values)[i][cell] = *value;
        }
        return absl::OkStatus();
      },
      damages);
}

report::WindowSummary SummarizeRow(const report::ComparisonRow& row,
                                   const std::vector<size_t>& cells, const WindowValues& values) {
  std::vector<report::WindowValue> runs;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (row.runs[i].diverged) continue;
    const auto value = values.find(cells[i]);
    runs.push_back(value == values.end() ? report::WindowValue() : value->second);
  }
  return report::SummarizeWindow(runs);
}

}  // namespace

absl::StatusOr<report::RowWindows> ReadRowWindows(storage::Store* store, const TrainedGrid& grid,
                                                  const report::Comparison& comparison,
                                                  const std::vector<std::vector<size_t>>& rows,
                                                  const Cancelled& cancelled, Damages* damages) {
  report::RowWindows result;
  std::set<std::string> keys;
  for (const v1::Window& window : grid.spec.report().summaries()) {
    result.windows.push_back(ToWindow(window));
    keys.insert(window.key());
  }
  std::vector<WindowValues> values(result.windows.size());
  const std::vector<size_t> cells = ConvergedCells(comparison, rows);
  for (const std::string& key : keys) {
    const absl::Status read =
        ReadKey(store, grid, key, cells, cancelled, result.windows, &values, damages);
    if (!read.ok()) return read;
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    auto& summaries = result.rows.emplace_back();
    for (const WindowValues& window : values) {
      summaries.push_back(SummarizeRow(comparison.rows[row], rows[row], window));
    }
  }
  return result;
}

}  // namespace ablate::service
