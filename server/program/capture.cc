#include "server/program/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/program/fork.h"
#include "server/program/pipe.h"

namespace ablate::program {
namespace {

// Reads both pipes to their ends.
absl::Status ReadBoth(const Pipe& output, const Pipe& errors, absl::Duration deadline,
                      Captured* captured) {
  bool more_output = true;
  bool more_errors = true;
  while (more_output || more_errors) {
    std::array<pollfd, 2> ends = {{{more_output ? output.read.get() : -1, POLLIN, 0},
                                   {more_errors ? errors.read.get() : -1, POLLIN, 0}}};
    const absl::Duration left = deadline - MonotonicNow();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("it takes too long");
    poll(ends.data(), ends.size(), PollMilliseconds(left));
    if (more_output) more_output = ReadAvailable(output.read, kMaxCaptured, &captured->output);
    if (more_errors) more_errors = ReadAvailable(errors.read, kMaxCaptured, &captured->errors);
    if (captured->output.size() > kMaxCaptured || captured->errors.size() > kMaxCaptured) {
      return absl::ResourceExhaustedError("it prints too much");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Captured> Capture(std::vector<std::string> command, absl::Duration time) {
  ASSIGN_OR_RETURN(Pipe output, MakePipe());
  ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  const process::FileDescriptor input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.open()) return absl::ErrnoToStatus(errno, "/dev/null");
  Launch launch;
  launch.file = command[0];
  launch.arguments = std::move(command);
  launch.environment = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  launch.folder = "/";
  launch.descriptors = {input.get(), output.write.get(), errors.write.get()};
  const absl::StatusOr<pid_t> pid = Fork(launch);
  if (!pid.ok()) return absl::FailedPreconditionError(pid.status().message());
  output.write.Close();
  errors.write.Close();
  SetNonBlocking(output.read);
  SetNonBlocking(errors.read);
  Captured captured;
  const absl::Status read = ReadBoth(output, errors, MonotonicNow() + time, &captured);
  if (!read.ok()) kill(-*pid, SIGKILL);
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!read.ok()) {
    return absl::Status(read.code(), absl::StrCat(launch.file, ": ", read.message()));
  }
  captured.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return captured;
}

}  // namespace ablate::program
