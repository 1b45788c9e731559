// Makes an accelerator in the host's memory that refuses what a GPU refuses, so that code for GPUs
// is tested on machines without one.
#ifndef ABLATE_TESTS_ENGINE_ON_DEVICE_STRICT_DEVICE_H_
#define ABLATE_TESTS_ENGINE_ON_DEVICE_STRICT_DEVICE_H_

#include <cstddef>
#include <memory>

#include "server/engine/torch/device/accelerator_parts.h"
#include "server/engine/torch/device/device_stream.h"

namespace ablate::engine {

// Opens the device, which is LibTorch's PrivateUse1. Its operations are those of the CPU. They
// throw c10::Error
// - if one of their tensors is the host's, except scalars, which CUDA accepts
// - if CUDA has no deterministic kernel for them
// - outside DeviceStream::Run.
// The host's code can't read the memory of its tensors: it gets SIGSEGV, and a stack trace is
// printed. The engine draws random numbers on the host. Above `memory` bytes its allocator throws
// c10::OutOfMemoryError. A process has one such device.
std::shared_ptr<StreamSource> OpenStrictDevice(size_t memory = size_t{16} << 30);

inline std::shared_ptr<Accelerator> StrictAccelerator() {
  return std::make_shared<Accelerator>(OpenStrictDevice());
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ON_DEVICE_STRICT_DEVICE_H_
