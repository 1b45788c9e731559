// The linear layer, and the learning rule that says how its input's gradient is formed.
#ifndef ABLATE_SERVER_ENGINE_MODEL_LINEAR_H_
#define ABLATE_SERVER_ENGINE_MODEL_LINEAR_H_

#include <ATen/ATen.h>

#include "server/engine/model/parameters.h"

namespace ablate::engine {

// x [R, N, in] → x·Wᵀ + b [R, N, out]. Differentiable twice.
at::Tensor Linear(const at::Tensor& x, const LinearParameters& parameters, LearningRule rule);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_LINEAR_H_
