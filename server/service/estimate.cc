// What training some runs will cost, from measured step times of like runs or from their
// arithmetic.
#include "server/service/estimate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

namespace ablate::service {
namespace {

// An eager step on one core: the calls of a small step take some milliseconds whatever they
// compute, large ones run at about this rate.
constexpr double kStepOverheadMicros = 8'000;
constexpr double kFlopsPerMicro = 50e3;

// Resume states that a lane has at once: the newest, and the one that it takes the place of or that
// of the run before.
constexpr uint64_t kResumeStatesALane = 2;

// When the last of `seconds` ends if each free lane takes the next.
double Makespan(const std::vector<double>& seconds, uint32_t lanes) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (uint32_t lane = 0; lane < lanes; ++lane) free_at.push(0);
  double last = 0;
  for (const double each : seconds) {
    const double end = free_at.top() + each;
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
  }
  return last;
}

}  // namespace

absl::StatusOr<Cost> EstimateCost(const std::vector<RunCost>& runs, const StepTime& step_time,
                                  uint32_t lanes) {
  std::map<std::string, std::optional<double>> known;
  Cost cost;
  double total = 0;
  uint64_t largest_state = 0;
  std::vector<double> seconds;
  seconds.reserve(runs.size());
  for (const RunCost& run : runs) {
    auto shape = known.find(run.shape);
    if (shape == known.end()) {
      const absl::StatusOr<std::optional<double>> micros = step_time(run.shape);
      if (!micros.ok()) return micros.status();
      shape = known.emplace(run.shape, *micros).first;
      cost.measured = cost.measured && micros->has_value();
    }
    const double micros =
        shape->second.value_or(kStepOverheadMicros + run.flops_per_step / kFlopsPerMicro);
    seconds.push_back(micros * run.steps / 1e6);
    total += seconds.back();
    cost.bytes += run.bytes;
    largest_state = std::max(largest_state, run.resume_bytes);
  }
  lanes = std::max<uint32_t>(lanes, 1);
  cost.bytes += std::min<uint64_t>(runs.size(), kResumeStatesALane * lanes) * largest_state;
  cost.device_time = absl::Seconds(total);
  cost.wall_time = absl::Seconds(Makespan(seconds, lanes));
  return cost;
}

}  // namespace ablate::service
