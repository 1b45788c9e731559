// Blobs that workers wrote, held until the events that name them are durable.
#ifndef ABLATE_SERVER_SERVICE_BLOB_PINS_H_
#define ABLATE_SERVER_SERVICE_BLOB_PINS_H_

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

namespace ablate::service {

// Thread-safe.
class BlobPins {
 public:
  // Counts bytes of a blob that a lease writes, before it is held. RESOURCE_EXHAUSTED if the lease
  // would then have more than `most` that no durable event names; they are not counted.
  absl::Status Begin(const std::string& lease, uint64_t bytes, uint64_t most);
  // So many of those are held now, or given up.
  void End(const std::string& lease, uint64_t bytes);
  void Hold(const std::string& lease, std::shared_ptr<storage::Blobs::Pin> pin);
  // Event `seq` of the lease names the blob. One that was acknowledged names nothing new.
  void Named(const std::string& lease, uint64_t seq, absl::string_view sha256);
  // Whether it was written under this lease, and is held.
  bool Holds(const std::string& lease, absl::string_view sha256) const;
  // Events up to `seq` are durable: what they named is let go.
  void Acknowledged(const std::string& lease, uint64_t seq);
  void DropLease(const std::string& lease);
  // With something held.
  std::vector<std::string> Leases() const;

 private:
  struct Held {
    std::shared_ptr<storage::Blobs::Pin> pin;
    uint64_t seq = 0;  // of the event that names it; 0 until one does
  };

  // That are held or being written.
  uint64_t BytesOf(const std::string& lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, uint64_t> writing_ ABSL_GUARDED_BY(mutex_);  // bytes, by lease
  // The newest event of each lease with something held.
  std::map<std::string, uint64_t> acknowledged_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<Held>> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_BLOB_PINS_H_
