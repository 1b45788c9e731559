// The norm's loops: rows one after another, sums in a fixed number of lanes so that they vectorise
// and never depend on how many rows or runs there are.
#include "server/engine/model/norm_kernel.h"

#include <cmath>

namespace ablate::engine {
namespace {

constexpr int64_t kLanes = 16;

// Σ_j term(j), j < n, in kLanes partial sums.
template <typename Scalar, typename Term>
inline Scalar LaneSum(int64_t n, const Term& term) {
  Scalar lane[kLanes] = {};
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lane[k] += term(j + k);
  }
  for (int64_t k = 0; j < n; ++j, ++k) lane[k] += term(j);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) lane[k] += lane[k + half];
  }
  return lane[0];
}

template <typename Scalar>
struct RowStatistics {
  Scalar mean;     // 0 for RMSNorm
  Scalar inverse;  // 1/σ
};

template <typename Scalar>
inline RowStatistics<Scalar> StatisticsOf(const Scalar* x, int64_t d, NormKind kind, Scalar eps) {
  const Scalar n = static_cast<Scalar>(d);
  const Scalar mean = kind == NormKind::kLayer
                          ? LaneSum<Scalar>(d, [x](int64_t j) { return x[j]; }) / n
                          : Scalar(0);
  const Scalar squares =
      LaneSum<Scalar>(d, [x, mean](int64_t j) { return (x[j] - mean) * (x[j] - mean); });
  return {mean, Scalar(1) / std::sqrt(squares / n + eps)};
}

// A run's row [d] of an optional parameter, or `neutral`.
template <typename Scalar>
const Scalar* RowOf(const at::Tensor& parameter, int64_t run, const std::vector<Scalar>& neutral) {
  return parameter.defined() ? parameter.const_data_ptr<Scalar>() + run * parameter.stride(0)
                             : neutral.data();
}

template <typename Scalar>
at::Tensor Forward(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift,
                   NormKind kind, Scalar eps) {
  const int64_t rows = x.size(1), d = x.size(2);
  const std::vector<Scalar> ones(d, Scalar(1)), zeros(d, Scalar(0));
  at::Tensor out = at::empty(x.sizes(), x.options());
  const Scalar* from = x.const_data_ptr<Scalar>();
  Scalar* to = out.mutable_data_ptr<Scalar>();
  for (int64_t run = 0; run < x.size(0); ++run) {
    const Scalar* scale = RowOf(gain, run, ones);
    const Scalar* offset = RowOf(shift, run, zeros);
    for (int64_t row = 0; row < rows; ++row, from += d, to += d) {
      const auto [mean, inverse] = StatisticsOf(from, d, kind, eps);
      for (int64_t j = 0; j < d; ++j) to[j] = (from[j] - mean) * inverse * scale[j] + offset[j];
    }
  }
  return out;
}

// One row: dx, and its parts of dgain and dshift.
template <typename Scalar>
inline void BackwardRow(const Scalar* x, const Scalar* g, const Scalar* scale, int64_t d,
                        NormKind kind, Scalar eps, Scalar* dx, Scalar* dgain, Scalar* dshift) {
  const auto [mean, inverse] = StatisticsOf(x, d, kind, eps);
  const Scalar n = static_cast<Scalar>(d);
  const Scalar radial =
      LaneSum<Scalar>(d, [=](int64_t j) { return g[j] * scale[j] * (x[j] - mean); }) * inverse / n;
  const Scalar level = kind == NormKind::kLayer
                           ? LaneSum<Scalar>(d, [=](int64_t j) { return g[j] * scale[j]; }) / n
                           : Scalar(0);
  for (int64_t j = 0; j < d; ++j) {
    const Scalar z = (x[j] - mean) * inverse;
    dgain[j] += g[j] * z;
    dshift[j] += g[j];
    dx[j] = (g[j] * scale[j] - level - z * radial) * inverse;
  }
}

template <typename Scalar>
std::vector<at::Tensor> Backward(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                                 const at::Tensor& gradient, NormKind kind, Scalar eps) {
  const int64_t runs = x.size(0), rows = x.size(1), d = x.size(2);
  const std::vector<Scalar> ones(d, Scalar(1));
  at::Tensor dx = at::empty(x.sizes(), x.options());
  at::Tensor dgain = at::zeros({runs, d}, x.options());
  at::Tensor dshift = at::zeros({runs, d}, x.options());
  const Scalar* from = x.const_data_ptr<Scalar>();
  const Scalar* g = gradient.const_data_ptr<Scalar>();
  Scalar* to = dx.mutable_data_ptr<Scalar>();
  for (int64_t run = 0; run < runs; ++run) {
    const Scalar* scale = RowOf(gain, run, ones);
    Scalar* run_dgain = dgain.mutable_data_ptr<Scalar>() + run * d;
    Scalar* run_dshift = dshift.mutable_data_ptr<Scalar>() + run * d;
    for (int64_t row = 0; row < rows; ++row, from += d, g += d, to += d) {
      BackwardRow(from, g, scale, d, kind, eps, to, run_dgain, run_dshift);
    }
  }
  return {dx, gain.defined() ? dgain : at::Tensor(), has_shift ? dshift : at::Tensor()};
}

}  // namespace

at::Tensor NormForwardCpu(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift,
                          NormKind kind, double eps) {
  const at::Tensor rows = x.contiguous();
  return x.scalar_type() == at::kDouble
             ? Forward<double>(rows, gain, shift, kind, eps)
             : Forward<float>(rows, gain, shift, kind, static_cast<float>(eps));
}

std::vector<at::Tensor> NormBackwardCpu(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                                        const at::Tensor& gradient, NormKind kind, double eps) {
  const at::Tensor rows = x.contiguous();
  const at::Tensor g = gradient.contiguous();
  return x.scalar_type() == at::kDouble
             ? Backward<double>(rows, gain, has_shift, g, kind, eps)
             : Backward<float>(rows, gain, has_shift, g, kind, static_cast<float>(eps));
}

}  // namespace ablate::engine
