// Interface to an accelerator beyond LibTorch's operations: streams and captured graphs. The plugin
// server/engine/torch/cuda implements it; HostStream does so on the CPU, for tests.
#ifndef ABLATE_SERVER_ENGINE_TORCH_DEVICE_DEVICE_STREAM_H_
#define ABLATE_SERVER_ENGINE_TORCH_DEVICE_DEVICE_STREAM_H_

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "server/engine/accelerator.h"

namespace ablate::engine {

// Work on a device that was recorded once, and is repeated as one launch. It reads and writes the
// same memory every time; numbers of the host that the work used are constants in it.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Appends the work to its stream. Call it within DeviceStream::Run.
  virtual void Replay() = 0;
};

// A queue of work on a device, which runs in order. Several run side by side. Not thread-safe, and
// used by one run at a time. All functions throw c10::Error.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;

  // The device of its tensors.
  virtual at::Device device() const = 0;

  // Calls `work` with this stream as the thread's current one. Backward passes within run on this
  // thread. No graph is captured in this process meanwhile, except while it waits in Synchronize.
  // Every call of LibTorch that touches the device must be within Run or Capture; tensors may be
  // destroyed anywhere.
  virtual void Run(absl::FunctionRef<void()> work) = 0;

  // Records `work`, which must have run on this stream before, must not wait for the device, and
  // whose temporaries stay allocated with the graph. Not within Run. A stream's graphs must be
  // destroyed together, after a Synchronize, because they share workspaces. With `tf32`, float32
  // matrix products use TF32.
  virtual std::unique_ptr<DeviceGraph> Capture(bool tf32, std::function<void()> work) = 0;

  // Waits until all work has finished. Call it within Run.
  virtual void Synchronize() = 0;

  // Returns memory of the host that the device reads and writes without waiting: zeros.
  virtual at::Tensor HostTensor(at::IntArrayRef sizes, at::ScalarType type) = 0;
};

// Makes the streams of one device. Thread-safe.
class StreamSource {
 public:
  virtual ~StreamSource() = default;

  virtual AcceleratorInfo info() const = 0;

  // Returns the memory now, without what LibTorch keeps for later. Throws c10::Error.
  virtual DeviceMemory Memory() = 0;

  // Returns a stream that no other object uses; throws c10::Error if all are in use.
  virtual std::unique_ptr<DeviceStream> NewStream() = 0;

  // Gives memory that LibTorch keeps for later back to the device.
  virtual void ReleaseMemory() = 0;
};

// The function that a plugin exports: opens the first visible device, with a share of its memory,
// or sets `why_not` if there is none that can be used. Throws c10::Error.
using OpenDevice = void(double memory_share, std::shared_ptr<StreamSource>* opened,
                        std::string* why_not);

inline constexpr char kOpenDevice[] = "ablate_open_device";  // its symbol

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_DEVICE_DEVICE_STREAM_H_
