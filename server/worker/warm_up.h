// Work before there is work: what a process does slowly once is done before its first grant.
#ifndef ABLATE_SERVER_WORKER_WARM_UP_H_
#define ABLATE_SERVER_WORKER_WARM_UP_H_

#include "absl/status/status.h"
#include "server/worker/analyst.h"
#include "server/worker/run_setup.h"

namespace ablate::worker {

// Trains a tiny model for a few steps on the calling thread, and takes its state. An error says
// that this device can't train.
absl::Status WarmUp(const TrainerFactory& make_trainer);

// The same for analyses: takes a checkpoint of the untrained tiny model and draws samples from it.
absl::Status WarmUpAnalyses(const TrainerFactory& make_trainer, const SampleGenerator& generate);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_WARM_UP_H_
