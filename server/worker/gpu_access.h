// Gives programs a GPU: the device files that a sandbox must show, and a check that a program can
// use them.
#ifndef ABLATE_SERVER_WORKER_GPU_ACCESS_H_
#define ABLATE_SERVER_WORKER_GPU_ACCESS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/program/request.h"
#include "server/worker/nvml.h"

namespace ablate::worker {

struct GpuAccess {
  std::string uuid;                  // for CUDA_VISIBLE_DEVICES; empty: no GPU
  std::vector<std::string> devices;  // paths such as /dev/nvidia0
};

// Returns the access to a device: its own file and those that all devices share, as far as they are
// in `dev`. FAILED_PRECONDITION if NVML doesn't know the number of its file, or if the file is
// missing.
absl::StatusOr<GpuAccess> AccessTo(const DeviceInfo& device, const std::string& dev = "/dev");

// Runs a program in place of `request`'s command that asks CUDA for its devices, because otherwise
// PyTorch would compute on the cores in silence. FAILED_PRECONDITION with the reason if CUDA shows
// the program not exactly one device. Takes up to some seconds.
absl::Status CheckSeesGpu(program::Request request);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_GPU_ACCESS_H_
