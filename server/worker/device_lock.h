// Ensures one worker process per device and kind of work.
#ifndef ABLATE_SERVER_WORKER_DEVICE_LOCK_H_
#define ABLATE_SERVER_WORKER_DEVICE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace ablate::worker {

// Locks a file with flock until the descriptor is closed or the process ends in any way. Creates
// the file if necessary and writes the process ID to it. Returns FAILED_PRECONDITION, which names
// the holding process, or INTERNAL if locking fails.
absl::StatusOr<process::FileDescriptor> LockDevice(const std::string& file);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_DEVICE_LOCK_H_
