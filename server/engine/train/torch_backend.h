// The reference backend: autograd on the CPU or a GPU, every switch; and the gradient that it steps
// along.
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

// LibTorch's exceptions become a Status inside.
absl::StatusOr<std::unique_ptr<Backend>> MakeTorchBackend(const RunConfig& config);

// The pass of an update of such a run: its rule, its norms' backward mode, statistics of the batch,
// and `dropout`, which must outlive it, if it leaves anything out.
Pass TrainingPass(const RunConfig& config, const Dropout* dropout);

// The norm of a gradient [P], in float64: finite exactly if every float32 element is, and as exact
// for 10⁸ parameters as for ten. On a CPU its bits depend on nothing but the gradient.
double GradientNorm(const at::Tensor& gradient);

// Puts the gradient of the loss into parameters.gradients(), and returns the loss, in nats a token:
// the mean over the targets of all `parts` of a batch, at least one, which are computed one after
// the other.
double Differentiate(const ModelConfig& model, const Pass& pass,
                     const std::vector<BatchTensors>& parts, const FlatParameters& parameters,
                     double label_smoothing = 0);

// The batch cut into equal parts of consecutive rows, each padded to its own longest.
std::vector<BatchTensors> MakeParts(const TokenBatch& batch, int64_t parts,
                                    at::TensorOptions options);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_TORCH_BACKEND_H_
