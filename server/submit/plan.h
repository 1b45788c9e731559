// Plans an experiment: its cells, their runs, which of them exist, and the cost of the rest.
#ifndef ABLATE_SERVER_SUBMIT_PLAN_H_
#define ABLATE_SERVER_SUBMIT_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/config/estimate.h"
#include "server/experiment/resolution.h"
#include "server/lookup/names.h"
#include "server/submit/backend.h"
#include "server/submit/token_datasets.h"
#include "storage/store.h"

namespace ablate::submit {

struct RunCost {
  std::string shape;   // runs of equal shape cost the same per step, evaluations included
  uint32_t steps = 0;  // to train
  double flops_per_step = 0;
  uint64_t bytes = 0;         // stored permanently
  uint64_t resume_bytes = 0;  // of one resume state
  bool grows = false;         // its saved training state is kept after its end
  uint32_t every = 1;         // steps between evaluations
  spec::EvaluationCost evaluation = {};
  spec::Speed guessed_speed = {};
  std::string device_kind = "cpu";
  uint32_t lanes = 1;  // that train it together
};

struct Cost {
  absl::Duration device_time;  // lane time, of cores and GPUs together
  absl::Duration wall_time;    // with Capacity's lanes and nothing else queued
  // Largest size stored at once: the permanent data of every run, resume states of those that train
  // at the same time, and the saved training states that are kept.
  uint64_t bytes = 0;
  bool measured = true;          // no part of device_time is a guess
  absl::Duration measured_time;  // the part of device_time that isn't a guess
};

// Returns the lane microseconds per step of a shape, if known. Called once for each distinct shape.
using StepTime = std::function<absl::StatusOr<std::optional<double>>(absl::string_view shape)>;

// Resources for training and for saved states.
struct Capacity {
  // By device kind; 1 if absent. Each takes the next run of its kind in order when it is free.
  std::map<std::string, uint32_t> lanes;
  uint64_t last_states_bytes = 0;  // limit of saved training states
};

absl::StatusOr<Cost> EstimateCost(const std::vector<RunCost>& runs, const StepTime& step_time,
                                  const Capacity& capacity);

// Reads the measured times of a group's analyses. Called once for each entry and group.
using FindTimes = std::function<absl::StatusOr<storage::AnalysisTimes>(absl::string_view group)>;

// Adds `count` new analyses of an entry, which one worker computes after the last run; times by
// analysis::ExpectTime.
absl::Status AddAnalysesCost(size_t count, const spec::EntryCost& entry, const FindTimes& find,
                             Cost* cost);

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
