// The norm's autograd Function: fused loops on the CPU, composed operations elsewhere and for
// second derivatives.
#include "server/engine/model/norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include "server/engine/model/norm_kernel.h"

namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Standardised {
  at::Tensor z;        // [R, N, d]
  at::Tensor inverse;  // 1/σ, [R, N, 1]
};

Standardised Standardise(const at::Tensor& x, NormKind kind, double eps) {
  const at::Tensor centred = kind == NormKind::kLayer ? x - x.mean(-1, true) : x;  // [R, N, d]
  const at::Tensor inverse = (centred.square().mean(-1, true) + eps).rsqrt();      // [R, N, 1]
  return {centred * inverse, inverse};
}

at::Tensor ComposedForward(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift,
                           NormKind kind, double eps) {
  at::Tensor y = Standardise(x, kind, eps).z;           // [R, N, d]
  if (gain.defined()) y = y * gain.unsqueeze(1);        // [R, N, d]
  return shift.defined() ? y + shift.unsqueeze(1) : y;  // [R, N, d]
}

variable_list ComposedBackward(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                               const at::Tensor& g, NormKind kind, double eps) {
  const auto [z, inverse] = Standardise(x, kind, eps);
  const at::Tensor dz = gain.defined() ? g * gain.unsqueeze(1) : g;  // [R, N, d]
  at::Tensor dx = dz - z * (dz * z).mean(-1, true);                  // [R, N, d]
  if (kind == NormKind::kLayer) dx = dx - dz.mean(-1, true);         // [R, N, d]
  at::Tensor dgain, dshift;
  if (gain.defined()) dgain = (g * z).sum(1);  // [R, d]
  if (has_shift) dshift = g.sum(1);            // [R, d]
  return {dx * inverse, dgain, dshift};
}

class NormFunction : public torch::autograd::Function<NormFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const std::optional<at::Tensor>& gain,
                            const std::optional<at::Tensor>& shift, NormKind kind, double eps) {
    const NormParameters parameters = {gain.value_or(at::Tensor()), shift.value_or(at::Tensor())};
    ctx->save_for_backward({x, parameters.gain});
    ctx->saved_data["kind"] = static_cast<int64_t>(kind);
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["has_shift"] = shift.has_value();
    return x.is_cpu() ? NormForwardCpu(x, parameters.gain, parameters.shift, kind, eps)
                      : ComposedForward(x, parameters.gain, parameters.shift, kind, eps);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const NormKind kind = static_cast<NormKind>(ctx->saved_data["kind"].toInt());
    const double eps = ctx->saved_data["eps"].toDouble();
    const bool has_shift = ctx->saved_data["has_shift"].toBool();
    const bool composed = at::GradMode::is_enabled() || !saved[0].is_cpu();
    variable_list result =
        composed ? ComposedBackward(saved[0], saved[1], has_shift, gradients[0], kind, eps)
                 : NormBackwardCpu(saved[0], saved[1], has_shift, gradients[0], kind, eps);
    result.resize(5);  // kind and eps have none
    return result;
  }
};

}  // namespace

at::Tensor Norm(const at::Tensor& x, const NormParameters& parameters, const NormConfig& config) {
  return NormFunction::apply(x, IfDefined(parameters.gain), IfDefined(parameters.shift),
                             config.kind, config.eps);
}

}  // namespace ablate::engine
