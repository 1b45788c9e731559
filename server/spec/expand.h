// A grid that is known to be small enough becomes cells.
#ifndef ABLATE_SERVER_SPEC_EXPAND_H_
#define ABLATE_SERVER_SPEC_EXPAND_H_

#include <set>
#include <string>
#include <vector>

#include "server/spec/datasets.h"
#include "server/spec/grid.h"
#include "server/spec/resolve.h"

namespace ablate::spec {

struct ExpandInput {
  const v1::BaseSpec& base;  // with overrides applied
  const Grid& grid;
  const std::vector<Write>& overrides;
  const std::set<std::string>& bad;  // paths of `base` that have problems of their own
};

// Checks every combination and, while `problems` is empty, appends its cells and its parameter
// count to `resolution`.
void Expand(const ExpandInput& input, const Surroundings& surroundings, Datasets* datasets,
            Problems* problems, Resolution* resolution);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_EXPAND_H_
