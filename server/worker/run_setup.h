// Prepares a granted run: loads shared data sets, configuration and resume state, and creates the
// trainer.
#ifndef ABLATE_SERVER_WORKER_RUN_SETUP_H_
#define ABLATE_SERVER_WORKER_RUN_SETUP_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/engine/task.h"
#include "server/engine/trainer.h"
#include "server/worker/blob_channel.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

// Creates trainers: engine::MakeTrainer, or a test's function.
using TrainerFactory =
    std::function<absl::StatusOr<std::unique_ptr<engine::Trainer>>(const engine::RunConfig&)>;

// A blob, and the ID of the lease or analysis that grants read access.
struct GrantedBlob {
  std::string grant;
  std::string sha256;
};

// Caches data sets as parsed by their tasks, so that runs of a grid share them. Keeps the most
// recently used, at least one, up to `capacity_bytes` of memory. A data set parsed by two kinds of
// task is kept twice. Thread-safe; lanes that miss at the same time all fetch, and share the first
// result.
class DataSets {
 public:
  DataSets(BlobChannel* blobs, uint64_t capacity_bytes)
      : blobs_(blobs), capacity_bytes_(capacity_bytes) {}

  // Returns a data set. Blocks while fetching, as BlobChannel::Read. Returns INVALID_ARGUMENT if
  // the blob isn't a data set for this kind of task, which must be one that reads a data set.
  absl::StatusOr<std::shared_ptr<const engine::TaskData>> Get(const GrantedBlob& blob,
                                                              const engine::TaskKind& task,
                                                              RunControl& control);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const engine::TaskData> data;
  };

  std::shared_ptr<const engine::TaskData> Find(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stores an entry and returns the data kept under its key: another lane's, if it was faster.
  std::shared_ptr<const engine::TaskData> Keep(Entry entry);

  BlobChannel* const blobs_;
  const uint64_t capacity_bytes_;
  Mutex mutex_;
  std::list<Entry> recent_ ABSL_GUARDED_BY(mutex_);  // newest first
};

// Returns a run's engine configuration, including its data set if the task has one. Blocks while
// that is fetched.
absl::StatusOr<engine::RunConfig> ReadConfig(ablate::v1::RunSpec run, const GrantedBlob& data_set,
                                             DataSets* data_sets, RunControl& control);

// Creates trainers for grants. Thread-safe.
class RunSetup {
 public:
  RunSetup(TrainerFactory make_trainer, BlobChannel* blobs);

  // Returns the run's configuration, as ReadConfig.
  absl::StatusOr<engine::RunConfig> Read(const v1::Grant& grant, RunControl& control);
  // Creates its trainer, with the state `resume` if it isn't empty; otherwise with that of the
  // grant, which is fetched, if any. Returns UNAVAILABLE if the device is lost, and ABORTED if the
  // resume state is damaged or belongs to another run; the server then decides where the run
  // begins.
  absl::StatusOr<std::unique_ptr<engine::Trainer>> Make(const engine::RunConfig& config,
                                                        const v1::Grant& grant,
                                                        const std::string& resume,
                                                        RunControl& control);

 private:
  // Replaces the initial parameters by those that the grant names, if any.
  absl::Status StartFrom(const v1::Grant& grant, engine::Trainer* trainer, RunControl& control);

  const TrainerFactory make_trainer_;
  BlobChannel* const blobs_;
  DataSets data_sets_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_RUN_SETUP_H_
