#include "server/submit/cost.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "base/status_macros.h"
#include "server/analysis/times.h"

namespace ablate::submit {
namespace {

// Returns the number of evaluations: before the first step, every so many steps, and at the end.
double EvaluationsOf(const RunCost& run) {
  const uint32_t every = std::max<uint32_t>(run.every, 1);
  return 1 + std::ceil(static_cast<double>(run.steps) / every);
}

// Returns a guess for a run whose shape was not measured, in microseconds.
double GuessedTime(const RunCost& run) {
  const auto& [pass, flops, passes] = run.guessed_speed;
  const double step = passes * pass + run.flops_per_step / flops;
  const double evaluation = pass * run.evaluation.passes + run.evaluation.flops / flops;
  return run.steps * step + EvaluationsOf(run) * evaluation;
}

// Resume states of a lane at once: the newest, and the one that it replaces or that of the previous
// run.
constexpr uint64_t kResumeStatesALane = 2;

// Returns when the last of `seconds` ends if each free lane takes the next.
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
                                  const Capacity& capacity) {
  std::map<std::string, std::optional<double>> known;
  Cost cost;
  double total = 0, measured = 0;
  uint64_t largest_state = 0;
  uint64_t kept = 0;
  std::map<std::string, std::vector<double>> seconds;  // by device kind
  for (const RunCost& run : runs) {
    auto shape = known.find(run.shape);
    if (shape == known.end()) {
      ASSIGN_OR_RETURN(const std::optional<double> micros, step_time(run.shape));
      shape = known.emplace(run.shape, micros).first;
      cost.measured = cost.measured && micros.has_value();
    }
    const double micros = shape->second.has_value() ? *shape->second * run.steps : GuessedTime(run);
    // A run of several lanes takes as long as one a lane that share its work.
    seconds[run.device_kind].insert(seconds[run.device_kind].end(), run.lanes,
                                    micros / 1e6 / run.lanes);
    total += micros / 1e6;
    if (shape->second.has_value()) measured += micros / 1e6;
    cost.bytes += run.bytes;
    largest_state = std::max(largest_state, run.resume_bytes);
    if (run.grows) kept = std::min(kept + run.resume_bytes, capacity.last_states_bytes);
  }
  uint64_t states = 0;
  double last = 0;
  for (const auto& [kind, of_kind] : seconds) {
    const auto known_lanes = capacity.lanes.find(kind);
    const uint32_t lanes =
        known_lanes == capacity.lanes.end() ? 1 : std::max<uint32_t>(known_lanes->second, 1);
    states += std::min<uint64_t>(of_kind.size(), kResumeStatesALane * lanes);
    last = std::max(last, Makespan(of_kind, lanes));
  }
  cost.bytes += kept + states * largest_state;
  cost.device_time = absl::Seconds(total);
  cost.measured_time = absl::Seconds(measured);
  cost.wall_time = absl::Seconds(last);
  return cost;
}

absl::Status AddAnalysesCost(size_t count, const spec::EntryCost& entry, const FindTimes& find,
                             Cost* cost) {
  if (count == 0) return absl::OkStatus();
  cost->bytes += count * entry.array_bytes;
  for (const auto& [group, guess] : entry.times) {
    ASSIGN_OR_RETURN(const storage::AnalysisTimes made, find(group));
    const analysis::ExpectedTime expected = analysis::ExpectTime(guess, made);
    const absl::Duration time = absl::Microseconds(static_cast<double>(count) * expected.micros);
    cost->device_time += time;
    cost->wall_time += time;
    cost->measured = cost->measured && expected.measured;
    if (expected.measured) cost->measured_time += time;
  }
  return absl::OkStatus();
}

}  // namespace ablate::submit
