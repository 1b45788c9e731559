// Content-addressed files: written once under a temporary name, synced, renamed to their SHA-256.
#ifndef ABLATE_STORAGE_BLOBS_H_
#define ABLATE_STORAGE_BLOBS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/disk_room.h"

namespace ablate::storage {

// A folder of blobs. Thread-safe.
class Blobs {
 public:
  // Holds a blob against being swept until it is destroyed.
  class Pin;

  // An upload in progress; its temporary file goes if it is destroyed before Publish. One thread.
  class Writer {
   public:
    virtual ~Writer() = default;
    virtual absl::Status Append(absl::string_view bytes) = 0;
    virtual uint64_t size() const = 0;
    // Syncs the file and its folder, renames it to its hash, and pins it. INVALID_ARGUMENT if
    // `expected` is given and is not the hash; RESOURCE_EXHAUSTED if the disk is full.
    virtual absl::StatusOr<std::shared_ptr<Pin>> Publish(absl::string_view expected) = 0;
  };

  // Creates the folder and removes temporary files that an earlier process left. `room`, of the
  // disk that it is on, outlives this and what it made; it may be null.
  static absl::StatusOr<std::unique_ptr<Blobs>> Open(const std::string& folder,
                                                     DiskRoom* room = nullptr);
  virtual ~Blobs() = default;

  virtual absl::StatusOr<std::unique_ptr<Writer>> Create() = 0;
  // Pins a blob that is already there, and durable. NOT_FOUND.
  virtual absl::StatusOr<std::shared_ptr<Pin>> Find(absl::string_view sha256) = 0;
  // Up to `length` bytes from `offset`. NOT_FOUND; OUT_OF_RANGE if offset is beyond the end.
  virtual absl::StatusOr<std::string> Read(absl::string_view sha256, uint64_t offset,
                                           uint64_t length) = 0;
  virtual absl::StatusOr<uint64_t> Size(absl::string_view sha256) = 0;
  // Removes a blob unless it is pinned; true if it is gone. Called by the store for hashes that no
  // row names.
  virtual absl::StatusOr<bool> Sweep(absl::string_view sha256) = 0;
  // Every blob that is there. For the store, which sweeps those that no row names.
  virtual absl::StatusOr<std::vector<std::string>> List() = 0;
  // Blobs that lost their last pin since this was last called. For the store, too: an upload may
  // have been given up after it was published.
  virtual std::vector<std::string> TakeUnpinned() = 0;
};

class Blobs::Pin {
 public:
  virtual ~Pin() = default;
  virtual const std::string& sha256() const = 0;
  virtual uint64_t size() const = 0;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_BLOBS_H_
