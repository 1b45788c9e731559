// Implements the lock with flock, which the kernel releases with the process.
#include "server/worker/device_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ablate::worker {
namespace {

// Never FAILED_PRECONDITION, whatever the system's reason, because the device isn't taken.
absl::Status NoLock(absl::string_view what, const std::string& file) {
  const absl::Status why = absl::ErrnoToStatus(errno, absl::StrCat(what, file));
  return absl::InternalError(why.message());
}

// For information only, so that errors are ignored; the lock holds even if the disk is full.
void NoteHolder(int fd) {
  const std::string id = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = write(fd, id.data(), id.size());
}

}  // namespace

absl::StatusOr<process::FileDescriptor> LockDevice(const std::string& file) {
  process::FileDescriptor lock(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.open()) return NoLock("cannot open lock file ", file);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return NoLock("cannot lock ", file);
    const std::string holder = process::ReadWholeFile(file);
    return absl::FailedPreconditionError(absl::StrCat(
        "the device is taken: process ", absl::StripAsciiWhitespace(holder), " holds ", file));
  }
  NoteHolder(lock.get());
  return lock;
}

}  // namespace ablate::worker
