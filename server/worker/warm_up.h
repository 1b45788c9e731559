// Does the slow one-time initialisation of a lane, which also shows that its device works.
#ifndef ABLATE_SERVER_WORKER_WARM_UP_H_
#define ABLATE_SERVER_WORKER_WARM_UP_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/accelerator.h"
#include "server/engine/config.h"

namespace ablate::worker {

// Returns the trainers that train on a device of this kind.
std::vector<engine::TrainerKind> TrainersOn(engine::Device device);

// Trains a tiny model for a few steps by each trainer, and exports its state. Without accelerator
// it trains on the calling thread's core. An error means that this device can't train.
absl::Status WarmUpTraining(const std::shared_ptr<engine::Accelerator>& accelerator);

// Exports a checkpoint of an untrained tiny model and draws samples from it.
absl::Status WarmUpAnalyses();

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_WARM_UP_H_
