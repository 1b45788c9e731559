// Settings of several experiments as one grid, so that whatever compares, draws or writes the
// settings of one experiment does so with those of several.
#ifndef ABLATE_SERVER_RESULTS_MERGED_GRID_H_
#define ABLATE_SERVER_RESULTS_MERGED_GRID_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/results/operand.h"
#include "server/results/trained_grid.h"
#include "server/rpc/cancelled.h"
#include "storage/store.h"

namespace ablate::results {

inline constexpr char kSettingAxis[] = "setting";  // the axis of a merged grid that is not tuned

// One axis `setting`, whose labels are EXPERIMENT/SETTING in the order of `operands`, or SETTING
// where all are of one experiment, and the axes that any of the experiments tunes; an experiment
// that does not tune one has its own value there. Cells are called EXPERIMENT/CELL. Settings of
// equal specs are one, with the seeds of both. Key, direction, what is chosen by, windows and the
// base that `changed` differs from are those of the first experiment; a margin holds only if all
// have it. `baseline` has at most a setting, by the axis's name; by default it is the first.
// `query` has none. Errors as LoadGrid's, and INVALID_ARGUMENT at `by` and `baseline`, or at
// experiment and others[i] for a part that there is not. Blocks on the store.
absl::StatusOr<TrainedGrid> MergeGrids(storage::Store* store, const std::vector<Operand>& operands,
                                       const std::map<std::string, Operand>& baseline,
                                       const GridQuery& query, const rpc::Cancelled& cancelled);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_MERGED_GRID_H_
