// Token look-up and linear, each an autograd Function of its own, for LibTorch has none that fits a
// stack of runs; and the loss.
#ifndef ABLATE_SERVER_ENGINE_MODEL_LAYERS_H_
#define ABLATE_SERVER_ENGINE_MODEL_LAYERS_H_

#include <ATen/ATen.h>

#include "server/engine/config.h"
#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"

namespace ablate::engine {

// table [R, V, d], tokens [R, N] int64 → [R, N, d]. Differentiable twice. Throws c10::Error if a
// token is outside 0…V−1 (on the CPU; a device assertion on CUDA).
at::Tensor Embedding(const at::Tensor& table, const at::Tensor& tokens);

// x [R, N, in] → x·Wᵀ + b [R, N, out]. With feedback alignment the gradient of x is g·B with the
// linear's feedback B in W's place. Differentiable twice by backprop.
at::Tensor Linear(const at::Tensor& x, const LinearParameters& parameters, LearningRule rule);

// logits [R, N, V], targets [R, N] → −ln p(target), in nats, [R, N]; 0 where a target is ignored.
// With a smoothing ε, (1 − ε)·(−ln p(target)) + ε·(the mean of −ln p over the vocabulary), as
// torch.nn.functional.cross_entropy has it.
at::Tensor TokenLosses(const at::Tensor& logits, const StackBatch& batch,
                       double label_smoothing = 0);

// What of its tokens' losses a run's loss is made of.
struct Objective {
  double label_smoothing = 0;
  // [R], in the model's precision: the targets that count in the whole batch of which this is a
  // part. Undefined where it is the whole.
  at::Tensor targets;
};

// The mean over each run's counted targets, [R]; of a part, its summand in the mean of the whole.
at::Tensor RunLosses(const at::Tensor& logits, const StackBatch& batch,
                     const Objective& objective = {});

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_LAYERS_H_
