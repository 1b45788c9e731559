// Makes and reads pipes.
#ifndef ABLATE_SERVER_PROGRAM_PIPE_H_
#define ABLATE_SERVER_PROGRAM_PIPE_H_

#include <cstddef>
#include <string>

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

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_PIPE_H_
