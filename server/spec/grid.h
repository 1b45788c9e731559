// The grid of an experiment: which combinations of points there are, counted before any is made.
#ifndef ABLATE_SERVER_SPEC_GRID_H_
#define ABLATE_SERVER_SPEC_GRID_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "server/spec/axes.h"
#include "server/spec/problems.h"

namespace ablate::spec {

// A combination: the index of one point for each axis.
using Indexes = std::vector<int>;

struct Grid {
  std::vector<AxisPlan> axes;
  std::vector<Indexes> exclusions;  // −1 matches every point of an axis
  std::vector<uint32_t> seeds;
};

// The seeds in order; {0} by default.
std::vector<uint32_t> ReadSeeds(const v1::Seeds& seeds, Problems* problems);

// What `exclude` leaves out, in terms of `axes`. Each names points that there are, so each matches.
std::vector<Indexes> ReadExclusions(const v1::ExperimentSpec& spec,
                                    const std::vector<AxisPlan>& axes, Problems* problems);

// Returns whether the grid may be expanded: it has a cell, and no more than limits.runs allows. One
// that has more is left its first seed alone and may be, too, if that makes it at most 1,000 cells:
// whatever else is wrong with them is found at once. Takes time proportional to at most 100,000
// combinations, however large the grid.
bool CheckSize(const v1::Limits& limits, Grid* grid, Problems* problems);

// Calls `visit` for every combination that is not excluded, the last axis fastest. `changed` is the
// first axis whose index differs from the combination before, 0 at first.
void VisitGrid(const Grid& grid,
               const std::function<void(const Indexes& indexes, size_t changed)>& visit);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_GRID_H_
