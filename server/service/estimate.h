// What training some runs will cost, from measured step times of like runs or from their
// arithmetic.
#ifndef ABLATE_SERVER_SERVICE_ESTIMATE_H_
#define ABLATE_SERVER_SERVICE_ESTIMATE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

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

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_ESTIMATE_H_
