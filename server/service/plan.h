// What an experiment would do: its cells, the runs behind them, which of those exist, what the rest
// costs.
#ifndef ABLATE_SERVER_SERVICE_PLAN_H_
#define ABLATE_SERVER_SERVICE_PLAN_H_

#include <cstddef>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "server/service/backend.h"
#include "server/service/estimate.h"
#include "server/spec/resolve.h"
#include "storage/store.h"

namespace ablate::service {

// If resolution.problems is not empty, the rest may be missing.
struct Plan {
  spec::Resolution resolution;
  std::vector<storage::NewRun> runs;     // one per distinct fingerprint
  std::vector<size_t> run_of_cell;       // index into runs, for each cell
  std::vector<storage::KnownRun> known;  // for each of runs
  std::vector<bool> reused;              // for each of runs: is not trained again
  Cost cost;                             // of the runs that are not reused
  std::string no_room;                   // that the disk has too little for them; empty if not
};

// The run that a resolved cell asks for.
storage::NewRun ToRun(const spec::ResolvedCell& cell);

// Takes the spec out of `request`, which may be large. Changes nothing. Blocks on the store and the
// scheduler.
absl::StatusOr<Plan> MakePlan(const Backend& backend, v1::CreateExperimentRequest* request);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_PLAN_H_
