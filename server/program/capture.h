// Runs a short command and captures its output.
#ifndef ABLATE_SERVER_PROGRAM_CAPTURE_H_
#define ABLATE_SERVER_PROGRAM_CAPTURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ablate::program {

struct Captured {
  int exit_code = 0;   // 128 + N if signal N ended it
  std::string output;  // at most kMaxCaptured bytes
  std::string errors;  // likewise
};

inline constexpr size_t kMaxCaptured = 4 << 20;

// Runs the command, whose first word is an absolute path, with an empty environment except PATH.
// FAILED_PRECONDITION if it can't be started; DEADLINE_EXCEEDED if it needs more than `time`, and
// RESOURCE_EXHAUSTED if it prints too much; it is killed then.
absl::StatusOr<Captured> Capture(std::vector<std::string> command, absl::Duration time);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_CAPTURE_H_
