// Merges settings of several experiments into one grid, so that code for the settings of one
// experiment can compare, draw and write those of several.
#ifndef ABLATE_SERVER_RESULTS_MERGED_GRID_H_
#define ABLATE_SERVER_RESULTS_MERGED_GRID_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/lookup/cancelled.h"
#include "server/results/operand.h"
#include "server/results/trained_grid.h"
#include "storage/store.h"

namespace ablate::results {

inline constexpr char kSettingAxis[] = "setting";  // the axis of a merged grid that isn't tuned

// Returns a grid with one axis `setting`, whose labels are EXPERIMENT/SETTING in the order of
// `operands` (SETTING if all are of one experiment), and the axes that any experiment tunes; an
// experiment that doesn't tune one has its own value there. Cells are named EXPERIMENT/CELL.
// Settings with equal specs become one, with the seeds of both.
//
// Key, direction, selection metric, windows and the base of `changed` are the first experiment's; a
// margin holds only if all have it. `baseline` has at most a setting, by the axis's name; by
// default the first. `query` has none. Errors as LoadGrid's, and INVALID_ARGUMENT at `by` and
// `baseline`, or at experiment and others[i] for a part that doesn't exist. Blocks on the store.
absl::StatusOr<TrainedGrid> MergeGrids(storage::Store* store, const std::vector<Operand>& operands,
                                       const std::map<std::string, Operand>& baseline,
                                       const GridQuery& query, const lookup::Cancelled& cancelled);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_MERGED_GRID_H_
