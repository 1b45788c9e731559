// Watches the free room of the store's disk, and reserves some for deletes.
#ifndef ABLATE_STORAGE_DISK_ROOM_H_
#define ABLATE_STORAGE_DISK_ROOM_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace ablate::storage {

// Returns true if an errno means that the disk or the user's quota on it is full.
bool IsFull(int error);
// Returns the error for a failed call from errno: "cannot WHAT PATH"; RESOURCE_EXHAUSTED if the
// disk is full.
absl::Status FileError(absl::string_view what, const std::string& path);
// Reserves disk room for deletes, which need some for the log before they free any. A file of real
// blocks, the ballast, lies in the folder. It is removed when a delete finds the disk full, and
// made again once there is room. Until then nothing new is stored; otherwise frequent writers would
// take that room before the deletes. Thread-safe.
class DiskRoom {
 public:
  using FreeBytes = std::function<absl::StatusOr<uint64_t>()>;

  // `ballast` is its size in bytes; 0: none. `folder` must be used by this process only.
  // `free_bytes` returns the free bytes of its disk; null: the file system is asked.
  DiskRoom(std::string folder, uint64_t ballast, FreeBytes free_bytes = nullptr);

  enum class Kind { kRows, kBlobs };
  // Returns RESOURCE_EXHAUSTED while the remaining room is reserved for deletes.
  absl::Status MayStore() const;
  // Records the result of storing something. Only OK and RESOURCE_EXHAUSTED affect the state.
  void Stored(Kind kind, const absl::Status& status);
  // Returns true if the disk was full at the last attempt to store something.
  bool full() const;

  // Removes the ballast. Returns false if there was none.
  bool Release();
  // Makes the ballast, or makes it again, if that leaves room for other things; otherwise
  // RESOURCE_EXHAUSTED.
  absl::Status Keep();
  // Runs `work`. If it finds the disk full, runs it once more, because other processes free room,
  // too, and then again without the ballast.
  absl::Status Try(const std::function<absl::Status()>& work);

  // Returns the bytes that may be stored: free bytes without the ballast, also while the ballast is
  // missing.
  absl::StatusOr<uint64_t> Free() const;
  const std::string& folder() const { return folder_; }

 private:
  std::string File() const;

  const std::string folder_;
  const uint64_t ballast_;
  const FreeBytes available_;
  mutable Mutex mutex_;
  bool kept_ ABSL_GUARDED_BY(mutex_) = false;
  bool impossible_ ABSL_GUARDED_BY(mutex_) = false;  // for a reason other than a full disk
  bool rows_full_ ABSL_GUARDED_BY(mutex_) = false;
  // A blob needs much more room than rows, and its sender retries every few seconds.
  std::chrono::steady_clock::time_point blobs_full_until_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_DISK_ROOM_H_
