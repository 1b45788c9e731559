// Implements the reference backend, which supports every switch with autograd on a CPU or GPU, and
// computes its gradients.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_TORCH_BACKEND_H_
#define ABLATE_SERVER_ENGINE_TRAIN_TORCH_BACKEND_H_

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"
#include "server/engine/model/pass.h"
#include "server/engine/train/backend.h"

namespace ablate::engine {

// Creates the backend. It converts LibTorch's exceptions to a Status.
absl::StatusOr<std::unique_ptr<Backend>> MakeTorchBackend(const RunConfig& config);

// Returns the arguments of an update's forward pass: the run's rule, its norms' backward mode,
// batch statistics, and `dropout`, if it drops anything; `dropout` must outlive the result.
Pass TrainingPass(const RunConfig& config, const Dropout* dropout);

// Returns the norm of a gradient [P], computed in float64: finite exactly if every float32 element
// is, and accurate for any size. On a CPU its bits depend only on the gradient.
double GradientNorm(const at::Tensor& gradient);

// Stores the gradient of the loss in parameters.gradients(). Returns the loss, in nats per token:
// the mean over the targets of all micro-batches in `parts`, at least one, which are computed in
// order.
double Differentiate(const ModelConfig& model, const Pass& pass,
                     const std::vector<BatchTensors>& parts, const FlatParameters& parameters,
                     double label_smoothing = 0);

// Returns the batch cut into `parts` micro-batches of consecutive rows, equally many in each,
// padded to their own longest row.
std::vector<BatchTensors> MakeParts(const TokenBatch& batch, int64_t parts,
                                    at::TensorOptions options);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_TORCH_BACKEND_H_
