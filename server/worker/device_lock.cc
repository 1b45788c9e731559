// flock: released by the kernel with the process.
#include "server/worker/device_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ablate::worker {

absl::StatusOr<DeviceLock> DeviceLock::Take(const std::string& file) {
  DeviceLock lock(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.fd_ < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open lock file ", file));
  }
  if (flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", file));
    }
    std::ifstream in(file);
    const std::string holder(std::istreambuf_iterator<char>(in), {});
    return absl::FailedPreconditionError(absl::StrCat(
        "the device is taken: process ", absl::StripAsciiWhitespace(holder), " holds ", file));
  }
  // For people; what counts is the lock.
  const std::string id = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock.fd_, 0) != 0 ||
      write(lock.fd_, id.data(), id.size()) != static_cast<ssize_t>(id.size())) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write lock file ", file));
  }
  return lock;
}

DeviceLock::~DeviceLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace ablate::worker
