// Computes every kind of norm, with every backward mode, in one autograd Function.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_NORM_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_NORM_H_

#include <ATen/ATen.h>

#include "server/engine/config.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/model/pass.h"

namespace ablate::engine {

// Describes how a pass applies its norms. MakeNormPass makes the one that uses batch statistics.
struct NormPass {
  NormConfig config;  // the model's, with the backward mode of the pass
  Statistics statistics = Statistics::kRunning;
  at::Tensor real;   // [N, 1], 0 for padding, else 1; undefined if no position is padding
  at::Tensor count;  // number of real positions, [1, 1]; undefined with running statistics
};

// Returns a pass that uses the statistics of a batch with `real_positions` that aren't padding;
// `real` as in NormPass, `options` the model's. Throws c10::Error if it must update running
// statistics and there is only one real position.
NormPass MakeNormPass(const NormConfig& config, Statistics statistics, const at::Tensor& real,
                      int64_t real_positions, at::TensorOptions options);

// x [N, d] → x̂·gain + shift [N, d], with x̂ = (x − μ)/σ (`x_hat` in the code):
//
//   kind   μ                       σ
//   layer  mean over features      √(population variance + eps), or √(unbiased variance) + eps
//   rms    0                       √(mean square + eps)
//   l2     0                       √(sum of squares + eps)
//   batch  mean over positions     √(population variance + eps), both by feature over real
//                                  positions, or the running mean and √(running variance + eps)
//
// Pointwise kinds have x̂ = tanh(αx) for dyt (Zhu et al. 2025, arXiv 2503.10622) and erf(αx + s) for
// derf (Chen et al. 2025, arXiv 2512.10938). If the form of the gain is one_plus, the gain is 1
// plus the parameter.
//
// The gradient of x, given the gradient g of x̂, is
//
//   exact         (g − ḡ − x̂·ĝ)/σ
//   center_scale  (g − ḡ)/σ
//   projected     g − ḡ − x̂·ĝ
//   identity      g
//
// and g/σ with running statistics. ḡ is the mean of g over the elements that μ averages (0 if μ is
// 0). ĝ is the mean of g·x̂; for l2 it is the sum, and for the unbiased deviation s the sum is
// divided by (d−1)s/σ instead of d.
//
// The exact mode is twice differentiable: under create_graph the backward is recomputed from x,
// because saved x̂ and σ would be constants to the second differentiation.
//
// kBatchAndTrack moves `running_mean` and `running_variance` a tenth of the way to the batch's mean
// and unbiased variance.
at::Tensor Norm(const at::Tensor& x, const NormParameters& parameters, const NormPass& pass);

// Returns the factors of x̂ [d]; undefined if there is no gain.
at::Tensor GainOf(const NormParameters& parameters, const NormConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_NORM_H_
