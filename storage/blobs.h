// Stores content-addressed files: written once under a temporary name, synced, renamed to their
// SHA-256.
#ifndef ABLATE_STORAGE_BLOBS_H_
#define ABLATE_STORAGE_BLOBS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/sha256.h"
#include "storage/disk_room.h"
#include "storage/partial_uploads.h"

namespace ablate::storage {

struct BlobsOptions {
  // Returns the wall-clock time in microseconds, for the age of trash. Default: the system's clock.
  std::function<int64_t()> now;
  // Called with a message when trash is removed to make room on a full disk.
  std::function<void(const std::string&)> log;
  // Room of the folder's disk; must outlive the blobs and all objects they made. May be null.
  DiskRoom* room = nullptr;
};

// Result of sweeping a blob.
enum class Swept {
  kHeld,     // pinned: it stays
  kAbsent,   // there was none
  kTrashed,  // moved to the trash
  kRemoved,  // removed for good
};

// A folder of blobs. Thread-safe.
//
// Sweep moves a blob to the folder `trash` inside, until EmptyTrash removes it; Find, Read and Size
// take it back from there. If the disk is full, trash and then partial uploads are removed, oldest
// first, before a write fails.
class Blobs {
 public:
  // Returns true if nobody waits for the work any more.
  using Cancelled = std::function<bool()>;
  // Bytes of trash that a full disk removes before a write is retried.
  static constexpr uint64_t kFreedAtOnce = 64 << 20;
  // Keeps a blob from being swept until it is destroyed.
  class Pin {
   public:
    // `release` is called on destruction.
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
  // An upload in progress. If it is destroyed before Publish, its file is removed, or kept for
  // Continue if Continue made it. For one thread.
  class Writer {
   public:
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    // ABORTED if another upload has taken over the file of Continue.
    absl::Status Append(absl::string_view bytes);
    uint64_t size() const { return size_; }
    // Syncs the file and its folder, renames it to its hash, and pins it. Errors as Finish;
    // RESOURCE_EXHAUSTED if the disk is full.
    absl::StatusOr<std::shared_ptr<Pin>> Publish(absl::string_view expected);
    // Ends an upload that isn't published. INVALID_ARGUMENT if `expected` is given and is not the
    // hash of the bytes, DATA_LOSS if an earlier upload sent a part of them; the file is then
    // removed with the writer.
    absl::Status Finish(absl::string_view expected);
    // Reads up to `length` bytes from `offset`. ABORTED as Append.
    absl::StatusOr<std::string> Read(uint64_t offset, uint64_t length);
    // Removes the file with the writer, also one that Continue made.
    void Discard() { discard_ = true; }

   private:
    friend class Blobs;
    Writer(std::shared_ptr<Shelf> shelf, process::FileDescriptor file, std::string path,
           std::unique_ptr<PartialUploads::Hold> partial);
    absl::Status Write(absl::string_view bytes);
    // Runs work that uses the file.
    absl::Status Use(absl::FunctionRef<absl::Status()> work);

    const std::shared_ptr<Shelf> shelf_;
    process::FileDescriptor file_;
    const std::string path_;
    const std::unique_ptr<PartialUploads::Hold> partial_;  // null: a temporary file
    Sha256 hash_;
    std::string sha256_;  // once it is finished
    uint64_t size_ = 0;
    bool continues_ = false;  // an earlier upload sent a part
    bool published_ = false;
    bool discard_ = false;
    absl::Status broken_;
  };

  // Creates the folder and removes temporary files that an earlier process left.
  static absl::StatusOr<std::unique_ptr<Blobs>> Open(const std::string& folder,
                                                     BlobsOptions options = {});
  // Returns the number of blobs, without the trash, in a folder that nobody has opened.
  static absl::StatusOr<size_t> Count(const std::string& folder);

  // Returns the folder. A blob in it is the file of its hash, and only the owner may read it.
  const std::string& folder() const;
  absl::StatusOr<std::unique_ptr<Writer>> Create();
  // Begins an upload with offset 0, or continues one of the user's that broke after `offset` bytes.
  // Reads the kept bytes, and removes them if they can't be read. Errors as PartialUploads::Take;
  // CANCELLED once `cancelled`, which is called between pieces, returns true.
  absl::StatusOr<std::unique_ptr<Writer>> Continue(absl::string_view user, absl::string_view sha256,
                                                   uint64_t offset, const Cancelled& cancelled);
  PartialUploads& partials();
  // Pins an existing blob and makes it durable. NOT_FOUND.
  absl::StatusOr<std::shared_ptr<Pin>> Find(absl::string_view sha256);
  // Reads up to `length` bytes from `offset`. NOT_FOUND; OUT_OF_RANGE if offset is beyond the end.
  absl::StatusOr<std::string> Read(absl::string_view sha256, uint64_t offset, uint64_t length);
  absl::StatusOr<uint64_t> Size(absl::string_view sha256);
  // Removes a blob unless it is pinned: into the trash, or for good if `keep` is false or the disk
  // has no room for the trash. The store calls it for hashes that no row names.
  absl::StatusOr<Swept> Sweep(absl::string_view sha256, bool keep);
  // Returns the hash of every blob that isn't pinned. The store sweeps those that no row names.
  absl::StatusOr<std::vector<std::string>> List();
  // Removes for good the blobs that were swept before that time; returns their number.
  absl::StatusOr<size_t> EmptyTrash(int64_t before);
  // Makes room on a full disk: removes trash and then partial uploads, oldest first, until `bytes`
  // are freed or none is left. Returns the number of freed bytes.
  uint64_t FreeTrash(uint64_t bytes);
  // Returns the total size of the trash in bytes.
  uint64_t TrashBytes();
  absl::StatusOr<std::vector<std::string>> ListTrash();
  // Returns the blobs that lost their last pin since the last call. The store checks them, because
  // an upload may have been abandoned after it was published.
  std::vector<std::string> TakeUnpinned();

 private:
  explicit Blobs(std::shared_ptr<Shelf> shelf) : shelf_(std::move(shelf)) {}

  const std::shared_ptr<Shelf> shelf_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_BLOBS_H_
