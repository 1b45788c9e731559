// One worker process: starting it, the hash by which it is recognised after a restart of the
// server, its last words, and when it is started again.
#ifndef ABLATE_SERVER_LAUNCH_WORKER_PROCESS_H_
#define ABLATE_SERVER_LAUNCH_WORKER_PROCESS_H_

#include <signal.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/identity.h"
#include "server/launch/local.h"

namespace ablate::launch {

// Differs between commands that make another worker: program (its path and the file that is there
// now, which an upgrade replaces) and arguments.
std::string CommandHash(const WorkerCommand& command);

// Starts the command in a session of its own, so that it outlives the server; what it prints is
// appended to the log file. One OpenMP and MKL thread unless the environment says otherwise.
// NOT_FOUND or PERMISSION_DENIED if it can't be started.
absl::StatusOr<process::ProcessId> Spawn(const WorkerCommand& command);

// How a process ended, from waitid's answer; `log_tail` is its last line or empty. Exit code 0 is
// an orderly leave.
ChildExit DescribeExit(absl::string_view worker, const siginfo_t& ended,
                       absl::string_view log_tail);

// Last non-empty line written after byte `from`, at most 500 bytes; empty if there is none.
std::string LastLine(const std::string& file, uint64_t from);

inline constexpr absl::Duration kMinRestartDelay = absl::Milliseconds(100);
inline constexpr absl::Duration kMaxRestartDelay = absl::Seconds(30);
inline constexpr absl::Duration kHealthyLife = absl::Minutes(1);

// The wait before the next start of a worker that lived for `lived` and had been waited for
// `previous` (zero: never). Doubles from kMinRestartDelay to kMaxRestartDelay; a healthy life
// starts over.
absl::Duration RestartDelay(absl::Duration previous, absl::Duration lived);

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_WORKER_PROCESS_H_
