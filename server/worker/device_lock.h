// One worker process for each device and kind of work.
#ifndef ABLATE_SERVER_WORKER_DEVICE_LOCK_H_
#define ABLATE_SERVER_WORKER_DEVICE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace ablate::worker {

// Holds an flock on a file until it is destroyed or the process ends, however it ends.
class DeviceLock {
 public:
  // Creates the file if need be and writes the process id into it. FAILED_PRECONDITION names the
  // process that holds it, INTERNAL says why there is no lock at all.
  static absl::StatusOr<DeviceLock> Take(const std::string& file);
  DeviceLock(DeviceLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  DeviceLock& operator=(DeviceLock&&) = delete;
  ~DeviceLock();

 private:
  explicit DeviceLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_DEVICE_LOCK_H_
