// Estimates what runs and analyses cost: time on lanes, time until they end, and storage.
#ifndef ABLATE_SERVER_SUBMIT_COST_H_
#define ABLATE_SERVER_SUBMIT_COST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/config/estimate.h"
#include "server/experiment/experiment_analyses.h"
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

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_COST_H_
