// Computes the loss of a batch with very many logits on a CPU, a chunk of logits at a time.
#ifndef ABLATE_SERVER_ENGINE_MODEL_HEAD_LOSS_H_
#define ABLATE_SERVER_ENGINE_MODEL_HEAD_LOSS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>

#include "server/engine/model/batch.h"
#include "server/engine/model/layers.h"
#include "server/engine/model/parameters.h"

namespace ablate::engine {

// Returns true if `targets` targets have so many logits that chunks of them save memory: a GPT-2
// has 50,257 for each, so that a window of 1,024 takes 200 MB for its logits, and again for each of
// their probabilities and gradients. Fewer logits keep to Head and MeanLoss, which are
// twice differentiable.
bool HasManyLogits(int64_t targets, int64_t vocabulary);

// Returns MeanLoss of Head's logits, given the head's input x [N, d]; differentiable once. The
// gradients are computed along with the loss, while a chunk's logits are at hand. Memory: two
// chunks of logits (layout.h), and the weight's gradient.
at::Tensor MeanHeadLoss(const at::Tensor& x, const LinearParameters& head,
                        const BatchTensors& batch, const Objective& objective,
                        std::optional<at::ScalarType> factors);

// Returns ScoreLogits of Head's logits, without a graph.
at::Tensor ScoreHead(const at::Tensor& x, const LinearParameters& head, const BatchTensors& batch,
                     std::optional<at::ScalarType> factors);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_HEAD_LOSS_H_
