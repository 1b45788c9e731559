// Finds the cells that analyses of an experiment's file read.
#ifndef ABLATE_SERVER_RESULTS_ANALYZED_CELLS_H_
#define ABLATE_SERVER_RESULTS_ANALYZED_CELLS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "server/lookup/cancelled.h"
#include "server/results/trained_grid.h"
#include "storage/store.h"

namespace ablate::results {

// Cells whose runs are DONE: all, and of each setting and seed the one with the tuned values that
// the report's comparison selects, unless that diverged. Both are in grid order.
struct AnalyzedCells {
  std::vector<storage::CellRecord> all, chosen;
};

// Returns them; none if no run is DONE yet. Errors as CompareGrid's.
absl::StatusOr<AnalyzedCells> FindAnalyzedCells(storage::Store* store, StoredExperiment stored,
                                                const lookup::Cancelled& cancelled);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_ANALYZED_CELLS_H_
