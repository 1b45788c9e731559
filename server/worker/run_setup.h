// From a granted run to a trainer that is ready to advance: the data sets that runs share,
// configuration, resume state.
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

// How trainers are made: engine::MakeTrainer, or a test's.
using TrainerFactory =
    std::function<absl::StatusOr<std::unique_ptr<engine::Trainer>>(const engine::RunConfig&)>;

// A blob, and the id of the lease or analysis that gives the right to read it.
struct GrantedBlob {
  std::string grant;
  std::string sha256;
};

// Data sets as their tasks have read them: runs of one grid share theirs. Keeps the most recently
// used, at least one, up to `capacity_bytes` of memory. One that two kinds of task read is kept as
// each has read it. Thread-safe; lanes that miss at the same time each fetch, and share what the
// first of them has read.
class DataSets {
 public:
  DataSets(BlobChannel* blobs, uint64_t capacity_bytes)
      : blobs_(blobs), capacity_bytes_(capacity_bytes) {}

  // Blocks while it fetches, with the right to do so, as BlobChannel::Read does. INVALID_ARGUMENT
  // if the blob is no data set of this kind of task, which must be one that reads any.
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
  // What is kept under the key from now on: another lane's, if that was faster.
  std::shared_ptr<const engine::TaskData> Keep(Entry entry);

  BlobChannel* const blobs_;
  const uint64_t capacity_bytes_;
  Mutex mutex_;
  std::list<Entry> recent_ ABSL_GUARDED_BY(mutex_);  // newest first
};

// A run as the engine knows it, with the data set (if its task has one) in it. Blocks while that is
// fetched.
absl::StatusOr<engine::RunConfig> ReadConfig(ablate::v1::RunSpec run, const GrantedBlob& data_set,
                                             DataSets* data_sets, RunControl& control);

// Thread-safe.
class RunSetup {
 public:
  RunSetup(TrainerFactory make_trainer, BlobChannel* blobs);

  // Blocks while data set and resume state are fetched. UNAVAILABLE: the device is lost. ABORTED:
  // the resume state is damaged or another's; the server decides where the run begins instead.
  absl::StatusOr<std::unique_ptr<engine::Trainer>> Make(const v1::Grant& grant,
                                                        RunControl& control);

 private:
  const TrainerFactory make_trainer_;
  BlobChannel* const blobs_;
  DataSets data_sets_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_RUN_SETUP_H_
