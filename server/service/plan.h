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
#include "server/rpc/names.h"
#include "server/service/services.h"
#include "server/spec/estimate.h"
#include "server/spec/resolve.h"
#include "storage/store.h"

namespace ablate::service {

struct RunCost {
  std::string shape;   // runs of equal shape cost the same a step, their evaluations included
  uint32_t steps = 0;  // to be trained
  double flops_per_step = 0;
  uint64_t bytes = 0;         // stored for good
  uint64_t resume_bytes = 0;  // of a resume state
  bool grows = false;         // its last state is kept when it ends
  uint32_t every = 1;         // steps between its evaluations
  spec::EvaluationCost evaluation = {};
  double guessed_speed = 1;  // as spec::ResolvedCell's
};

struct Cost {
  absl::Duration device_time;  // lane time on a CPU
  absl::Duration wall_time;    // with `lanes` lanes and nothing else queued
  // The most that is stored at once: what stays of every run, resume states of those that train at
  // the same time, and the last states that are kept.
  uint64_t bytes = 0;
  bool measured = true;          // nothing of device_time is guessed
  absl::Duration measured_time;  // the part of device_time that is not guessed
};

// Lane microseconds a step of a shape, if known. Called once for each distinct shape.
using StepTime = std::function<absl::StatusOr<std::optional<double>>(absl::string_view shape)>;

// What trains them and keeps their states.
struct Capacity {
  uint32_t lanes = 1;              // each takes the next run in order when it is free
  uint64_t last_states_bytes = 0;  // the most that is kept of last states
};

absl::StatusOr<Cost> EstimateCost(const std::vector<RunCost>& runs, const StepTime& step_time,
                                  const Capacity& capacity);

// Reads the times of a group's analyses that were made here. Called once for each entry and group.
using FindTimes = std::function<absl::StatusOr<storage::AnalysisTimes>(absl::string_view group)>;

// Adds `count` new analyses of an entry, which one worker makes after the last run, by
// analysis::ExpectTime.
absl::Status AddAnalysesCost(size_t count, const spec::EntryCost& entry, const FindTimes& find,
                             Cost* cost);

// Unless the resolution is sound, the rest is missing.
struct Plan {
  spec::Resolution resolution;
  std::vector<storage::NewRun> runs;     // one per distinct fingerprint
  std::vector<size_t> run_of_cell;       // index into runs, for each cell
  std::vector<storage::KnownRun> known;  // for each of runs
  std::vector<bool> reused;              // for each of runs: is not trained again
  std::vector<uint32_t> first_step;      // for each of runs: where it goes on from its origin; or 0
  uint64_t analyses = 0;                 // that the spec asks for, also those that are stored
  Cost cost;                             // of the runs and analyses that are not reused
  std::string no_room;  // that the disk, or the user's quota, has too little; empty if not
};

// The run that a resolved cell asks for.
storage::NewRun ToRun(const spec::ResolvedCell& cell);

// To whom the experiment would be private; empty: nobody.
std::string PrivateTo(const rpc::View& view, const v1::CreateExperimentRequest& request);

// Takes the spec out of `request`, which may be large; of whoever has this view. Changes nothing.
// Blocks on the store and the scheduler.
absl::StatusOr<Plan> MakePlan(const Backend& backend, const rpc::View& view,
                              v1::CreateExperimentRequest* request);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_PLAN_H_
