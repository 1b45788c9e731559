// Data sets in memory: runs of one grid share theirs.
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

// A text of documents and what the model must know of it.
struct DataSet {
  std::string sha256;
  std::string text;
  engine::TaskShape shape;
};

// Keeps the most recently used data sets, at least one, up to `capacity_bytes` of text.
// Thread-safe; lanes that miss at the same time each fetch.
class DataSets {
 public:
  DataSets(BlobChannel* blobs, uint64_t capacity_bytes)
      : blobs_(blobs), capacity_bytes_(capacity_bytes) {}

  // Blocks while it fetches, with the right to do so, as BlobChannel::Read does. INVALID_ARGUMENT
  // if the blob is not a text of documents.
  absl::StatusOr<std::shared_ptr<const DataSet>> Get(const std::string& right,
                                                     const std::string& sha256,
                                                     RunControl& control);

 private:
  std::shared_ptr<const DataSet> Find(const std::string& sha256);
  void Keep(std::shared_ptr<const DataSet> data_set);

  BlobChannel* const blobs_;
  const uint64_t capacity_bytes_;
  Mutex mutex_;
  std::list<std::shared_ptr<const DataSet>> recent_ ABSL_GUARDED_BY(mutex_);  // newest first
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_DATA_SETS_H_
