#include "server/engine/torch/model/norm.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "server/engine/core/data/batches.h"
#include "server/engine/torch/model/norm_kernel.h"
#include "server/engine/torch/model/unrecorded.h"

namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Stores the config in an autograd context, which holds only numbers.
void Keep(AutogradContext* ctx, const NormConfig& config) {
  ctx->saved_data["kind"] = static_cast<int64_t>(config.kind);
  ctx->saved_data["deviation"] = static_cast<int64_t>(config.deviation);
  ctx->saved_data["backward"] = static_cast<int64_t>(config.backward);
  ctx->saved_data["eps"] = config.eps;
}

NormConfig KeptConfig(AutogradContext* ctx) {
  NormConfig config;
  config.kind = static_cast<NormKind>(ctx->saved_data["kind"].toInt());
  config.deviation = static_cast<NormDeviation>(ctx->saved_data["deviation"].toInt());
  config.backward = static_cast<NormBackward>(ctx->saved_data["backward"].toInt());
  config.eps = ctx->saved_data["eps"].toDouble();
  return config;
}

// x̂ [N, d] → x̂·gain + shift.
at::Tensor Scaled(at::Tensor x_hat, const NormParameters& parameters) {
  if (parameters.gain.defined()) x_hat = x_hat * parameters.gain;
  return parameters.shift.defined() ? x_hat + parameters.shift : x_hat;
}

// The gradients of x̂, gain and shift, given the gradient of the norm's output.
struct AffineGradients {
  at::Tensor x_hat;  // [N, d]
  at::Tensor gain;   // [d]
  at::Tensor shift;  // [d]
};

AffineGradients BackThroughAffine(const at::Tensor& g, const at::Tensor& x_hat,
                                  const at::Tensor& gain, bool has_shift) {
  AffineGradients gradients = {g, {}, {}};
  if (gain.defined()) gradients.x_hat = g * gain;
  if (gain.defined()) gradients.gain = (g * x_hat).sum(0);
  if (has_shift) gradients.shift = g.sum(0);
  return gradients;
}

// Applies a backward mode: subtracts its parts from the gradient and divides by σ if the mode does.
at::Tensor BackThroughXHat(NormBackward backward, const at::Tensor& dx_hat, const at::Tensor& level,
                           const at::Tensor& along, const at::Tensor& rstd) {
  switch (backward) {
    case NormBackward::kExact:
      return (dx_hat - along - level) * rstd;
    case NormBackward::kCenterScale:
      return (dx_hat - level) * rstd;
    case NormBackward::kProjected:
      return dx_hat - along - level;
    case NormBackward::kIdentity:
      return dx_hat;
  }
  TORCH_CHECK(false, "unknown backward mode of a norm");
}

struct Standardised {
  at::Tensor x_hat;  // [N, d]
  at::Tensor rstd;   // 1/σ
  // x̂·(Σ g·x̂ / divisor) is the component of g along x̂. Undefined: d, which makes the sum a mean.
  at::Tensor divisor;
};

Standardised StandardiseTokens(const at::Tensor& x, const NormConfig& config) {
  const double d = static_cast<double>(x.size(1));
  const at::Tensor centred = FormulaOf(config.kind).centres ? x - x.mean(-1, true) : x;  // [N, d]
  if (!FormulaOf(config.kind).averages) {
    const at::Tensor rstd = (centred.square().sum(-1, true) + config.eps).rsqrt();
    return {centred * rstd, rstd, at::ones_like(rstd)};
  }
  if (config.deviation == NormDeviation::kPopulation) {
    const at::Tensor rstd = (centred.square().mean(-1, true) + config.eps).rsqrt();
    return {centred * rstd, rstd, {}};
  }
  const at::Tensor squares = centred.square().sum(-1, true);  // [N, 1]
  // A token of equal features has x̂ = 0, and no component along it.
  const at::Tensor flat = squares.eq(0);
  const at::Tensor deviation = (squares.masked_fill(flat, 1) / (d - 1)).sqrt().masked_fill(flat, 0);
  const at::Tensor rstd = (deviation + config.eps).reciprocal();
  const at::Tensor divisor = ((d - 1) * deviation * rstd).masked_fill(flat, 1);
  return {centred * rstd, rstd, divisor};
}

at::Tensor ComposedForward(const at::Tensor& x, const NormParameters& parameters,
                           const NormConfig& config) {
  return Scaled(StandardiseTokens(x, config).x_hat, parameters);
}

