// Compares the settings of stored experiments: what Compare answers, and what tables and reports
// are made of.
#ifndef ABLATE_SERVER_RESULTS_COMPARE_H_
#define ABLATE_SERVER_RESULTS_COMPARE_H_

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "absl/status/statusor.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/windows.h"
#include "server/report/html/page.h"
#include "server/results/trained_grid.h"
#include "server/rpc/cancelled.h"
#include "server/rpc/names.h"

namespace ablate::results {

struct ComparedGrid {
  TrainedGrid grid;
  report::Comparison comparison;
  std::vector<std::vector<size_t>> rows;  // CellsOfRows
  // What is drawn and told of other numbers than the compared one is of these.
  std::vector<std::vector<ChosenRun>> chosen;
  std::vector<size_t> first_cells;  // of each row: what its labels mean, whatever is tuned
  report::RowWindows windows;       // none before AddWindows
  // Of a comparison of several experiments, or of parts of them: what is compared, each an
  // experiment's id with /PART behind it or not. Empty: all of one experiment.
  std::vector<std::string> operands;
};

inline constexpr int kMaxOperands = 20;

// Errors as LoadExperiment's and LoadGrid's, and INVALID_ARGUMENT for an experiment or a step that
// is none. Blocks on the store.
absl::StatusOr<ComparedGrid> CompareGrid(const rpc::View& view, const v1::CompareRequest& request,
                                         const report::CompareOptions& options,
                                         AnalysisNumbers analyses);
// The same of an experiment that was found already, whatever the request calls it.
absl::StatusOr<ComparedGrid> CompareGrid(storage::Store* store, StoredExperiment experiment,
                                         const v1::CompareRequest& request,
                                         const report::CompareOptions& options,
                                         AnalysisNumbers analyses);
// Reads what report.summaries asks for, for whoever shows it: it takes a look at whole curves.
absl::Status AddWindows(storage::Store* store, const rpc::Cancelled& cancelled,
                        ComparedGrid* compared);

// Returns what differs between a row and its baseline, by ascending path.
std::vector<html::FieldChange> ChangedFields(const ComparedGrid& compared, size_t row);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_COMPARE_H_
