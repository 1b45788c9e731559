#include "server/program/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "absl/status/status.h"

namespace ablate::program {

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "can't make a pipe");
  return Pipe{process::FileDescriptor(ends[0]), process::FileDescriptor(ends[1])};
}

void SetNonBlocking(const process::FileDescriptor& end) {
  fcntl(end.get(), F_SETFL, fcntl(end.get(), F_GETFL) | O_NONBLOCK);
}

bool ReadAvailable(const process::FileDescriptor& end, size_t max_bytes, std::string* to) {
  std::array<char, 64 << 10> bytes;
  for (size_t taken = 0; taken < max_bytes;) {
    const ssize_t size = read(end.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN;
    if (size == 0) return false;
    to->append(bytes.data(), static_cast<size_t>(size));
    taken += static_cast<size_t>(size);
  }
  return true;
}

int PollMilliseconds(absl::Duration wait) {
  if (wait == absl::InfiniteDuration()) return -1;
  const int64_t whole = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(whole, 0, std::numeric_limits<int>::max()));
}

}  // namespace ablate::program
