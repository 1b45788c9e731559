// Makes a grid to compare of results that were trained elsewhere, without an experiment.
#ifndef ABLATE_SERVER_IMPORTS_COMPARE_H_
#define ABLATE_SERVER_IMPORTS_COMPARE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "server/imports/reading.h"
#include "server/imports/results.h"
#include "server/results/trained_grid.h"

namespace ablate::imports {

// Returns the grid: its input with the values that an experiment of these results would have, and
// the names of its cells. Items are the units of pairs; those of one group count together, weighted
// by their number. INVALID_ARGUMENT if runs have different items or groups.
absl::StatusOr<results::TrainedGrid> GridOf(const Reading& reading, std::optional<double> margin,
                                            const Results& results);

}  // namespace ablate::imports

#endif  // ABLATE_SERVER_IMPORTS_COMPARE_H_