variable_list ComposedBackward(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                               const at::Tensor& g, const NormConfig& config) {
  const auto [x_hat, rstd, divisor] = StandardiseTokens(x, config);
  const auto [dx_hat, dgain, dshift] = BackThroughAffine(g, x_hat, gain, has_shift);
  const at::Tensor level = FormulaOf(config.kind).centres
                               ? dx_hat.mean(-1, true)
                               : at::zeros({1}, dx_hat.options());  // [N, 1]
  const at::Tensor coefficient = divisor.defined() ? (dx_hat * x_hat).sum(-1, true) / divisor
                                                   : (dx_hat * x_hat).mean(-1, true);  // [N, 1]
  const at::Tensor along = x_hat * coefficient;                                        // [N, d]
  return {BackThroughXHat(config.backward, dx_hat, level, along, rstd), dgain, dshift};
}

// Returns the elements of an optional [d] tensor, or null.
template <typename Scalar>
const Scalar* DataOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  TORCH_CHECK(tensor.is_contiguous(), "a norm's parameters must lie side by side");
  return tensor.const_data_ptr<Scalar>();
}

// Returns the kernel's arguments for contiguous x [N, d].
template <typename Scalar>
NormRows<Scalar> RowsOf(const at::Tensor& x, const NormParameters& parameters,
                        const NormConfig& config) {
  return {x.const_data_ptr<Scalar>(),
          DataOf<Scalar>(parameters.gain),
          DataOf<Scalar>(parameters.shift),
          x.size(0),
          x.size(1),
          config};
}

template <typename Scalar>
at::Tensor FusedForward(const at::Tensor& x, const NormParameters& parameters,
                        const NormConfig& config) {
  const at::Tensor rows = x.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());  // [N, d]
  NormRowsForward(RowsOf<Scalar>(rows, parameters, config), y.mutable_data_ptr<Scalar>());
  return y;
}

template <typename Scalar>
variable_list FusedBackward(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                            const at::Tensor& gradient, const NormConfig& config) {
  const at::Tensor rows = x.contiguous();
  const at::Tensor g = gradient.contiguous();         // [N, d]
  at::Tensor dx = at::empty(x.sizes(), x.options());  // [N, d]
  at::Tensor dgain, dshift;
  if (gain.defined()) dgain = at::zeros({x.size(1)}, x.options());  // [d]
  if (has_shift) dshift = at::zeros({x.size(1)}, x.options());      // [d]
  const auto data = [](const at::Tensor& sum) {
    return sum.defined() ? sum.mutable_data_ptr<Scalar>() : nullptr;
  };
  NormRowsBackward(RowsOf<Scalar>(rows, {.gain = gain}, config), g.const_data_ptr<Scalar>(),
                   dx.mutable_data_ptr<Scalar>(), data(dgain), data(dshift));
  return {dx, dgain, dshift};
}

// Returns true if LibTorch has the norm as one kernel of a device.
bool HasDeviceKernel(const at::Tensor& x, const NormConfig& config) {
  return !x.is_cpu() && FormulaOf(config.kind).averages &&
         config.deviation == NormDeviation::kPopulation;
}

// The output of a norm by a device's kernel, and what its backward kernel needs.
struct DeviceNorm {
  at::Tensor y;     // [N, d]
  at::Tensor mean;  // [N, 1]; undefined for RMSNorm
  at::Tensor rstd;  // [N, 1]
};

DeviceNorm DeviceForward(const at::Tensor& x, const NormParameters& parameters,
                         const NormConfig& config) {
  const auto gain = IfDefined(parameters.gain), shift = IfDefined(parameters.shift);
  if (config.kind == NormKind::kLayer) {
    auto [y, mean, rstd] = at::native_layer_norm(x, {x.size(1)}, gain, shift, config.eps);
    return {y, mean, rstd};
  }
  auto [y, rstd] = at::_fused_rms_norm(x, {x.size(1)}, gain, config.eps);
  return {shift.has_value() ? y + *shift : y, {}, rstd};
}

