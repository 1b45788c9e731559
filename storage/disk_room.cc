#include "storage/disk_room.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/private_file.h"
#include "base/status_macros.h"

namespace ablate::storage {
namespace {

constexpr std::chrono::minutes kBlobMemory(1);

// Returns true if the file's blocks hold that many bytes; not so if a crash cut it short or it was
// copied as a hole.
bool HasBlocks(const std::string& file, uint64_t bytes) {
  struct stat found;
  return stat(file.c_str(), &found) == 0 && static_cast<uint64_t>(found.st_size) >= bytes &&
         static_cast<uint64_t>(found.st_blocks) * 512 >= bytes;
}

// Allocates all of it or nothing; returns errno's number.
int Allocate(const std::string& file, uint64_t bytes) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  close(descriptor);
  if (error != 0) unlink(file.c_str());
  return error;
}

absl::StatusOr<uint64_t> AskFileSystem(const std::string& folder) {
  struct statvfs found;
  if (statvfs(folder.c_str(), &found) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at the disk of ", folder));
  }
  return uint64_t{found.f_bavail} * found.f_frsize;
}

}  // namespace

bool IsFull(int error) { return error == ENOSPC || error == EDQUOT; }

absl::Status FileError(absl::string_view what, const std::string& path) {
  const int error = errno;
  const std::string message = absl::StrCat("cannot ", what, " ", path);
  if (IsFull(error)) {
    return absl::ResourceExhaustedError(absl::StrCat("the disk is full: ", message));
  }
  return absl::ErrnoToStatus(error, message);
}

DiskRoom::DiskRoom(std::string folder, uint64_t ballast, FreeBytes free_bytes)
    : folder_(std::move(folder)),
      ballast_(ballast),
      available_(free_bytes ? std::move(free_bytes) : [this] { return AskFileSystem(folder_); }) {
  MutexLock lock(&mutex_);
  kept_ = ballast_ > 0 && HasBlocks(File(), ballast_);
}

std::string DiskRoom::File() const { return absl::StrCat(folder_, "/ballast"); }

absl::Status DiskRoom::MayStore() const {
  MutexLock lock(&mutex_);
  if (ballast_ == 0 || kept_ || impossible_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the disk is full: the free space of ", folder_,
                   " is reserved for deletes. Remove experiments (`ablate rm`), or free space"));
}

void DiskRoom::Stored(Kind kind, const absl::Status& status) {
  if (!status.ok() && !absl::IsResourceExhausted(status)) return;
  const auto now = std::chrono::steady_clock::now();
  MutexLock lock(&mutex_);
  if (kind == Kind::kRows) {
    rows_full_ = !status.ok();
  } else {
    blobs_full_until_ = status.ok() ? now : now + kBlobMemory;
  }
}

bool DiskRoom::full() const {
  MutexLock lock(&mutex_);
  return rows_full_ || std::chrono::steady_clock::now() < blobs_full_until_;
}

bool DiskRoom::Release() {
  MutexLock lock(&mutex_);
  // A ballast that somebody removed by hand counts as removed.
  if (!kept_ || (unlink(File().c_str()) != 0 && errno != ENOENT)) return false;
  kept_ = false;
  // Some file systems free the blocks only when the journal is committed.
  process::SyncFolder(folder_).IgnoreError();
  return true;
}

absl::Status DiskRoom::Keep() {
  ASSIGN_OR_RETURN(const auto available, available_());
  MutexLock lock(&mutex_);
  if (ballast_ == 0 || kept_) return absl::OkStatus();
  const int error =
      available < ballast_ + process::kLeastRoom ? ENOSPC : Allocate(File(), ballast_);
  kept_ = error == 0;
  impossible_ = !kept_ && !IsFull(error);
  if (kept_) return absl::OkStatus();
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot keep ", ballast_, " bytes for deletes in ", folder_));
}

absl::Status DiskRoom::Try(const std::function<absl::Status()>& work) {
  absl::Status status = work();
  if (absl::IsResourceExhausted(status)) status = work();
  return absl::IsResourceExhausted(status) && Release() ? work() : status;
}

absl::StatusOr<uint64_t> DiskRoom::Free() const {
  ASSIGN_OR_RETURN(const auto available, available_());
  MutexLock lock(&mutex_);
  const uint64_t due = kept_ || impossible_ ? 0 : ballast_;
  return available < due ? 0 : available - due;
}

}  // namespace ablate::storage
