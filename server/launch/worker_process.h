// Starts one worker process, hashes its command to recognise it after a restart of the server,
// describes its exit, and computes restart delays.
#ifndef ABLATE_SERVER_LAUNCH_WORKER_PROCESS_H_
#define ABLATE_SERVER_LAUNCH_WORKER_PROCESS_H_

#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/process_id.h"
#include "server/launch/local.h"

namespace ablate::launch {

// Returns this process's environment with the given variables, each as NAME=VALUE, instead of its
// own. Sets one OpenMP and MKL thread unless the environment sets another number.
std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& variables);

// Returns a hash that differs between commands that start different workers: program (its path and
// the file now there, which an upgrade replaces), arguments and environment.
std::string CommandHash(const WorkerCommand& command);

// Starts the command in a new session, so that it outlives the server, and appends its output to
// the log file. Returns NOT_FOUND or PERMISSION_DENIED if it can't be started.
absl::StatusOr<process::ProcessId> Spawn(const WorkerCommand& command);

// Describes how a process ended, from waitid's result; `log_tail` is its last line or empty, and is
// no reason if others have killed the process. Exit code 0 is an orderly exit.
ChildExit DescribeExit(absl::string_view worker, const siginfo_t& ended,
                       absl::string_view log_tail);

// Returns the last non-empty line written after byte `from`, at most 500 bytes; empty if there is
// none.
std::string LastLine(const std::string& file, uint64_t from);

inline constexpr absl::Duration kMinRestartDelay = absl::Milliseconds(100);
inline constexpr absl::Duration kMaxRestartDelay = absl::Seconds(30);
inline constexpr absl::Duration kHealthyLife = absl::Minutes(1);

// Returns the wait before the next start of a worker that lived for `lived`, after a previous wait
// of `previous` (zero: none). Doubles from kMinRestartDelay to kMaxRestartDelay; starts over after
// kHealthyLife.
absl::Duration RestartDelay(absl::Duration previous, absl::Duration lived);

// A device that fails several times in a row is drained: it is tried again only after
// kDrainedDelay. A loss counts less than a failed probe, so that one run can't drain a GPU: it
// fails with the third worker that it ends.
inline constexpr int kMaxFailedProbes = 3;
inline constexpr int kMaxDeviceLosses = 4;
inline constexpr absl::Duration kDrainedDelay = absl::Minutes(10);
// A worker that has lived for so long before its device failed has shown that the device works.
inline constexpr absl::Duration kProvenLife = absl::Minutes(10);
// It takes at most so long until one that hangs is killed (SchedulerOptions::step_watchdog).
inline constexpr absl::Duration kFoundHung = absl::Minutes(10);

// Returns the number of failures of a device in a row after a process that lived for `lived` has
// ended; `before` is the number before this end. A device fails if it can't be used or, if it is a
// GPU, is lost or hangs. Any other end, and kProvenLife, start over.
int CountDeviceFailures(int before, const ChildExit& exit, bool on_gpu, absl::Duration lived);
// Returns true if the device is drained after this end, by that number.
inline bool IsDrained(int failures, const ChildExit& exit) {
  return failures >= (exit.device_unusable ? kMaxFailedProbes : kMaxDeviceLosses);
}

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_WORKER_PROCESS_H_
