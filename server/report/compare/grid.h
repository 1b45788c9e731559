// Arranges the cells of a comparison: rows of the table, candidates of the tuned axes, seeds.
#ifndef ABLATE_SERVER_REPORT_COMPARE_GRID_H_
#define ABLATE_SERVER_REPORT_COMPARE_GRID_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/reselection.h"
#include "server/report/compare/selection.h"

namespace ablate::report {

// A combination of settings and its cells.
struct GridRow {
  std::vector<size_t> labels;                   // one per row axis
  std::vector<std::vector<size_t>> candidates;  // tuned labels, in the grid's order
  std::vector<uint32_t> seeds;                  // ascending
  std::vector<const Cell*> cells;               // [candidates, seeds]; null if the grid has none
  std::optional<size_t> baseline;               // row that it is compared with
};

// The arranged cells. Points into the input, which must outlive it.
struct CellGrid {
  std::vector<size_t> row_axes, tuned_axes;  // indexes of the input's axes
  std::vector<size_t> within_axes;  // part of row_axes: rows are compared within each of them
  std::vector<GridRow> rows;
};

// Arranges the cells. Errors as Compare's.
absl::StatusOr<CellGrid> ArrangeCells(const ComparisonInput& input);

// Returns a cell's trial of the compared metric; kNone for null and for a run without a result.
Trial TrialOf(const Cell* cell);

// Returns a cell's trial of the metric for selection.
Trial ChoiceOf(const Cell* cell);

// Returns true for a converged run whose value is 0 or less, which has no ratio.
bool IsNotPositive(const Cell& cell);
bool HasNotPositive(const ComparisonInput& input);

// Returns two rows' results over all candidates and seeds of either: values on the scale, and the
// values of the selection metric.
TunedPair PairTrials(const ComparisonInput& input, Scale scale, const GridRow& row,
                     const GridRow& baseline);

// Returns true if the row's cell at `index` needs a value. It doesn't if tuned values are selected
// by another metric, which it has, and another candidate is selected on its seed.
bool NeedsValue(const ComparisonInput& input, const GridRow& row, size_t index,
                const std::vector<std::optional<size_t>>& picks);

// Returns the labels at `indices` of the axes `axes`, one per axis.
std::vector<std::string> LabelsAt(const ComparisonInput& input, const std::vector<size_t>& axes,
                                  const std::vector<size_t>& indices);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_GRID_H_
