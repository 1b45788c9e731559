// Data sets as their tasks have read them: runs of one grid share theirs.
#ifndef ABLATE_SERVER_WORKER_DATA_SETS_H_
#define ABLATE_SERVER_WORKER_DATA_SETS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/task.h"
#include "server/worker/blob_channel.h"
#include "server/worker/run_control.h"
#include "sync/mutex.h"

namespace ablate::worker {

// A blob that a lease, or an analysis by its id, gives the right to read.
struct RightfulBlob {
  std::string right;
  std::string sha256;
};

// Keeps the most recently used data sets, at least one, up to `capacity_bytes` of memory. One that
// two kinds of task read is kept as each has read it. Thread-safe; lanes that miss at the same time
// each fetch, and share what the first of them has read.
class DataSets {
 public:
  DataSets(BlobChannel* blobs, uint64_t capacity_bytes)
      : blobs_(blobs), capacity_bytes_(capacity_bytes) {}

  // Blocks while it fetches, with the right to do so, as BlobChannel::Read does. INVALID_ARGUMENT
  // if the blob is no data set of this kind of task, which must be one that reads any.
  absl::StatusOr<std::shared_ptr<const engine::TaskData>> Get(const RightfulBlob& blob,
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

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_DATA_SETS_H_
