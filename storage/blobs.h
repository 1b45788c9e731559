// Content-addressed files: written once under a temporary name, synced, renamed to their SHA-256.
#ifndef ABLATE_STORAGE_BLOBS_H_
#define ABLATE_STORAGE_BLOBS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/disk_room.h"

namespace ablate::storage {

struct BlobsOptions {
  // Wall clock in microseconds, by which the trash knows its age. Default: the system's.
  std::function<int64_t()> now;
  // Told when the trash makes room on a full disk.
  std::function<void(const std::string&)> log;
  // Of the disk that the folder is on; outlives the blobs and what they made. May be null.
  DiskRoom* room = nullptr;
};

// What became of a blob that was to be swept.
enum class Swept {
  kHeld,     // somebody has it pinned: it stays
  kAbsent,   // there was none
  kTrashed,  // in the trash
  kRemoved,  // gone for good
};

// A folder of blobs. Thread-safe.
//
// What is swept goes into a trash beside the others, in the folder `trash`, until EmptyTrash
// removes it; whoever asks for it before then (Find, Read, Size) gets it back. A full disk makes
// room by itself: the trash goes, oldest first, before a write fails.
class Blobs {
 public:
  // What a full disk takes of the trash, in bytes, before another try.
  static constexpr uint64_t kFreedAtOnce = 64 << 20;
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

  // Creates the folder and removes temporary files that an earlier process left.
  static absl::StatusOr<std::unique_ptr<Blobs>> Open(const std::string& folder,
                                                     BlobsOptions options = {});
  // How many blobs are in a folder that nobody has opened; the trash does not count.
  static absl::StatusOr<size_t> Count(const std::string& folder);
  virtual ~Blobs() = default;

  virtual absl::StatusOr<std::unique_ptr<Writer>> Create() = 0;
  // Pins a blob that is already there, and durable. NOT_FOUND.
  virtual absl::StatusOr<std::shared_ptr<Pin>> Find(absl::string_view sha256) = 0;
  // Up to `length` bytes from `offset`. NOT_FOUND; OUT_OF_RANGE if offset is beyond the end.
  virtual absl::StatusOr<std::string> Read(absl::string_view sha256, uint64_t offset,
                                           uint64_t length) = 0;
  virtual absl::StatusOr<uint64_t> Size(absl::string_view sha256) = 0;
  // Takes a blob away unless it is pinned: into the trash, or for good if it is not worth keeping
  // or the disk has no room for that. Called by the store for hashes that no row names.
  virtual absl::StatusOr<Swept> Sweep(absl::string_view sha256, bool keep) = 0;
  // Every blob that nobody has pinned. For the store, which sweeps those that no row names.
  virtual absl::StatusOr<std::vector<std::string>> List() = 0;
  // Removes for good what was swept before then; how many blobs.
  virtual absl::StatusOr<size_t> EmptyTrash(int64_t before) = 0;
  // Makes room on a full disk: removes what was swept, oldest first, until `bytes` are free or
  // nothing is left. The bytes that were freed.
  virtual uint64_t FreeTrash(uint64_t bytes) = 0;
  // Bytes in the trash, and the blobs that are there.
  virtual uint64_t TrashBytes() = 0;
  virtual absl::StatusOr<std::vector<std::string>> ListTrash() = 0;
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
