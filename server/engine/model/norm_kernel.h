// Fused loops of the norm's forward and backward on the CPU, float32 and float64.
#ifndef ABLATE_SERVER_ENGINE_MODEL_NORM_KERNEL_H_
#define ABLATE_SERVER_ENGINE_MODEL_NORM_KERNEL_H_

#include <ATen/ATen.h>

#include <vector>

#include "server/engine/config.h"

namespace ablate::engine {

// x [R, N, d]; gain and shift [R, d] or undefined → [R, N, d].
at::Tensor NormForwardCpu(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift,
                          NormKind kind, double eps);

// Gradients of x, gain and shift given `gradient` [R, N, d]; undefined for what does not exist.
std::vector<at::Tensor> NormBackwardCpu(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                                        const at::Tensor& gradient, NormKind kind, double eps);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_NORM_KERNEL_H_
