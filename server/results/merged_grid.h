// Settings of several experiments as one grid, so that whatever compares, draws or writes the
// settings of one experiment does so with those of several.
#ifndef ABLATE_SERVER_RESULTS_MERGED_GRID_H_
#define ABLATE_SERVER_RESULTS_MERGED_GRID_H_

#include <vector>

#include "absl/status/statusor.h"
#include "server/results/operand.h"
#include "server/results/trained_grid.h"
#include "storage/store.h"

namespace ablate::results {

inline constexpr char kSettingAxis[] = "setting";  // the axis of a merged grid that is not tuned

// One axis `setting`, whose labels are EXPERIMENT/SETTING in the order of `operands`, and the axes
// that any of the experiments tunes; an experiment that does not tune one has its own value there.
// Cells are called EXPERIMENT/CELL. Settings of equal specs are one, with the seeds of both. Key,
// direction, what is chosen by, windows and the base that `changed` differs from are those of the
// first experiment; a margin holds only if all have it. `query.baseline` names labels of `setting`,
// by default the first. Errors as LoadGrid's, and INVALID_ARGUMENT at `by`, or at experiment and
// others[i] for a part that there is not. Blocks on the store.
absl::StatusOr<TrainedGrid> MergeGrids(storage::Store* store, const std::vector<Operand>& operands,
                                       const GridQuery& query, const Cancelled& cancelled);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_MERGED_GRID_H_
