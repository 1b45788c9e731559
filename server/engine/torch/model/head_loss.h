// Computes a loss along with its gradients, a chunk of logits at a time (ComputesLossInChunks).
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_HEAD_LOSS_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_HEAD_LOSS_H_

#include <ATen/ATen.h>

#include <optional>

#include "server/engine/torch/model/batch.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/parameters.h"

namespace ablate::engine {

// A head whose logits have a bound (Capped); 0: none.
struct CappedHead {
  const LinearParameters& linear;
  double cap = 0;
};

// Returns MeanLoss of the head's logits, given the head's input x [N, d]; differentiable once. The
// gradients are computed along with the loss, while a chunk's logits are at hand. Doesn't wait for
// a device. Memory: two chunks of logits (layout.h), two and a half if factors are
// rounded, and the weight's gradient.
at::Tensor MeanHeadLoss(const at::Tensor& x, const CappedHead& head, const BatchTensors& batch,
                        const Objective& objective, std::optional<at::ScalarType> factors);

// Returns ScoreLogits of the head's logits, without a graph.
at::Tensor ScoreHead(const at::Tensor& x, const CappedHead& head, const BatchTensors& batch,
                     std::optional<at::ScalarType> factors);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_HEAD_LOSS_H_
