// The reference backend: autograd on the CPU or a GPU, every switch.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_TORCH_BACKEND_H_
#define ABLATE_SERVER_ENGINE_TRAIN_TORCH_BACKEND_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/train/backend.h"

namespace ablate::engine {

// A stack with its initial parameters. `configs` are checked, and equal but for seed and optimizer
// numbers. LibTorch's exceptions become a Status inside.
absl::StatusOr<std::unique_ptr<Backend>> MakeTorchBackend(const std::vector<RunConfig>& configs);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_TORCH_BACKEND_H_
