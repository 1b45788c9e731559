// LayerNorm and RMSNorm over the last dimension, one gain and shift a run.
#ifndef ABLATE_SERVER_ENGINE_MODEL_NORM_H_
#define ABLATE_SERVER_ENGINE_MODEL_NORM_H_

#include <ATen/ATen.h>

#include "server/engine/config.h"
#include "server/engine/model/parameters.h"

namespace ablate::engine {

// x [R, N, d] → z·gain + shift with z = (x − μ)/σ, where σ² is the population variance + eps
// (LayerNorm) or the mean square + eps, μ = 0 (RMSNorm). Differentiable twice: the backward under
// create_graph is recomputed from x, because saved z and σ would be constants to the second
// differentiation.
at::Tensor Norm(const at::Tensor& x, const NormParameters& parameters, const NormConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_NORM_H_
