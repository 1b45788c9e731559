// Logs that never grow without bound: two files of some megabytes are all there is.
#ifndef ABLATE_PROCESS_LOG_FILE_H_
#define ABLATE_PROCESS_LOG_FILE_H_

#include <signal.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace ablate::process {

inline constexpr uint64_t kMaxLogBytes = 16 << 20;

// Bytes of a file; 0 if there is none.
uint64_t FileSize(const std::string& file);

// Opens a log for appending, made with mode 0600 if it is not there; closed on exec. Neither
// through a link nor into something that is no file of this user: FAILED_PRECONDITION.
absl::StatusOr<FileDescriptor> OpenLog(const std::string& path);

// Renames a log of more than `max_bytes` to FILE.old. For when nobody writes to it.
void BoundLog(const std::string& file, uint64_t max_bytes = kMaxLogBytes);

// The same for this process's own log, the file that its standard error is appended to: what is
// written from now on begins a new one. Does nothing where standard error is no file that is still
// at its place. Called now and then from one thread; others may go on writing.
void BoundOwnLog(uint64_t max_bytes = kMaxLogBytes);

// Waits for one of the signals, which must be blocked in every thread, and returns it; or 0 once
// `go_on`, which is asked every few seconds where there is one, says no. Bounds this process's own
// log meanwhile.
int AwaitSignal(const sigset_t& signals, const std::function<bool()>& go_on = nullptr);

}  // namespace ablate::process

#endif  // ABLATE_PROCESS_LOG_FILE_H_
