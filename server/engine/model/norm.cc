#include "server/engine/model/norm.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "server/engine/data/batches.h"
#include "server/engine/model/norm_kernel.h"
#include "server/engine/model/unrecorded.h"

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

NormConfig Kept(AutogradContext* ctx) {
  NormConfig config;
  config.kind = static_cast<NormKind>(ctx->saved_data["kind"].toInt());
  config.deviation = static_cast<NormDeviation>(ctx->saved_data["deviation"].toInt());
  config.backward = static_cast<NormBackward>(ctx->saved_data["backward"].toInt());
  config.eps = ctx->saved_data["eps"].toDouble();
  return config;
}

// z [N, d] → z·gain + shift.
at::Tensor Scaled(at::Tensor z, const NormParameters& parameters) {
  if (parameters.gain.defined()) z = z * parameters.gain;
  return parameters.shift.defined() ? z + parameters.shift : z;
}

// The gradients of z, gain and shift, given the gradient of the norm's output.
struct AffineGradients {
  at::Tensor z;      // [N, d]
  at::Tensor gain;   // [d]
  at::Tensor shift;  // [d]
};

AffineGradients BackThroughAffine(const at::Tensor& g, const at::Tensor& z, const at::Tensor& gain,
                                  bool has_shift) {
  AffineGradients gradients = {g, {}, {}};
  if (gain.defined()) gradients.z = g * gain;
  if (gain.defined()) gradients.gain = (g * z).sum(0);
  if (has_shift) gradients.shift = g.sum(0);
  return gradients;
}

// Applies a backward mode: subtracts its parts from the gradient and divides by σ if the mode does.
at::Tensor BackThroughZ(NormBackward backward, const at::Tensor& dz, const at::Tensor& level,
                        const at::Tensor& along, const at::Tensor& inverse) {
  switch (backward) {
    case NormBackward::kExact:
      return (dz - along - level) * inverse;
    case NormBackward::kCenterScale:
      return (dz - level) * inverse;
    case NormBackward::kProjected:
      return dz - along - level;
    case NormBackward::kIdentity:
      return dz;
  }
  TORCH_CHECK(false, "unknown backward mode of a norm");
}

struct Standardised {
  at::Tensor z;        // [N, d]
  at::Tensor inverse;  // 1/σ
  // z·(Σ gz / divisor) is the component of g along z. Undefined: d, which makes the sum a mean.
  at::Tensor divisor;
};

Standardised StandardiseTokens(const at::Tensor& x, const NormConfig& config) {
  const double d = static_cast<double>(x.size(1));
  const at::Tensor centred = FormulaOf(config.kind).centres ? x - x.mean(-1, true) : x;  // [N, d]
  if (!FormulaOf(config.kind).averages) {
    const at::Tensor inverse = (centred.square().sum(-1, true) + config.eps).rsqrt();
    return {centred * inverse, inverse, at::ones_like(inverse)};
  }
  if (config.deviation == NormDeviation::kPopulation) {
    const at::Tensor inverse = (centred.square().mean(-1, true) + config.eps).rsqrt();
    return {centred * inverse, inverse, {}};
  }
  const at::Tensor squares = centred.square().sum(-1, true);  // [N, 1]
  // A token of equal features has z = 0, and no component along it.
  const at::Tensor flat = squares.eq(0);
  const at::Tensor deviation = (squares.masked_fill(flat, 1) / (d - 1)).sqrt().masked_fill(flat, 0);
  const at::Tensor inverse = (deviation + config.eps).reciprocal();
  const at::Tensor divisor = ((d - 1) * deviation * inverse).masked_fill(flat, 1);
  return {centred * inverse, inverse, divisor};
}

at::Tensor ComposedForward(const at::Tensor& x, const NormParameters& parameters,
                           const NormConfig& config) {
  return Scaled(StandardiseTokens(x, config).z, parameters);
}

variable_list ComposedBackward(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                               const at::Tensor& g, const NormConfig& config) {
  const auto [z, inverse, divisor] = StandardiseTokens(x, config);
  const auto [dz, dgain, dshift] = BackThroughAffine(g, z, gain, has_shift);
  const at::Tensor level =
      FormulaOf(config.kind).centres ? dz.mean(-1, true) : at::zeros({1}, dz.options());  // [N, 1]
  const at::Tensor share =
      divisor.defined() ? (dz * z).sum(-1, true) / divisor : (dz * z).mean(-1, true);  // [N, 1]
  const at::Tensor along = z * share;                                                  // [N, d]
  return {BackThroughZ(config.backward, dz, level, along, inverse), dgain, dshift};
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
  NormRowsBackward(RowsOf<Scalar>(rows, {gain, {}, {}, {}}, config), g.const_data_ptr<Scalar>(),
                   dx.mutable_data_ptr<Scalar>(), data(dgain), data(dshift));
  return {dx, dgain, dshift};
}

