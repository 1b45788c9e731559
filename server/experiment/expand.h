// Expands a grid, known to be small enough, into cells.
#ifndef ABLATE_SERVER_EXPERIMENT_EXPAND_H_
#define ABLATE_SERVER_EXPERIMENT_EXPAND_H_

#include <vector>

#include "server/config/bad_paths.h"
#include "server/experiment/datasets.h"
#include "server/experiment/grid.h"
#include "server/experiment/resolution.h"

namespace ablate::spec {

// The feed-forward's inner features are chosen by the number of parameters.
inline constexpr char kMatchPath[] = "model.feed_forward.match_parameters";

struct ExpandInput {
  const v1::BaseSpec& base;  // with overrides applied
  const Grid& grid;
  const std::vector<Write>& overrides;
  const BadPaths& bad;          // paths of `base` with problems of their own
  const std::string& primary;   // report.primary, by which tuned values are selected, or ""
  bool labels_are_good = true;  // false: cells' names repeat for reasons that are reported already
};

// Checks every combination and appends its cells, its config and its bad paths to `resolution`.
// Cells with bad paths lack the values that costs are estimated from.
void Expand(const ExpandInput& input, const Surroundings& surroundings, Datasets* datasets,
            Problems* problems, Resolution* resolution);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_EXPAND_H_
