// Computes linears, as an autograd Function, and the loss.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_LAYERS_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_LAYERS_H_

#include <ATen/ATen.h>

#include <optional>

#include "server/engine/config.h"
#include "server/engine/torch/model/batch.h"
#include "server/engine/torch/model/parameters.h"

namespace ablate::engine {

// Returns the kind of a tensor's device: the cores or an accelerator.
inline Device DeviceOf(const at::Tensor& tensor) {
  return tensor.is_cpu() ? Device::kCpu : Device::kCuda;
}

// Returns a [N, k] times b [k, m]. Uses LibTorch's batched product, whose bits differ from its
// matrix product's, because stored resume states were made with it.
at::Tensor Product(const at::Tensor& a, const at::Tensor& b);

// x [N, in] → x·Wᵀ + b [N, out]. With feedback alignment the gradient of x is g·B, with the
// linear's feedback B in place of W. Twice differentiable by backpropagation. If `factors` is a
// type, factors and result are of this type, and the gradients of the parameters' own.
at::Tensor Linear(const at::Tensor& x, const LinearParameters& parameters, LearningRule rule,
                  std::optional<at::ScalarType> factors = {});

// As Linear without feedback, x [N, d] → logits [N, V] of the parameters' type.
at::Tensor Head(const at::Tensor& x, const LinearParameters& parameters,
                std::optional<at::ScalarType> factors = {});

// Returns the head's input [N, d] as its linear reads it: µP divides it by WidthRatio.
at::Tensor ForHead(const ModelConfig& config, const at::Tensor& x);

// Returns cap·tanh(x/cap), or x if `cap` is 0.
at::Tensor Capped(const at::Tensor& x, double cap);

// logits [N, V], targets [N] → −ln p(target), in nats, [N]; 0 for ignored targets. With a smoothing
// ε it is (1 − ε)·(−ln p(target)) + ε·(the mean of −ln p over the vocabulary), as in
// torch.nn.functional.cross_entropy.
at::Tensor TokenLosses(const at::Tensor& logits, const BatchTensors& batch,
                       double label_smoothing = 0);

// Defines how a batch's loss is made from the losses of its tokens, to each of which z_loss·(ln Σ
// e^logit)² is added.
struct Objective {
  double label_smoothing = 0;
  double z_loss = 0;
  // A number in the model's precision: the targets counted in the whole batch if this is one of its
  // micro-batches. Undefined if this is the whole batch.
  at::Tensor targets;
};

// Returns the mean over the counted targets; for a micro-batch, its contribution to the mean of the
// whole batch.
at::Tensor MeanLoss(const at::Tensor& logits, const BatchTensors& batch,
                    const Objective& objective = {});

// Returns the sums over the counted targets of a batch: their TokenLosses, those that have the
// highest logit, and their number; [3], float64. Doesn't wait for a device.
at::Tensor ScoreLogits(const at::Tensor& logits, const BatchTensors& batch);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_LAYERS_H_
