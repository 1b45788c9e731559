#include "server/engine/torch/model/gelu.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "server/engine/torch/model/unrecorded.h"

namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kLarge = 1 << 16;  // elements from which the parts pay
constexpr int64_t kPart = 1 << 14;

at::Tensor Slope(const at::Tensor& g, const at::Tensor& x) {
  return at::gelu_backward(g, x, "tanh");
}

// Returns f″(x). With t = tanh(u), u = β(x + κx³): f″ = (1 − t²)·(u′ + x/2·(u″ − 2t·u′²)).
at::Tensor Curvature(const at::Tensor& x) {
  constexpr double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kKappa = 0.044715;
  const at::Tensor square = x * x;
  const at::Tensor t = (square * kKappa).add_(1).mul_(x).mul_(kBeta).tanh_();
  const at::Tensor slope = (square * (3 * kBeta * kKappa)).add_(kBeta);        // u′
  const at::Tensor bend = (slope * slope).mul_(t).mul_(-2).mul_(x).mul_(0.5);  // −x·t·u′²
  const at::Tensor inner = bend.add_(square, 3 * kBeta * kKappa).add_(slope);  // x/2·u″ = 3βκx²
  return inner.mul_((t * t).neg_().add_(1));
}

// The gradient g·f′(x) as an operation of its own.
class GeluSlope : public torch::autograd::Function<GeluSlope> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& g, const at::Tensor& x) {
    const Unrecorded unrecorded;
    ctx->save_for_backward({g, x});
    return Slope(g, x);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "GELU has no third derivative here");
    const Unrecorded unrecorded;
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor v = gradients[0].contiguous(), g = saved[0].contiguous();
    const at::Tensor x = saved[1].contiguous();
    at::Tensor dg, dx;
    if (ctx->needs_input_grad(0)) dg = Slope(v, x);
    if (!ctx->needs_input_grad(1)) return {dg, dx};
    dx = at::empty_like(x);
    for (int64_t first = 0; first < x.numel(); first += kPart) {
      const int64_t count = std::min(kPart, x.numel() - first);
      const auto part = [&](const at::Tensor& of) { return of.view(-1).narrow(0, first, count); };
      at::Tensor to = part(dx);
      at::mul_out(to, part(v), part(g)).mul_(Curvature(part(x)));
    }
    return {dg, dx};
  }
};

class LargeGelu : public torch::autograd::Function<LargeGelu> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    const Unrecorded unrecorded;
    ctx->save_for_backward({x});
    return at::gelu(x, "tanh");
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const at::Tensor x = ctx->get_saved_variables()[0];
    if (at::GradMode::is_enabled()) return {GeluSlope::apply(gradients[0], x)};
    const Unrecorded unrecorded;
    return {Slope(gradients[0], x)};
  }
};

}  // namespace

at::Tensor GeluTanh(const at::Tensor& x) {
  if (x.is_cpu() && x.requires_grad() && x.numel() >= kLarge) return LargeGelu::apply(x);
  return at::gelu(x, "tanh");
}

}  // namespace ablate::engine
