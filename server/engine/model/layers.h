// The linear as an autograd Function of its own, and the loss.
#ifndef ABLATE_SERVER_ENGINE_MODEL_LAYERS_H_
#define ABLATE_SERVER_ENGINE_MODEL_LAYERS_H_

#include <ATen/ATen.h>

#include "server/engine/config.h"
#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"

namespace ablate::engine {

// a [N, k] times b [k, m]. By LibTorch's product of batches, whose bits are not those of its
// product of matrices: runs go on from states that it made.
at::Tensor Product(const at::Tensor& a, const at::Tensor& b);

// x [N, in] → x·Wᵀ + b [N, out]. With feedback alignment the gradient of x is g·B with the
// linear's feedback B in W's place. Differentiable twice by backprop.
at::Tensor Linear(const at::Tensor& x, const LinearParameters& parameters, LearningRule rule);

// logits [N, V], targets [N] → −ln p(target), in nats, [N]; 0 where a target is ignored.
// With a smoothing ε, (1 − ε)·(−ln p(target)) + ε·(the mean of −ln p over the vocabulary), as
// torch.nn.functional.cross_entropy has it.
at::Tensor TokenLosses(const at::Tensor& logits, const BatchTensors& batch,
                       double label_smoothing = 0);

// How the loss of a batch is made of those of its tokens.
struct Objective {
  double label_smoothing = 0;
  // A number in the model's precision: the targets that count in the whole batch of which this is
  // a part. Undefined if it is the whole.
  at::Tensor targets;
};

// The mean over the counted targets; of a part, its summand in the mean of the whole.
at::Tensor MeanLoss(const at::Tensor& logits, const BatchTensors& batch,
                    const Objective& objective = {});

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_LAYERS_H_