variable_list DeviceBackward(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                             const at::Tensor& gradient, const at::Tensor& mean,
                             const at::Tensor& rstd) {
  const at::Tensor g = gradient.contiguous();  // [N, d]
  const bool has_gain = gain.defined();
  if (mean.defined()) {
    // The kernel reads from a shift only whether there is one.
    const at::Tensor shift = has_shift ? (has_gain ? gain : x.select(0, 0)) : at::Tensor();
    auto [dx, dgain, dshift] =
        at::native_layer_norm_backward(g, x, {x.size(1)}, mean, rstd, IfDefined(gain),
                                       IfDefined(shift), {true, has_gain, has_shift});
    return {dx, dgain, dshift};
  }
  auto [dx, dgain] =
      at::_fused_rms_norm_backward(g, x, {x.size(1)}, rstd, IfDefined(gain), {true, has_gain});
  return {dx, dgain, has_shift ? g.sum(0) : at::Tensor()};
}

// A norm over the features of each token. Uses fused loops on the CPU, a device's kernels where
// LibTorch has them, and composed operations elsewhere and for second derivatives.
class TokenNorm : public torch::autograd::Function<TokenNorm> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const std::optional<at::Tensor>& gain,
                            const std::optional<at::Tensor>& shift, const NormConfig& config) {
    const Unrecorded unrecorded;
    const NormParameters parameters = {.gain = gain.value_or(at::Tensor()),
                                       .shift = shift.value_or(at::Tensor())};
    Keep(ctx, config);
    ctx->saved_data["has_shift"] = shift.has_value();
    if (HasDeviceKernel(x, config)) {
      DeviceNorm norm = DeviceForward(x, parameters, config);
      ctx->save_for_backward({x, parameters.gain, norm.mean, norm.rstd});
      return norm.y;
    }
    ctx->save_for_backward({x, parameters.gain});
    const auto compute = !x.is_cpu()                      ? ComposedForward
                         : x.scalar_type() == at::kDouble ? FusedForward<double>
                                                          : FusedForward<float>;
    return compute(x, parameters, config);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const Unrecorded unrecorded;
    const variable_list saved = ctx->get_saved_variables();
    const bool has_shift = ctx->saved_data["has_shift"].toBool();
    const at::Tensor& x = saved[0];
    const NormConfig config = KeptConfig(ctx);
    const bool twice = at::GradMode::is_enabled();
    const auto compute = twice || !x.is_cpu()             ? ComposedBackward
                         : x.scalar_type() == at::kDouble ? FusedBackward<double>
                                                          : FusedBackward<float>;
    const bool by_kernel =
        !twice && HasDeviceKernel(x, config) && config.backward == NormBackward::kExact;
    variable_list result =
        by_kernel ? DeviceBackward(x, saved[1], has_shift, gradients[0], saved[2], saved[3])
                  : compute(x, saved[1], has_shift, gradients[0], config);
    result.resize(4);  // the config has no gradient
    return result;
  }
};

// Moments of a batch, by feature over its real positions.
struct BatchMoments {
  at::Tensor mean;      // [1, d]
  at::Tensor centred;   // x without the mean, [N, d]
  at::Tensor variance;  // population, [1, d]
};

at::Tensor RealOnly(const at::Tensor& x, const at::Tensor& real) {
  return real.defined() ? x * real : x;
}

BatchMoments MomentsOf(const at::Tensor& x, const at::Tensor& real, const at::Tensor& count) {
  BatchMoments moments;
  moments.mean = RealOnly(x, real).sum(0, true) / count;
  moments.centred = x - moments.mean;
  moments.variance = RealOnly(moments.centred.square(), real).sum(0, true) / count;
  return moments;
}

// Updates running statistics, with torch.nn.BatchNorm1d's momentum of 0.1.
void Track(const BatchMoments& moments, const at::Tensor& count, const NormParameters& parameters) {
  constexpr double kMomentum = 0.1;
  const at::Tensor unbiased = moments.variance * (count / (count - 1));
  const auto move = [&](const at::Tensor& running, const at::Tensor& value) {
    running.mul_(1 - kMomentum).add_(value.squeeze(0), kMomentum);
  };
  move(parameters.running_mean, moments.mean);
  move(parameters.running_variance, unbiased);
}

