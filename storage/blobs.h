// Content-addressed files: written once under a temporary name, synced, renamed to their SHA-256.
#ifndef ABLATE_STORAGE_BLOBS_H_
#define ABLATE_STORAGE_BLOBS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/sha256.h"
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
  class Pin {
   public:
    // `release` is called at the end.
    Pin(std::string sha256, uint64_t size, std::function<void()> release)
        : sha256_(std::move(sha256)), size_(size), release_(std::move(release)) {}
    ~Pin() { release_(); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    const std::string& sha256() const { return sha256_; }
    uint64_t size() const { return size_; }

   private:
    const std::string sha256_;
    const uint64_t size_;
    const std::function<void()> release_;
  };

 private:
  struct Shelf;

 public:
  // An upload in progress; its temporary file goes if it is destroyed before Publish. One thread.
  class Writer {
   public:
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    absl::Status Append(absl::string_view bytes);
    uint64_t size() const { return size_; }
    // Syncs the file and its folder, renames it to its hash, and pins it. INVALID_ARGUMENT if
    // `expected` is given and is not the hash; RESOURCE_EXHAUSTED if the disk is full.
    absl::StatusOr<std::shared_ptr<Pin>> Publish(absl::string_view expected);

   private:
    friend class Blobs;
    Writer(std::shared_ptr<Shelf> shelf, int descriptor, std::string path);

    const std::shared_ptr<Shelf> shelf_;
    process::FileDescriptor file_;
    const std::string path_;
    Sha256 hash_;
    uint64_t size_ = 0;
    bool published_ = false;
    absl::Status broken_;
  };

  // Creates the folder and removes temporary files that an earlier process left.
  static absl::StatusOr<std::unique_ptr<Blobs>> Open(const std::string& folder,
                                                     BlobsOptions options = {});
  // How many blobs are in a folder that nobody has opened; the trash does not count.
  static absl::StatusOr<size_t> Count(const std::string& folder);

  absl::StatusOr<std::unique_ptr<Writer>> Create();
  // Pins a blob that is already there, and durable. NOT_FOUND.
  absl::StatusOr<std::shared_ptr<Pin>> Find(absl::string_view sha256);
  // Up to `length` bytes from `offset`. NOT_FOUND; OUT_OF_RANGE if offset is beyond the end.
  absl::StatusOr<std::string> Read(absl::string_view sha256, uint64_t offset, uint64_t length);
  absl::StatusOr<uint64_t> Size(absl::string_view sha256);
  // Takes a blob away unless it is pinned: into the trash, or for good if it is not worth keeping
  // or the disk has no room for that. Called by the store for hashes that no row names.
  absl::StatusOr<Swept> Sweep(absl::string_view sha256, bool keep);
  // Every blob that nobody has pinned. For the store, which sweeps those that no row names.
  absl::StatusOr<std::vector<std::string>> List();
  // Removes for good what was swept before then; how many blobs.
  absl::StatusOr<size_t> EmptyTrash(int64_t before);
  // Makes room on a full disk: removes what was swept, oldest first, until `bytes` are free or
  // nothing is left. The bytes that were freed.
  uint64_t FreeTrash(uint64_t bytes);
  // Bytes in the trash, and the blobs that are there.
  uint64_t TrashBytes();
  absl::StatusOr<std::vector<std::string>> ListTrash();
  // Blobs that lost their last pin since this was last called. For the store, too: an upload may
  // have been given up after it was published.
  std::vector<std::string> TakeUnpinned();

 private:
  explicit Blobs(std::shared_ptr<Shelf> shelf) : shelf_(std::move(shelf)) {}

  const std::shared_ptr<Shelf> shelf_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_BLOBS_H_
