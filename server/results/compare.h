// Compares the settings of stored experiments; Compare, tables and reports use the result.
#ifndef ABLATE_SERVER_RESULTS_COMPARE_H_
#define ABLATE_SERVER_RESULTS_COMPARE_H_

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "absl/status/statusor.h"
#include "server/lookup/cancelled.h"
#include "server/lookup/names.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/windows.h"
#include "server/report/html/page.h"
#include "server/results/trained_grid.h"

namespace ablate::results {

struct ComparedGrid {
  TrainedGrid grid;
  report::Comparison comparison;
  std::vector<std::vector<size_t>> rows;  // CellsOfRows
  // Figures and other numbers than the compared one use these runs.
  std::vector<std::vector<ChosenRun>> chosen;
  std::vector<size_t>
      first_cells;  // for each row, the first cell: the meaning of its labels, whatever is tuned
  report::RowWindows windows;  // empty before AddWindows
  // For a comparison of several experiments, or of parts: the operands, each an experiment's id,
  // with /PART or without. Empty: all of one experiment.
  std::vector<std::string> operands;
};

inline constexpr int kMaxOperands = 20;

// Loads and compares. Errors as LoadExperiment's and LoadGrid's, and INVALID_ARGUMENT for an
// invalid experiment or step. Blocks on the store.
absl::StatusOr<ComparedGrid> CompareGrid(const lookup::View& view,
                                         const v1::CompareRequest& request,
                                         const report::CompareOptions& options,
                                         AnalysisNumbers analyses);
// Does the same for an experiment that was found already; ignores the request's name for it.
absl::StatusOr<ComparedGrid> CompareGrid(storage::Store* store, StoredExperiment experiment,
                                         const v1::CompareRequest& request,
                                         const report::CompareOptions& options,
                                         AnalysisNumbers analyses);
// Compares a grid that is complete, without a store. Errors as report::Compare's.
absl::StatusOr<ComparedGrid> CompareLoaded(TrainedGrid grid, const report::CompareOptions& options);
// Compares a number of the experiment's analyses at a step, by default at each run's last one,
// along the axes by which `grid` was loaded, with the same baselines: rows in the same order, with
// their differences, without tests (report::CompareOptions). `by_sequence`: the kind stores the
// number so (spec::IsStoredBySequence). Errors as FindSequences'. Blocks on the store.
absl::StatusOr<report::Comparison> CompareNumber(storage::Store* store, const TrainedGrid& grid,
                                                 const std::string& key,
                                                 std::optional<uint32_t> step, bool by_sequence,
                                                 const lookup::Cancelled& cancelled);
// Reads the curves that report.summaries asks for and adds their summaries.
absl::Status AddWindows(storage::Store* store, const lookup::Cancelled& cancelled,
                        ComparedGrid* compared);

// Returns the fields in which a row differs from its baseline, in order of path.
std::vector<html::FieldChange> ChangedFields(const ComparedGrid& compared, size_t row);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_COMPARE_H_
