// Plans an experiment: its cells, their runs, which of them exist, and the cost of the rest.
#ifndef ABLATE_SERVER_SUBMIT_PLAN_H_
#define ABLATE_SERVER_SUBMIT_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "server/experiment/resolution.h"
#include "server/lookup/names.h"
#include "server/submit/backend.h"
#include "server/submit/cost.h"
#include "server/submit/token_datasets.h"
#include "storage/store.h"

namespace ablate::submit {

// If the resolution has problems, the rest is missing.
struct Plan {
  spec::Resolution resolution;
  std::vector<EncodedText> encoded;      // tokens that its runs read; some may not be stored yet
  std::set<std::string> uploads;         // as storage::NewExperiment's
  std::vector<storage::NewRun> runs;     // one for each distinct fingerprint
  std::vector<size_t> run_of_cell;       // index into runs, for each cell
  std::vector<storage::KnownRun> known;  // for each of runs
  std::vector<bool> reused;              // for each of runs: isn't trained again
  std::vector<uint32_t>
      first_step;         // for each of runs: step at which it continues from its origin; or 0
  uint64_t analyses = 0;  // number that the spec asks for, including stored ones
  Cost cost;              // of the runs and analyses that aren't reused
  std::string no_room;  // why the disk's room, or the user's quota, is too small; empty if it isn't
};

// Returns the run that a resolved cell asks for.
storage::NewRun ToRun(const spec::ResolvedCell& cell);

// Returns the user to whom the experiment would be private; empty: public.
std::string PrivateTo(const lookup::View& view, const v1::CreateExperimentRequest& request);

// Plans the request for the owner of this view. Moves the spec out of `request`, because it may be
// large. Changes nothing. Blocks on the store and the scheduler.
absl::StatusOr<Plan> MakePlan(const Backend& backend, const lookup::View& view,
                              v1::CreateExperimentRequest* request);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_PLAN_H_
