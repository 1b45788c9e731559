#include "server/results/compare.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/report/compare/metric_names.h"
#include "server/results/merged_grid.h"
#include "server/results/operand.h"
#include "server/results/units.h"

namespace ablate::results {
namespace {

constexpr int32_t kEnd = -1;

absl::StatusOr<GridQuery> ReadQuery(const v1::CompareRequest& request, AnalysisNumbers analyses) {
  GridQuery query;
  query.analyses = analyses;
  query.key = request.key();
  query.by = request.by();
  query.baseline = {request.baseline().begin(), request.baseline().end()};
  if (!request.has_at() || request.at() == kEnd) return query;
  if (request.at() < kEnd) {
    return lookup::InvalidField("at", absl::StrCat(request.at(), " is out of range"),
                                "a step from 0 on, or -1 for the end");
  }
  query.at = static_cast<uint32_t>(request.at());
  return query;
}

// Returns for each row the first cell that has its labels.
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

using RowRuns = std::vector<std::vector<ChosenRun>>;  // for each row

// Returns the cells of converged runs, each once.
std::vector<size_t> ConvergedCells(const RowRuns& rows) {
  std::set<size_t> cells;
  for (const std::vector<ChosenRun>& runs : rows) {
    for (const ChosenRun& run : Converged(runs)) cells.insert(run.cell);
  }
  return {cells.begin(), cells.end()};
}

using WindowValues = std::map<size_t, report::WindowValue>;  // by cell

// Fills in the windows of one key, one per window; those of other keys stay as they are.
absl::Status ReadKey(storage::Store* store, const TrainedGrid& grid, const std::string& key,
                     const std::vector<size_t>& cells, const lookup::Cancelled& cancelled,
                     const std::vector<report::MetricWindow>& windows,
                     std::vector<WindowValues>* values, Damages* damages) {
  return VisitCurves(
      store, grid, key, cells, cancelled,
      [&](size_t cell, const analysis::Points& points) -> absl::Status {
        for (size_t i = 0; i < windows.size(); ++i) {
          if (windows[i].key != key) continue;
          ASSIGN_OR_RETURN(auto value, report::Reduce(points.values, windows[i].window));
          (*values)[i][cell] = value;
        }
        return absl::OkStatus();
      },
      damages);
}

report::WindowSummary SummarizeRow(const std::vector<ChosenRun>& row, report::Scale scale,
                                   const WindowValues& values) {
  std::vector<report::WindowValue> runs;
  for (const ChosenRun& run : Converged(row)) {
    const auto value = values.find(run.cell);
    runs.push_back(value == values.end() ? report::WindowValue() : value->second);
  }
  return report::SummarizeWindow(runs, scale);
}

// Summarizes each row's own converged runs. Reads one curve at a time, none if there are no
// windows. Leaves out damaged curves and reports them.
absl::StatusOr<report::RowWindows> ReadRowWindows(storage::Store* store, const TrainedGrid& grid,
                                                  const RowRuns& rows,
                                                  const lookup::Cancelled& cancelled,
                                                  Damages* damages) {
  report::RowWindows result;
  std::set<std::string> keys;
  for (const v1::Window& window : grid.spec.report().summaries()) {
    result.windows.push_back(ToWindow(window));
    keys.insert(window.key());
  }
  std::vector<WindowValues> values(result.windows.size());
  const std::vector<size_t> cells = ConvergedCells(rows);
  for (const std::string& key : keys) {
    RETURN_IF_ERROR(ReadKey(store, grid, key, cells, cancelled, result.windows, &values, damages));
  }
  for (const std::vector<ChosenRun>& runs : rows) {
    auto& summaries = result.rows.emplace_back();
    for (size_t i = 0; i < values.size(); ++i) {
      summaries.push_back(SummarizeRow(
          runs, report::ScaleOfMetric(result.windows[i].key, grid.input.source), values[i]));
    }
  }
  return result;
}

// Compares a grid of the cells of `experiments`.
absl::StatusOr<ComparedGrid> Compare(storage::Store* store,
                                     const std::vector<std::string>& experiments, TrainedGrid grid,
                                     const report::CompareOptions& options) {
  RETURN_IF_ERROR(FindSequences(store, experiments, options.cancelled, grid, &grid.input));
  return CompareLoaded(std::move(grid), options);
}

absl::StatusOr<ComparedGrid> CompareOne(storage::Store* store, StoredExperiment experiment,
                                        const GridQuery& query,
                                        const report::CompareOptions& options) {
  const std::string id = experiment.record.id;
  ASSIGN_OR_RETURN(auto grid, LoadGrid(store, std::move(experiment), query, options.cancelled));
  return Compare(store, {id}, std::move(grid), options);
}

// Returns the request's operands, the first one first.
absl::StatusOr<std::vector<Operand>> ReadOperands(const lookup::View& view,
                                                  const v1::CompareRequest& request) {
  if (request.others_size() + 1 > kMaxOperands) {
    return lookup::TooMany("others", request.others_size(), kMaxOperands - 1);
  }
  std::vector<Operand> operands;
  for (int i = -1; i < request.others_size(); ++i) {
    ASSIGN_OR_RETURN(auto operand,
                     i < 0 ? FindOperand(view, request.experiment(), "experiment")
                           : FindOperand(view, request.others(i), absl::StrCat("others[", i, "]")));
    operands.push_back(std::move(operand));
  }
  return operands;
}

absl::StatusOr<ComparedGrid> CompareMerged(const lookup::View& view,
                                           const std::vector<Operand>& operands, GridQuery query,
                                           const report::CompareOptions& options) {
  const std::string& first = operands.front().experiment;
  const bool of_one = std::all_of(operands.begin(), operands.end(), [&](const Operand& operand) {
    return operand.experiment == first;
  });
  std::map<std::string, Operand> baseline;
  for (const auto& [axis, label] : query.baseline) {
    // Rows are named so if all are of one experiment.
    if (of_one && !absl::StrContains(label, '/')) {
      baseline[axis] = {first, label};
      continue;
    }
    auto named = FindOperand(view, label, absl::StrCat("baseline", reflect::Subscript(axis)));
    // The operands are only known later; the error then lists the valid names.
    if (absl::IsNotFound(named.status())) named = Operand{label, ""};
    if (!named.ok()) return named.status();
    baseline[axis] = *std::move(named);
  }
  query.baseline.clear();
  ASSIGN_OR_RETURN(auto merged,
                   MergeGrids(view.store, operands, baseline, query, options.cancelled));
  std::vector<std::string> experiments;
  for (const Operand& operand : operands) experiments.push_back(operand.experiment);
  auto compared = Compare(view.store, experiments, std::move(merged), options);
  if (!compared.ok()) return compared.status();
  for (const Operand& operand : operands) {
    compared->operands.push_back(OperandName(operand.experiment, operand.part));
  }
  return compared;
}

}  // namespace

absl::StatusOr<ComparedGrid> CompareLoaded(TrainedGrid grid,
                                           const report::CompareOptions& options) {
  ASSIGN_OR_RETURN(auto comparison, report::Compare(grid.input, options));
  ComparedGrid compared{std::move(grid), std::move(comparison), {}, {}, {}, {}, {}};
  compared.rows = CellsOfRows(compared.grid, compared.comparison);
  compared.chosen = ChosenRuns(compared.grid, compared.comparison);
  compared.first_cells = FirstCells(compared.grid, compared.comparison);
  return compared;
}

absl::StatusOr<ComparedGrid> CompareGrid(storage::Store* store, StoredExperiment experiment,
                                         const v1::CompareRequest& request,
                                         const report::CompareOptions& options,
                                         AnalysisNumbers analyses) {
  ASSIGN_OR_RETURN(const auto query, ReadQuery(request, analyses));
  return CompareOne(store, std::move(experiment), query, options);
}

absl::StatusOr<ComparedGrid> CompareGrid(const lookup::View& view,
                                         const v1::CompareRequest& request,
                                         const report::CompareOptions& options,
                                         AnalysisNumbers analyses) {
  ASSIGN_OR_RETURN(const auto operands, ReadOperands(view, request));
  ASSIGN_OR_RETURN(const auto query, ReadQuery(request, analyses));
  if (operands.size() > 1 || !operands.front().part.empty()) {
    return CompareMerged(view, operands, query, options);
  }
  ASSIGN_OR_RETURN(auto experiment, LoadExperiment(view.store, operands.front().experiment));
  return CompareOne(view.store, std::move(experiment), query, options);
}

absl::StatusOr<report::Comparison> CompareNumber(storage::Store* store, const TrainedGrid& grid,
                                                 const std::string& key,
                                                 std::optional<uint32_t> step, bool by_sequence,
                                                 const lookup::Cancelled& cancelled) {
  report::ComparisonInput input = grid.input;
  input.key = key;
  input.at = step;
  input.better = BetterOf(grid.spec, key);
  input.scale = ScaleOf(grid.spec, key);
  input.margin.reset();
  input.unit = report::Unit::kSeed;
  const bool tuned = std::any_of(
      input.axes.begin(), input.axes.end(),
      [&input](const report::Axis& axis) { return axis.tuned && axis.name != input.by; });
  const bool by_value = tuned && input.choice_key.empty();
  if (by_value) {
    input.choice_key = grid.input.key;
    input.choice_better = grid.input.better;
  }
  for (size_t i = 0; i < input.cells.size(); ++i) {
    report::Cell& cell = input.cells[i];
    if (by_value) cell.choice = cell.value;
    const analysis::Points* const points = grid.metrics.Find(grid.cells[i].run, key);
    cell.value.reset();
    if (points != nullptr) {
      cell.value = step.has_value() ? analysis::ValueAt(*points, *step) : points->values.back();
    }
    cell.scored = grid.held_out[i];
    cell.by_sequence.clear();
    cell.sequence_weights.clear();
    cell.sequences.clear();
  }
  if (by_sequence) {
    RETURN_IF_ERROR(FindSequences(store, {grid.record.id}, cancelled, grid, &input));
  }
  return report::Compare(input, {cancelled, /*resamples=*/0, /*tests=*/false});
}

absl::Status AddWindows(storage::Store* store, const lookup::Cancelled& cancelled,
                        ComparedGrid* compared) {
  Damages damages;
  ASSIGN_OR_RETURN(compared->windows,
                   ReadRowWindows(store, compared->grid, compared->chosen, cancelled, &damages));
  if (!damages.empty()) {
    compared->comparison.warnings.push_back(
        {report::WarningKind::kDamagedRuns,
         absl::StrCat("curve summaries lack ", damages.ToStatus().message())});
  }
  return absl::OkStatus();
}

std::vector<html::FieldChange> ChangedFields(const ComparedGrid& compared, size_t row) {
  const report::ComparisonRow& changed = compared.comparison.rows[row];
  std::vector<html::FieldChange> fields;
  if (!changed.baseline.has_value()) return fields;
  const auto value_at = [&compared](size_t of_row, const std::string& path) {
    return FieldOf(compared.grid, compared.first_cells[of_row], path);
  };
  for (const std::string& path : changed.changed) {
    fields.push_back({path, value_at(row, path), value_at(*changed.baseline, path)});
  }
  return fields;
}

}  // namespace ablate::results
