// The room on the disk that a store is on: whether there is any, and some that is kept for deletes.
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

// Whether an errno says that the disk, or the user's share of it, is full.
bool IsFull(int error);
// What errno says of a call that failed: "cannot WHAT PATH", RESOURCE_EXHAUSTED if the disk is
// full.
absl::Status FileError(absl::string_view what, const std::string& path);
// Deleting needs room too: for the log of what is deleted, before any file goes. So a file of real
// blocks, the ballast, lies in the folder; it is given up when a delete finds the disk full, and
// taken again once there is room for it. Until then nothing new is stored, or what writes all the
// time would have that room before the deletes. Thread-safe.
class DiskRoom {
 public:
  using FreeBytes = std::function<absl::StatusOr<uint64_t>()>;

  // `ballast` is its size in bytes; 0: there is none. `folder` is this process's alone.
  // `free_bytes` says what its disk has left; null: the file system is asked.
  DiskRoom(std::string folder, uint64_t ballast, FreeBytes free_bytes = nullptr);

  enum class Kind { kRows, kBlobs };
  // RESOURCE_EXHAUSTED while what is left is for deletes.
  absl::Status MayStore() const;
  // What became of storing something; anything but OK and RESOURCE_EXHAUSTED says nothing of room.
  void Stored(Kind kind, const absl::Status& status);
  // Whether the disk was full when something was last to be stored.
  bool full() const;

  // Gives the ballast up. False if there was none to give up.
  bool Release();
  // Takes it, or takes it again, if room for other things is left beside it. RESOURCE_EXHAUSTED if
  // not.
  absl::Status Keep();
  // `work`, once more if it found the disk full, for others make room as well, and then without the
  // ballast.
  absl::Status Try(const std::function<absl::Status()>& work);

  // Bytes that may be stored: without the ballast, also where it is yet to be taken again.
  absl::StatusOr<uint64_t> Free() const;
  const std::string& folder() const { return folder_; }

 private:
  std::string File() const;

  const std::string folder_;
  const uint64_t ballast_;
  const FreeBytes available_;
  mutable Mutex mutex_;
  bool kept_ ABSL_GUARDED_BY(mutex_) = false;
  bool impossible_ ABSL_GUARDED_BY(mutex_) = false;  // for another reason than a full disk
  bool rows_full_ ABSL_GUARDED_BY(mutex_) = false;
  // A blob needs much more room than rows, and whoever has it tries again every few seconds.
  std::chrono::steady_clock::time_point blobs_full_until_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_DISK_ROOM_H_
