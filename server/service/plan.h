// What an experiment would do: its cells, the runs behind them, which of those exist, what the rest
// costs.
#ifndef ABLATE_SERVER_SERVICE_PLAN_H_
#define ABLATE_SERVER_SERVICE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/service/services.h"
#include "server/spec/resolve.h"
#include "storage/store.h"

namespace ablate::service {

struct RunCost {
  std::string shape;  // runs of equal shape cost the same a step
  uint32_t steps = 0;
  double flops_per_step = 0;
  uint64_t bytes = 0;         // stored for good
  uint64_t resume_bytes = 0;  // of a resume state, which goes when the run ends
};

struct Cost {
  absl::Duration device_time;  // lane time on a CPU
  absl::Duration wall_time;    // with `lanes` lanes and nothing else queued
  // The most that is stored at once: what stays of every run, and resume states of those that train
  // at the same time.
  uint64_t bytes = 0;
  bool measured = true;  // every step time was measured
};

// Lane microseconds a step of a shape, if known. Called once for each distinct shape.
using StepTime = std::function<absl::StatusOr<std::optional<double>>(absl::string_view shape)>;

// `lanes` of at least 1, each taking the next run in order when it is free.
absl::StatusOr<Cost> EstimateCost(const std::vector<RunCost>& runs, const StepTime& step_time,
                                  uint32_t lanes);

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
