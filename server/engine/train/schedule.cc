// The schedules' formulas.
#include "server/engine/train/schedule.h"

#include <cmath>

namespace ablate::engine {

double LearningRate(const ScheduleConfig& schedule, double rate, uint32_t step, uint32_t steps) {
  if (step < schedule.warmup) return rate * (step + 1.0) / (schedule.warmup + 1.0);
  const double t = static_cast<double>(step - schedule.warmup) / (steps - schedule.warmup);
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return rate;
    case ScheduleKind::kLinear:
      return rate * (1 - t);
    case ScheduleKind::kCosine:
      return rate * 0.5 * (1 + std::cos(M_PI * t));
  }
  return rate;
}

}  // namespace ablate::engine
