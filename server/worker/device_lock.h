// One worker process for each device and kind of work.
#ifndef ABLATE_SERVER_WORKER_DEVICE_LOCK_H_
#define ABLATE_SERVER_WORKER_DEVICE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace ablate::worker {

// Takes an flock on a file, which is held until the descriptor is closed or the process ends,
// however it ends. Creates the file if need be and writes the process id into it.
// FAILED_PRECONDITION names the process that holds it, INTERNAL says why there is no lock at all.
absl::StatusOr<process::FileDescriptor> LockDevice(const std::string& file);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_DEVICE_LOCK_H_
