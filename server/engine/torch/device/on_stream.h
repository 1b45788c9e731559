// Runs work that waits for the device, such as analyses, on a stream of its own.
#ifndef ABLATE_SERVER_ENGINE_TORCH_DEVICE_ON_STREAM_H_
#define ABLATE_SERVER_ENGINE_TORCH_DEVICE_ON_STREAM_H_

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <utility>

#include "server/engine/accelerator.h"
#include "server/engine/torch/device/accelerator_parts.h"
#include "server/engine/torch/device/device_stream.h"

namespace ablate::engine {

// A stream of an accelerator, or the cores without one. It must outlive the tensors that its work
// makes. Used by one thread at a time.
class OnStream {
 public:
  // Throws c10::Error if all streams are in use.
  explicit OnStream(const std::shared_ptr<Accelerator>& accelerator)
      : accelerator_(accelerator),
        stream_(accelerator == nullptr ? nullptr : accelerator->streams().NewStream()) {}

  at::Device device() const { return stream_ == nullptr ? at::kCPU : stream_->device(); }

  // Returns the result of `work`.
  template <typename Work>
  auto operator()(const Work& work) const -> decltype(work()) {
    if (stream_ == nullptr) return work();
    std::optional<decltype(work())> result;
    stream_->Run([&] { result = work(); });
    return *std::move(result);
  }

 private:
  const std::shared_ptr<Accelerator> accelerator_;
  const std::unique_ptr<DeviceStream> stream_;  // null: the cores
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_DEVICE_ON_STREAM_H_
