// Makes an experiment of results that were trained elsewhere.
#ifndef ABLATE_SERVER_IMPORTS_EXPERIMENT_H_
#define ABLATE_SERVER_IMPORTS_EXPERIMENT_H_

#include <string>
#include <vector>

#include "ablate/v1/import.pb.h"
#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "server/experiment/resolution.h"
#include "server/imports/reading.h"
#include "server/imports/results.h"
#include "storage/records.h"

namespace ablate::imports {

inline constexpr size_t kMaxSeeds = 10'000;  // seeds, or items that become seeds

struct Imported {
  v1::ExperimentSpec spec;
  std::vector<spec::ResolvedCell> cells;  // in grid order, distinct fingerprints
  std::vector<storage::NewRun> runs;      // one per cell
};

// Makes the experiment. A run's fingerprint is a hash of its settings, seed and points, so that
// equal results are stored once; one that is private to a user is that user's. Items become seeds.
// INVALID_ARGUMENT lists the problems of its name and settings. Moves the series out of `results`.
absl::StatusOr<Imported> MakeExperiment(const v1::ImportOptions& options, const Reading& reading,
                                        const std::string& private_to, Results* results);

}  // namespace ablate::imports

#endif  // ABLATE_SERVER_IMPORTS_EXPERIMENT_H_
