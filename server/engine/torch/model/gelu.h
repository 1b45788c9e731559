// Computes GELU by its tanh formula, so that it is twice differentiable at the speed of its
// kernels.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_GELU_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_GELU_H_

#include <ATen/ATen.h>

namespace ablate::engine {

// Returns x/2·(1 + tanh(β(x + κx³))) with β = √(2/π), κ = 0.044715 (Hendrycks and Gimpel 2016), of
// x's shape. Values and first derivatives have the bits of LibTorch's gelu. Second derivatives of
// large tensors on a CPU are formed in parts that stay in a cache; LibTorch takes six times as
// long for them. Third derivatives of those throw.
at::Tensor GeluTanh(const at::Tensor& x);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_GELU_H_