// A norm over the positions of a batch, by feature.
class PositionNorm : public torch::autograd::Function<PositionNorm> {
 public:
  // `x`, `gain` and `shift` are passed for autograd, which sees neither those in `parameters` nor
  // the running statistics.
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const std::optional<at::Tensor>& gain,
                            const std::optional<at::Tensor>& shift,
                            const NormParameters& parameters, const NormPass& pass) {
    const BatchMoments moments = MomentsOf(x, pass.real, pass.count);
    if (pass.statistics == Statistics::kBatchAndTrack) Track(moments, pass.count, parameters);
    const at::Tensor rstd = (moments.variance + pass.config.eps).rsqrt();  // [1, d]
    ctx->save_for_backward(
        {x, gain.value_or(at::Tensor()), pass.real, pass.count, moments.mean, rstd});
    Keep(ctx, pass.config);
    ctx->saved_data["has_shift"] = shift.has_value();
    return Scaled(moments.centred * rstd, parameters);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const NormConfig config = KeptConfig(ctx);
    const at::Tensor& x = saved[0];
    const at::Tensor& real = saved[2];
    const at::Tensor& count = saved[3];
    const auto [centred, rstd] = Standardising(x, real, count, saved[4], saved[5], config.eps);
    const at::Tensor x_hat = RealOnly(centred * rstd, real);  // [N, d]
    const at::Tensor g = RealOnly(gradients[0], real);        // [N, d]
    const auto [dx_hat, dgain, dshift] =
        BackThroughAffine(g, x_hat, saved[1], ctx->saved_data["has_shift"].toBool());
    const at::Tensor level = dx_hat.sum(0, true) / count;                      // [1, d]
    const at::Tensor along = x_hat * ((dx_hat * x_hat).sum(0, true) / count);  // [N, d]
    const at::Tensor dx = BackThroughXHat(config.backward, dx_hat, level, along, rstd);
    return {RealOnly(dx, real), dgain, dshift, {}, {}};
  }

 private:
  struct Factors {
    at::Tensor centred;  // x − μ
    at::Tensor rstd;     // 1/σ
  };

  // Uses the forward pass's mean and 1/σ, unless the backward pass itself is differentiated: they
  // depend on x then.
  static Factors Standardising(const at::Tensor& x, const at::Tensor& real, const at::Tensor& count,
                               const at::Tensor& mean, const at::Tensor& rstd, double eps) {
    if (!at::GradMode::is_enabled()) return {x - mean, rstd};
    const BatchMoments moments = MomentsOf(x, real, count);
    return {moments.centred, (moments.variance + eps).rsqrt()};
  }
};

// Is composed of basic operations, so that it is twice differentiable.
at::Tensor PointwiseNorm(const at::Tensor& x, const NormParameters& parameters, NormKind kind) {
  const at::Tensor scaled = x * parameters.alpha;  // [N, d]
  return Scaled(kind == NormKind::kDyt ? scaled.tanh() : (scaled + parameters.offset).erf(),
                parameters);
}

at::Tensor BatchNorm(const at::Tensor& x, const NormParameters& parameters, const NormPass& pass) {
  if (pass.statistics == Statistics::kRunning) {
    const at::Tensor rstd = (parameters.running_variance + pass.config.eps).rsqrt();
    return Scaled((x - parameters.running_mean) * rstd, parameters);
  }
  return PositionNorm::apply(x, IfDefined(parameters.gain), IfDefined(parameters.shift), parameters,
                             pass);
}

}  // namespace

NormPass MakeNormPass(const NormConfig& config, Statistics statistics, const at::Tensor& real,
                      int64_t real_positions, at::TensorOptions options) {
  TORCH_CHECK(statistics != Statistics::kBatchAndTrack || real_positions > 1, kOnePosition);
  const at::Tensor count = real.defined()
                               ? real.sum(0, true)
                               : at::full({1, 1}, static_cast<double>(real_positions), options);
  return {config, statistics, real, count};
}

at::Tensor GainOf(const NormParameters& parameters, const NormConfig& config) {
  const bool one_plus = config.gain_form == GainForm::kOnePlus && parameters.gain.defined();
  return one_plus ? parameters.gain + 1 : parameters.gain;
}

at::Tensor Norm(const at::Tensor& x, const NormParameters& parameters, const NormPass& pass) {
  if (x.scalar_type() == at::kBFloat16) return Norm(x.to(at::kFloat), parameters, pass);
  NormParameters with = parameters;
  with.gain = GainOf(parameters, pass.config);
  if (pass.config.kind == NormKind::kBatch) return BatchNorm(x, with, pass);
  if (IsPointwise(pass.config.kind)) return PointwiseNorm(x, with, pass.config.kind);
  return TokenNorm::apply(x, IfDefined(with.gain), IfDefined(with.shift), pass.config);
}

}  // namespace ablate::engine
