// Opens an accelerator (an NVIDIA GPU) of this machine, on which runs with device cuda train.
// Torch-free.
#ifndef ABLATE_SERVER_ENGINE_ACCELERATOR_H_
#define ABLATE_SERVER_ENGINE_ACCELERATOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace ablate::engine {

// The most runs that may train on a device at the same time: each has a stream of its own, and as
// many ended runs keep theirs (torch/device/device_backend.h). LibTorch has 32.
inline constexpr int kMostDeviceLanes = 16;

struct AcceleratorInfo {
  std::string uuid;           // "GPU-8c0fb2cf-…"; CUDA_VISIBLE_DEVICES accepts it
  std::string name;           // "NVIDIA H100 80GB HBM3"
  std::string capability;     // of its instruction set, "9.0"
  uint64_t memory_bytes = 0;  // in total
};

// Memory of a device, in bytes.
struct DeviceMemory {
  uint64_t free = 0;  // that no process holds
  uint64_t total = 0;
};

// A device that this process has opened. Thread-safe.
class Accelerator;

// Loads the plugin with the device's code, a shared library, and opens the first device that
// CUDA_VISIBLE_DEVICES shows. A process opens at most one. Its tensors together take at most the
// fraction `memory_share` of the device's memory; more is out of memory. Returns
// FAILED_PRECONDITION, which says why, if the plugin or a library that it needs is missing, or if
// there is no device that the driver lets this process use.
absl::StatusOr<std::shared_ptr<Accelerator>> OpenAccelerator(const std::string& plugin,
                                                             double memory_share = 1);

AcceleratorInfo InfoOf(const Accelerator& accelerator);

// Returns an error if the device doesn't say.
absl::StatusOr<DeviceMemory> MemoryOf(Accelerator& accelerator);

// Gives back what no run uses: the memory of ended runs, which later ones would take over, and
// LibTorch's cache. May wait for the steps of other threads.
void ReleaseMemory(Accelerator& accelerator);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ACCELERATOR_H_
