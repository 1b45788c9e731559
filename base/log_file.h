// Bounds logs: each is at most two files of some megabytes. Waits for signals.
#ifndef ABLATE_BASE_LOG_FILE_H_
#define ABLATE_BASE_LOG_FILE_H_

#include <signal.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace ablate::process {

inline constexpr uint64_t kMaxLogBytes = 16 << 20;

// Returns the size in bytes; 0 if the file doesn't exist.
uint64_t FileSize(const std::string& file);

// Opens a log for appending, closed on exec; creates it with mode 0600. FAILED_PRECONDITION for a
// link, and for anything except a regular file of this user.
absl::StatusOr<FileDescriptor> OpenLog(const std::string& path);

// Renames a log of more than `max_bytes` to FILE.old. Call it only while nobody writes to the log.
void BoundLog(const std::string& file, uint64_t max_bytes = kMaxLogBytes);

// Bounds this process's own log, the file that standard error is appended to; later output starts a
// new file. Does nothing if standard error isn't a file that is still at its path. Call it now and
// then from one thread; other threads may go on writing.
void BoundOwnLog(uint64_t max_bytes = kMaxLogBytes);

// Blocks the signals that ask a program to end, and returns them: SIGTERM, SIGINT, and SIGUSR1 and
// SIGUSR2, which schedulers of clusters send. Call it before any thread is started, so that only a
// thread that waits for them gets them.
sigset_t BlockEndSignals();

// Waits for one of the signals, which must be blocked in every thread, and returns it. Returns 0
// once `go_on`, if given, returns false; it is called every few seconds. Bounds this process's own
// log meanwhile.
int AwaitSignal(const sigset_t& signals, const std::function<bool()>& go_on = nullptr);

}  // namespace ablate::process

#endif  // ABLATE_BASE_LOG_FILE_H_
