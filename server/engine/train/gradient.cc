#include "server/engine/train/gradient.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "server/engine/model/layers.h"
#include "server/engine/model/transformer.h"

namespace ablate::engine {
namespace {

// LibTorch's reduction adds float32 squares one after the other: at 42 million parameters its norm
// is .4 % too small, and it is infinite where one square is.
template <typename Number>
double SquaredNorm(const Number* values, int64_t count) {
  constexpr int64_t kLanes = 16;
  std::array<double, kLanes> sums{};
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[at + lane];
      sums[lane] += value * value;
    }
  }
  for (int64_t lane = 0; at < count; ++at, ++lane) {
    const double value = values[at];
    sums[lane] += value * value;
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

double RowNorm(const at::Tensor& row) {
  return std::sqrt(row.scalar_type() == at::kDouble
                       ? SquaredNorm(row.const_data_ptr<double>(), row.numel())
                       : SquaredNorm(row.const_data_ptr<float>(), row.numel()));
}

// In pieces, for a copy of all gradients in float64 would be as large as both of Adam's moments.
at::Tensor NormsOnDevice(const at::Tensor& gradients) {
  constexpr int64_t kPiece = 1 << 22;
  const at::Tensor sums = at::zeros({gradients.size(0)}, gradients.options().dtype(at::kDouble));
  for (int64_t at = 0; at < gradients.size(1); at += kPiece) {
    const int64_t size = std::min(kPiece, gradients.size(1) - at);
    sums.add_(gradients.narrow(1, at, size).to(at::kDouble).square_().sum(1));
  }
  return sums.sqrt_();
}

}  // namespace

at::Tensor GradientNorms(const at::Tensor& gradients) {
  if (!gradients.is_cpu()) return NormsOnDevice(gradients);
  at::Tensor norms = at::empty({gradients.size(0)}, at::kDouble);
  for (int64_t run = 0; run < gradients.size(0); ++run) {
    norms.mutable_data_ptr<double>()[run] = RowNorm(gradients[run]);
  }
  return norms;
}

BatchGradient Differentiate(const ModelConfig& model, const Pass& pass, const StackBatch& batch,
                            const FlatParameters& parameters) {
  parameters.gradients().zero_();
  const at::Tensor logits = Logits(model, parameters.model(), batch, pass);  // [R, N, V]
  const at::Tensor losses = RunLosses(logits, batch);                        // [R]
  losses.backward(at::ones_like(losses));
  const at::NoGradGuard no_grad;
  return {losses.detach(), GradientNorms(parameters.gradients())};
}

}  // namespace ablate::engine
