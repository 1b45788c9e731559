// Defines the accelerator: the plugin's streams, and the ended runs that later ones take over.
#ifndef ABLATE_SERVER_ENGINE_TORCH_DEVICE_ACCELERATOR_PARTS_H_
#define ABLATE_SERVER_ENGINE_TORCH_DEVICE_ACCELERATOR_PARTS_H_

#include <memory>
#include <utility>

#include "server/engine/accelerator.h"
#include "server/engine/torch/device/device_backend.h"
#include "server/engine/torch/device/device_stream.h"

namespace ablate::engine {

class Accelerator {
 public:
  explicit Accelerator(std::shared_ptr<StreamSource> streams) : streams_(std::move(streams)) {}

  StreamSource& streams() { return *streams_; }
  const StreamSource& streams() const { return *streams_; }
  EndedRuns& ended() { return ended_; }

 private:
  const std::shared_ptr<StreamSource> streams_;
  EndedRuns ended_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_DEVICE_ACCELERATOR_PARTS_H_
