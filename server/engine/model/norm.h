// Every kind of norm as one autograd Function, with the ways in which it can hand gradients back.
#ifndef ABLATE_SERVER_ENGINE_MODEL_NORM_H_
#define ABLATE_SERVER_ENGINE_MODEL_NORM_H_

#include <ATen/ATen.h>

#include "server/engine/config.h"
#include "server/engine/model/parameters.h"
#include "server/engine/model/pass.h"

namespace ablate::engine {

// How a pass applies its norms. One by the statistics of its batch is made by BatchPass.
struct NormPass {
  NormConfig config;  // the model's, with the backward mode of the pass
  Statistics statistics = Statistics::kRunning;
  at::Tensor real;   // [N, 1], 1 where a position is no padding, else 0; undefined: none is
  at::Tensor count;  // of real positions, [1, 1]; undefined by running statistics
};

// A pass by the statistics of a batch of N `positions`; `real` as in NormPass, `options` the
// model's. Throws c10::Error if it is to track them and there is one real position only.
NormPass BatchPass(const NormConfig& config, Statistics statistics, const at::Tensor& real,
                   int64_t positions, at::TensorOptions options);

// x [N, d] → z·gain + shift [N, d], with z = (x − μ)/σ:
//
//   kind   μ                       σ
//   layer  mean over features      √(population variance + eps), or √(unbiased variance) + eps
//   rms    0                       √(mean square + eps)
//   l2     0                       √(sum of squares + eps)
//   batch  mean over positions     √(population variance + eps), both by feature over real
//                                  positions, or the running mean and √(running variance + eps)
//
// The gradient of x, given g of z, where ḡ is g's mean over what μ is (0 where μ is 0) and ĝ the
// mean of g·z (for l2 the sum; for the unbiased deviation s divided by (d−1)s/σ in place of d):
// exact (g − ḡ − z·ĝ)/σ, center_scale (g − ḡ)/σ, projected g − ḡ − z·ĝ, identity g. By running
// statistics it is g/σ.
//
// The exact one is differentiable twice: the backward under create_graph is recomputed from x,
// because saved z and σ would be constants to the second differentiation.
//
// kBatchAndTrack moves `running_mean` and `running_variance` a tenth of the way to the batch's mean
// and unbiased variance.
at::Tensor Norm(const at::Tensor& x, const NormParameters& parameters, const NormPass& pass);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_NORM_H_
