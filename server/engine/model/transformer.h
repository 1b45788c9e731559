// The model family: one forward pass whose parts are switched by ModelConfig.
#ifndef ABLATE_SERVER_ENGINE_MODEL_TRANSFORMER_H_
#define ABLATE_SERVER_ENGINE_MODEL_TRANSFORMER_H_

#include <ATen/ATen.h>

#include "server/engine/config.h"
#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"

namespace ablate::engine {

// Whether a block of `config` has a norm at its attention and at its feed-forward site.
bool HasAttentionNorm(const NormConfig& config);
bool HasFeedForwardNorm(const NormConfig& config);

// Scores of the next token: [R, B·T, V], or [R, B, V] at the last positions when the loss reads
// only those (the last block is then computed there alone). Differentiable twice with respect to
// `parameters`.
at::Tensor Logits(const ModelConfig& config, const ModelParameters& parameters,
                  const StackBatch& batch, LearningRule rule);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_TRANSFORMER_H_
