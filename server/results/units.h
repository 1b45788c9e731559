// Finds the values of sequences, over which a comparison of runs without further seeds can pair.
#ifndef ABLATE_SERVER_RESULTS_UNITS_H_
#define ABLATE_SERVER_RESULTS_UNITS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/lookup/cancelled.h"
#include "server/results/trained_grid.h"
#include "storage/store.h"

namespace ablate::results {

inline constexpr size_t kMaxSequences = 10'000;  // of a run, in a comparison

// Makes sequences the unit of `input`, a comparison of the grid's cells, if all of these hold;
// otherwise changes nothing.
//
// - The key is LABEL/NUMBER, and analyses with the label store `by_sequence/NUMBER`.
// - No axis is tuned, differences are compared, and each combination of settings has one run.
// - Each run with a value has the array, of the analysis with that value; runs with the same
//   evaluation data and seed have 2 to kMaxSequences elements, of the same sequences.
//
// If only the last condition fails, sets `input->not_by_sequence`. `experiments` are the IDs of
// those that the cells are from. Reads one file of arrays at a time. CANCELLED, and the store's
// errors. Blocks on the store.
absl::Status FindSequences(storage::Store* store, const std::vector<std::string>& experiments,
                           const lookup::Cancelled& cancelled, const TrainedGrid& grid,
                           report::ComparisonInput* input);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_UNITS_H_
