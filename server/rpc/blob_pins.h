// Pins blobs that workers wrote until the events that name them are durable.
#ifndef ABLATE_SERVER_RPC_BLOB_PINS_H_
#define ABLATE_SERVER_RPC_BLOB_PINS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "storage/blobs.h"

namespace ablate::rpc {

// Pins of all leases. Thread-safe.
class BlobPins {
 public:
  // Counts bytes of a blob that a lease is writing. RESOURCE_EXHAUSTED, and nothing is counted, if
  // the lease would then have more than `most` bytes that no durable event names.
  absl::Status Begin(const std::string& lease, uint64_t bytes, uint64_t most);
  // Subtracts such bytes: they are pinned now, or the write was abandoned.
  void End(const std::string& lease, uint64_t bytes);
  void Hold(const std::string& lease, std::shared_ptr<storage::Blobs::Pin> pin);
  // Records that event `seq` of the lease names the blob. An acknowledged event names nothing new.
  void Named(const std::string& lease, uint64_t seq, absl::string_view sha256);
  // Returns true if the blob was written under this lease and is pinned.
  bool Holds(const std::string& lease, absl::string_view sha256) const;
  // Unpins the blobs named by events up to `seq`, which are durable.
  void Acknowledged(const std::string& lease, uint64_t seq);
  void DropLease(const std::string& lease);
  // Returns the leases with pinned blobs.
  std::vector<std::string> Leases() const;

 private:
  struct Held {
    std::shared_ptr<storage::Blobs::Pin> pin;
    uint64_t seq = 0;  // event that names it; 0 until one does
  };

  // Returns the bytes pinned or being written.
  uint64_t BytesOf(const std::string& lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, uint64_t> writing_ ABSL_GUARDED_BY(mutex_);  // bytes by lease
  // Newest acknowledged event of each lease with pinned blobs.
  std::map<std::string, uint64_t> acknowledged_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<Held>> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_BLOB_PINS_H_
