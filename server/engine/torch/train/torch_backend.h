// Implements the reference backend, which trains on a CPU with autograd and supports every switch.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_TORCH_BACKEND_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_TORCH_BACKEND_H_

#include <ATen/ATen.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/core/backend.h"

namespace ablate::engine {

// Creates the backend. It converts LibTorch's exceptions to a Status.
absl::StatusOr<std::unique_ptr<Backend>> MakeTorchBackend(const RunConfig& config);

// Returns the norm of a gradient [P] on the CPU, computed in float64: finite exactly if every
// float32 element is, and accurate for any size. Its bits depend only on the gradient.
double GradientNorm(const at::Tensor& gradient);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_TORCH_BACKEND_H_
