// The cells of a comparison, put in order: rows of the table, candidates of the tuned axes, seeds.
#ifndef ABLATE_SERVER_REPORT_COMPARE_GRID_H_
#define ABLATE_SERVER_REPORT_COMPARE_GRID_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/rechoosing.h"
#include "server/report/compare/selection.h"

namespace ablate::report {

// A combination of settings and its cells.
struct GridRow {
  std::vector<size_t> labels;                   // one a row axis
  std::vector<std::vector<size_t>> candidates;  // tuned labels, in the grid's order
  std::vector<uint32_t> seeds;                  // ascending
  std::vector<const Cell*> cells;               // [candidates, seeds]; null where the grid has none
  std::optional<size_t> baseline;               // row that this one is compared with
};

// Points into the input, which outlives it.
struct CellGrid {
  std::vector<size_t> row_axes, tuned_axes;  // into the input's axes
  std::vector<size_t> within_axes;           // of row_axes: rows are compared within each of them
  std::vector<GridRow> rows;
};

// Errors as Compare's.
absl::StatusOr<CellGrid> ArrangeCells(const ComparisonInput& input);

// What a cell says about its metric; kNone for null and for a run without a result.
Trial TrialOf(const Cell* cell);

// Likewise about what it is chosen by.
Trial ChoiceOf(const Cell* cell);

// Whether a converged run has a value that no ratio is made of: 0, or below.
bool IsNotPositive(const Cell& cell);
bool HasNotPositive(const ComparisonInput& input);

// What two rows gave, over all candidates and seeds that one of them has: values on the scale,
// choices by those that were chosen by.
TunedPair PairTrials(const ComparisonInput& input, Scale scale, const GridRow& row,
                     const GridRow& baseline);

// Whether the row's cell at `index` of its cells needs a value: not where tuned values are chosen
// by another metric, which it has, and on its seed another one is picked.
bool NeedsValue(const ComparisonInput& input, const GridRow& row, size_t index,
                const std::vector<std::optional<size_t>>& picks);

// The labels at `indices` of the axes `axes`, one an axis.
std::vector<std::string> LabelsAt(const ComparisonInput& input, const std::vector<size_t>& axes,
                                  const std::vector<size_t>& indices);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_GRID_H_
