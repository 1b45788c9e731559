// Compares a stored experiment's settings.
#include "server/service/compare.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/errors.h"
#include "server/service/names.h"
#include "server/service/row_windows.h"

namespace ablate::service {
namespace {

constexpr int32_t kEnd = -1;

absl::StatusOr<GridQuery> ReadQuery(storage::Store* store, const v1::CompareRequest& request) {
  auto experiment = FindExperiment(store, request.experiment(), "experiment");
  if (!experiment.ok()) return experiment.status();
  GridQuery query;
  query.experiment = *std::move(experiment);
  query.key = request.key();
  query.by = request.by();
  query.baseline = {request.baseline().begin(), request.baseline().end()};
  if (!request.has_at() || request.at() == kEnd) return query;
  if (request.at() < kEnd) {
    return InvalidField("at", absl::StrCat(request.at(), " is out of range"),
                        "a step from 0 on, or -1 for the end");
  }
  query.at = static_cast<uint32_t>(request.at());
  return query;
}

// For each row the first cell that has its labels.
std::vector<size_t> FirstCells(const TrainedGrid& grid, const report::Comparison& comparison) {
  std::map<std::vector<std::string>, size_t> first;
  for (size_t i = 0; i < grid.cells.size(); ++i) {
    std::vector<std::string> labels;
    for (const std::string& axis : comparison.row_axes) {
      for (const auto& [name, label] : grid.cells[i].labels) {
        if (name == axis) labels.push_back(label);
      }
    }
    first.emplace(std::move(labels), i);
  }
  std::vector<size_t> cells;
  for (const report::ComparisonRow& row : comparison.rows) cells.push_back(first.at(row.labels));
  return cells;
}

}  // namespace

absl::StatusOr<ComparedGrid> CompareGrid(storage::Store* store, const v1::CompareRequest& request,
                                         const report::CompareOptions& options) {
  const auto query = ReadQuery(store, request);
  if (!query.ok()) return query.status();
  auto grid = LoadGrid(store, *query, options.cancelled);
  if (!grid.ok()) return grid.status();
  auto comparison = report::Compare(grid->input, options);
  if (!comparison.ok()) return comparison.status();
  ComparedGrid compared{*std::move(grid), *std::move(comparison), {}, {}, {}, query->at};
  compared.rows = CellsOfRows(compared.grid, compared.comparison);
  compared.first_cells = FirstCells(compared.grid, compared.comparison);
  return compared;
}

absl::Status AddWindows(storage::Store* store, const Cancelled& cancelled, ComparedGrid* compared) {
  Damages damages;
  auto windows = ReadRowWindows(store, compared->grid, compared->comparison, compared->rows,
                                cancelled, &damages);
  if (!windows.ok()) return windows.status();
  compared->windows = *std::move(windows);
  if (!damages.empty()) {
    compared->comparison.warnings.push_back(
        {report::WarningKind::kDamagedRuns,
         absl::StrCat("summaries over windows lack ", damages.ToStatus().message())});
  }
  return absl::OkStatus();
}

std::vector<ChangedField> ChangedFields(const ComparedGrid& compared, size_t row) {
  const report::ComparisonRow& changed = compared.comparison.rows[row];
  std::vector<ChangedField> fields;
  if (!changed.baseline.has_value()) return fields;
  const auto value_at = [&compared](size_t of_row, const std::string& path) {
    const auto& values = compared.grid.input.cells[compared.first_cells[of_row]].changed;
    if (const auto own = values.find(path); own != values.end()) return own->second;
    const auto base = compared.grid.base.find(path);
    return base == compared.grid.base.end() ? std::string() : base->second;
  };
  for (const std::string& path : changed.changed) {
    fields.push_back({path, value_at(row, path), value_at(*changed.baseline, path)});
  }
  return fields;
}

}  // namespace ablate::service
