// From a granted run to a trainer that is ready to advance: data, configuration, resume state.
#ifndef ABLATE_SERVER_WORKER_RUN_SETUP_H_
#define ABLATE_SERVER_WORKER_RUN_SETUP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/statusor.h"
#include "server/engine/trainer.h"
#include "server/worker/blob_channel.h"
#include "server/worker/data_sets.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

// How trainers are made: engine::MakeTorchTrainer, or a test's.
using TrainerFactory = std::function<absl::StatusOr<std::unique_ptr<engine::Trainer>>(
    const std::vector<engine::RunConfig>&)>;

// A run as the engine knows it, with the data set (if its task has one) in it. Blocks while that is
// fetched.
absl::StatusOr<engine::RunConfig> ReadConfig(const ablate::v1::RunSpec& run,
                                             const RightfulBlob& data_set, DataSets* data_sets,
                                             RunControl& control);

// Thread-safe.
class RunSetup {
 public:
  RunSetup(TrainerFactory make_trainer, BlobChannel* blobs);

  // Blocks while data set and resume state are fetched. UNAVAILABLE: the device is lost. ABORTED:
  // the resume state is damaged or another's; the server decides where the run begins instead.
  absl::StatusOr<std::unique_ptr<engine::Trainer>> Make(const std::string& lease,
                                                        const v1::GrantedRun& run,
                                                        RunControl& control);

 private:
  const TrainerFactory make_trainer_;
  BlobChannel* const blobs_;
  DataSets data_sets_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_RUN_SETUP_H_
