// Finds the cells that a name of a part of an experiment means.
#ifndef ABLATE_SERVER_RESULTS_PART_CELLS_H_
#define ABLATE_SERVER_RESULTS_PART_CELLS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/lookup/cancelled.h"
#include "server/lookup/names.h"
#include "server/results/trained_grid.h"
#include "storage/records.h"

namespace ablate::results {

// Returns the cells of `part`, in grid order: a cell, a setting as Operand has it; `@best`, the
// cell that is DONE and has the best last value of the experiment's primary metric; or `@chosen`,
// those that analyses of the experiment's file read by default, by a comparison. INVALID_ARGUMENT
// about `field` for a part that isn't there, and for @best if no direction of the metric is better
// or an analysis measures it; NOT_FOUND if no cell is DONE.
absl::StatusOr<std::vector<storage::CellRecord>> CellsOfPart(const lookup::View& view,
                                                             const StoredExperiment& experiment,
                                                             const std::string& part,
                                                             absl::string_view field,
                                                             const lookup::Cancelled& cancelled);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_PART_CELLS_H_