// A norm over the features of each token. Uses fused loops on the CPU, and composed operations
// elsewhere and for second derivatives.
class TokenNorm : public torch::autograd::Function<TokenNorm> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const std::optional<at::Tensor>& gain,
                            const std::optional<at::Tensor>& shift, const NormConfig& config) {
    const Unrecorded unrecorded;
    const NormParameters parameters = {
        gain.value_or(at::Tensor()), shift.value_or(at::Tensor()), {}, {}};
    ctx->save_for_backward({x, parameters.gain});
    Keep(ctx, config);
    ctx->saved_data["has_shift"] = shift.has_value();
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
    const auto compute = at::GradMode::is_enabled() || !x.is_cpu() ? ComposedBackward
                         : x.scalar_type() == at::kDouble          ? FusedBackward<double>
                                                                   : FusedBackward<float>;
    variable_list result = compute(x, saved[1], has_shift, gradients[0], Kept(ctx));
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
    const at::Tensor inverse = (moments.variance + pass.config.eps).rsqrt();  // [1, d]
    ctx->save_for_backward(
        {x, gain.value_or(at::Tensor()), pass.real, pass.count, moments.mean, inverse});
    Keep(ctx, pass.config);
    ctx->saved_data["has_shift"] = shift.has_value();
    return Scaled(moments.centred * inverse, parameters);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const NormConfig config = Kept(ctx);
    const at::Tensor& x = saved[0];
    const at::Tensor& real = saved[2];
    const at::Tensor& count = saved[3];
    const auto [centred, inverse] = Standardising(x, real, count, saved[4], saved[5], config.eps);
    const at::Tensor z = RealOnly(centred * inverse, real);  // [N, d]
    const at::Tensor g = RealOnly(gradients[0], real);       // [N, d]
    const auto [dz, dgain, dshift] =
        BackThroughAffine(g, z, saved[1], ctx->saved_data["has_shift"].toBool());
    const at::Tensor level = dz.sum(0, true) / count;              // [1, d]
    const at::Tensor along = z * ((dz * z).sum(0, true) / count);  // [N, d]
    const at::Tensor dx = BackThroughZ(config.backward, dz, level, along, inverse);
    return {RealOnly(dx, real), dgain, dshift, {}, {}};
  }

 private:
  struct Factors {
    at::Tensor centred;  // x − μ
    at::Tensor inverse;  // 1/σ
  };

  // Uses the forward pass's mean and 1/σ, unless the backward pass itself is differentiated: they
  // depend on x then.
  static Factors Standardising(const at::Tensor& x, const at::Tensor& real, const at::Tensor& count,
                               const at::Tensor& mean, const at::Tensor& inverse, double eps) {
    if (!at::GradMode::is_enabled()) return {x - mean, inverse};
    const BatchMoments moments = MomentsOf(x, real, count);
    return {moments.centred, (moments.variance + eps).rsqrt()};
  }
};

at::Tensor BatchNorm(const at::Tensor& x, const NormParameters& parameters, const NormPass& pass) {
  if (pass.statistics == Statistics::kRunning) {
    const at::Tensor inverse = (parameters.running_variance + pass.config.eps).rsqrt();
    return Scaled((x - parameters.running_mean) * inverse, parameters);
  }
  return PositionNorm::apply(x, IfDefined(parameters.gain), IfDefined(parameters.shift), parameters,
                             pass);
}

}  // namespace

NormPass BatchPass(const NormConfig& config, Statistics statistics, const at::Tensor& real,
                   int64_t positions, at::TensorOptions options) {
  const at::Tensor count = real.defined()
                               ? real.sum(0, true)
                               : at::full({1, 1}, static_cast<double>(positions), options);
  if (statistics == Statistics::kBatchAndTrack) {
    // Without padding no synchronisation with the device is needed.
    const bool several = real.defined() ? count.min().item<double>() > 1 : positions > 1;
    TORCH_CHECK(several, kOnePosition);
  }
  return {config, statistics, real, count};
}

at::Tensor Norm(const at::Tensor& x, const NormParameters& parameters, const NormPass& pass) {
  if (pass.config.kind == NormKind::kBatch) return BatchNorm(x, parameters, pass);
  return TokenNorm::apply(x, IfDefined(parameters.gain), IfDefined(parameters.shift), pass.config);
}

}  // namespace ablate::engine
