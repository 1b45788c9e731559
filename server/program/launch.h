// Starts a process with given descriptors, which ends with the thread that started it; and makes
// and reads its pipes.
#ifndef ABLATE_SERVER_PROGRAM_LAUNCH_H_
#define ABLATE_SERVER_PROGRAM_LAUNCH_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"

namespace ablate::program {

// Has both ends of a pipe, which are closed on exec.
struct Pipe {
  process::FileDescriptor read;
  process::FileDescriptor write;
};

absl::StatusOr<Pipe> MakePipe();

// Makes reads and writes of this end return at once. The other end isn't affected.
void SetNonBlocking(const process::FileDescriptor& end);

// Appends what can be read now, at most about `max_bytes`, and returns true; returns false at the
// end of the pipe. The end must be non-blocking.
bool ReadAvailable(const process::FileDescriptor& end, size_t max_bytes, std::string* to);

// Returns a duration as poll's argument, rounded up; -1 for an infinite one.
int PollMilliseconds(absl::Duration wait);

// Waits until the descriptor is readable; returns false after `wait`.
bool AwaitReadable(int descriptor, absl::Duration wait);

struct Launch {
  std::vector<std::string> arguments;    // begin with the program, found as execvp does
  std::vector<std::string> environment;  // each NAME=VALUE
  std::string folder;                    // the working folder
  std::vector<int> descriptors;          // become 0, 1, 2, …; no others are inherited
  uint64_t max_file_bytes = 0;           // 0: no limit
};

// Starts the program as a child in a session of its own, with default signals and without core
// dumps. The kernel kills it when the calling thread ends, and prefers it to this process when
// memory runs out. Returns its pid after exec has succeeded, else exec's error.
absl::StatusOr<pid_t> Fork(const Launch& launch);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_LAUNCH_H_
