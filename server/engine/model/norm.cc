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

at::Tensor ComposedForward(const at::Tensor& x, const NormParameters& parameters, NormKind kind,
                           double eps) {
  at::Tensor y = Standardise(x, kind, eps).z;                           // [R, N, d]
  if (parameters.gain.defined()) y = y * parameters.gain.unsqueeze(1);  // [R, N, d]
  return parameters.shift.defined() ? y + parameters.shift.unsqueeze(1) : y;
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

// A run's row of an optional [R, d] tensor, or null.
template <typename Scalar>
const Scalar* RowOf(const at::Tensor& tensor, int64_t run) {
  if (!tensor.defined()) return nullptr;
  TORCH_CHECK(tensor.stride(1) == 1, "a norm's parameters must lie side by side");
  return tensor.const_data_ptr<Scalar>() + run * tensor.stride(0);
}

// The kernel's arguments for one run of x [R, N, d].
template <typename Scalar>
NormRows<Scalar> RowsOf(const at::Tensor& x, const NormParameters& parameters, NormKind kind,
                        double eps, int64_t run) {
  const int64_t rows = x.size(1), d = x.size(2);
  return {x.const_data_ptr<Scalar>() + run * rows * d,
          RowOf<Scalar>(parameters.gain, run),
          RowOf<Scalar>(parameters.shift, run),
          rows,
          d,
          kind,
          static_cast<Scalar>(eps)};
}

template <typename Scalar>
at::Tensor FusedForward(const at::Tensor& x, const NormParameters& parameters, NormKind kind,
                        double eps) {
  const at::Tensor rows = x.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());  // [R, N, d]
  for (int64_t run = 0; run < x.size(0); ++run) {
    NormForward(RowsOf<Scalar>(rows, parameters, kind, eps, run),
                y.mutable_data_ptr<Scalar>() + run * x.size(1) * x.size(2));
  }
  return y;
}

template <typename Scalar>
variable_list FusedBackward(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                            const at::Tensor& gradient, NormKind kind, double eps) {
  const at::Tensor rows = x.contiguous();
  const at::Tensor g = gradient.contiguous();         // [R, N, d]
  at::Tensor dx = at::empty(x.sizes(), x.options());  // [R, N, d]
  at::Tensor dgain, dshift;
  if (gain.defined()) dgain = at::zeros({x.size(0), x.size(2)}, x.options());  // [R, d]
  if (has_shift) dshift = at::zeros({x.size(0), x.size(2)}, x.options());      // [R, d]
  const auto row = [](const at::Tensor& sum, int64_t run) {
    return sum.defined() ? sum.mutable_data_ptr<Scalar>() + run * sum.size(1) : nullptr;
  };
  for (int64_t run = 0; run < x.size(0); ++run) {
    const int64_t block = run * x.size(1) * x.size(2);
    NormBackward(RowsOf<Scalar>(rows, {gain, {}}, kind, eps, run),
                 g.const_data_ptr<Scalar>() + block, dx.mutable_data_ptr<Scalar>() + block,
                 row(dgain, run), row(dshift, run));
  }
  return {dx, dgain, dshift};
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
    const auto compute = !x.is_cpu()                      ? ComposedForward
                         : x.scalar_type() == at::kDouble ? FusedForward<double>
                                                          : FusedForward<float>;
    return compute(x, parameters, kind, eps);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const NormKind kind = static_cast<NormKind>(ctx->saved_data["kind"].toInt());
    const double eps = ctx->saved_data["eps"].toDouble();
    const bool has_shift = ctx->saved_data["has_shift"].toBool();
    const at::Tensor& x = saved[0];
    const auto compute = at::GradMode::is_enabled() || !x.is_cpu() ? ComposedBackward
                         : x.scalar_type() == at::kDouble          ? FusedBackward<double>
                                                                   : FusedBackward<float>;
    variable_list result = compute(x, saved[1], has_shift, gradients[0], kind, eps);
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
