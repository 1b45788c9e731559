// Builds the grid of an experiment: which combinations of points there are, counted before any is
// made.
#ifndef ABLATE_SERVER_EXPERIMENT_GRID_H_
#define ABLATE_SERVER_EXPERIMENT_GRID_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "server/config/problems.h"
#include "server/experiment/axes.h"

namespace ablate::spec {

// A combination: the index of one point for each axis.
using Indexes = std::vector<int>;

struct Grid {
  std::vector<AxisPlan> axes;
  std::vector<Indexes> exclusions;  // −1 matches every point of an axis
  std::vector<uint32_t> seeds;
};

// Reads the seeds in order; {0} by default.
std::vector<uint32_t> ReadSeeds(const v1::Seeds& seeds, Problems* problems);

// Reads the excluded combinations in terms of `axes`. Each names existing points, so each matches.
std::vector<Indexes> ReadExclusions(const v1::ExperimentSpec& spec,
                                    const std::vector<AxisPlan>& axes, Problems* problems);

// Returns true if the grid may be expanded: it has a cell, and at most limits.runs. A larger grid
// is reduced to its first seed and may be expanded, too, if that leaves at most 1,000 cells, so
// that its other problems are found at once. Takes time proportional to at most 100,000
// combinations, however large the grid.
bool CheckSize(const v1::Limits& limits, Grid* grid, Problems* problems);

// Calls `visit` for every combination that isn't excluded, the last axis fastest. `changed` is the
// first axis whose index differs from the previous combination, 0 at first.
void VisitGrid(const Grid& grid,
               const std::function<void(const Indexes& indexes, size_t changed)>& visit);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_GRID_H_
