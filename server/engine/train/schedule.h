// Learning rate as a function of the step.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_SCHEDULE_H_
#define ABLATE_SERVER_ENGINE_TRAIN_SCHEDULE_H_

#include <cstdint>

#include "server/engine/config.h"

namespace ablate::engine {

// Rate of update `step` → `step` + 1 of a run of `steps` updates, 0 ≤ step < steps. With w warm-up
// steps, rate·(step+1)/(w+1) below w; from w on, with t = (step − w)/(steps − w): rate (constant),
// rate·(1 − t) (linear) or rate·(1 + cos πt)/2 (cosine).
double LearningRate(const ScheduleConfig& schedule, double rate, uint32_t step, uint32_t steps);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_SCHEDULE_H_
