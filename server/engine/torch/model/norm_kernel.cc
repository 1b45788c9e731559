// The norm's loops: row by row, with sums in a fixed number of lanes, so that they vectorize and
// don't depend on the number of rows.
#include "server/engine/torch/model/norm_kernel.h"

#include <cmath>
#include <limits>

namespace ablate::engine {
namespace {

constexpr int64_t kLanes = 16;

// Returns Σ_j term(j), j < n, in kLanes partial sums.
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
  Scalar mean;  // 0 if the kind doesn't centre
  Scalar rstd;  // 1/σ
  // x̂·(Σ g·x̂ / divisor) is the component of the gradient g along x̂.
  Scalar divisor;
};

template <typename Scalar>
inline RowStatistics<Scalar> StatisticsOf(const Scalar* x, const NormRows<Scalar>& norm) {
  const Scalar n = static_cast<Scalar>(norm.d);
  const Scalar eps = static_cast<Scalar>(norm.config.eps);
  const Scalar mean = FormulaOf(norm.config.kind).centres
                          ? LaneSum<Scalar>(norm.d, [x](int64_t j) { return x[j]; }) / n
                          : Scalar(0);
  const Scalar squares =
      LaneSum<Scalar>(norm.d, [x, mean](int64_t j) { return (x[j] - mean) * (x[j] - mean); });
  if (!FormulaOf(norm.config.kind).averages) return {mean, Scalar(1) / std::sqrt(squares + eps), 1};
  if (norm.config.deviation == NormDeviation::kPopulation) {
    return {mean, Scalar(1) / std::sqrt(squares / n + eps), n};
  }
  // A token of equal features has x̂ = 0, and no component along it.
  const Scalar deviation = std::sqrt(squares / (n - 1));
  const Scalar rstd = Scalar(1) / (deviation + eps);
  const Scalar divisor =
      deviation > 0 ? (n - 1) * deviation * rstd : std::numeric_limits<Scalar>::infinity();
  return {mean, rstd, divisor};
}

template <typename Scalar>
inline void ForwardRows(const NormRows<Scalar>& norm, Scalar* y) {
  const int64_t d = norm.d;
  for (int64_t row = 0; row < norm.rows; ++row) {
    const Scalar* x = norm.x + row * d;
    Scalar* __restrict to = y + row * d;
    const RowStatistics<Scalar> is = StatisticsOf(x, norm);
    for (int64_t j = 0; j < d; ++j) to[j] = (x[j] - is.mean) * is.rstd;
    if (norm.gain != nullptr) {
      for (int64_t j = 0; j < d; ++j) to[j] *= norm.gain[j];
    }
    if (norm.shift != nullptr) {
      for (int64_t j = 0; j < d; ++j) to[j] += norm.shift[j];
    }
  }
}

template <typename Scalar>
inline void BackwardRows(const NormRows<Scalar>& norm, const Scalar* g, Scalar* dx,
                         Scalar* __restrict dgain, Scalar* __restrict dshift) {
  const int64_t d = norm.d;
  const Scalar n = static_cast<Scalar>(d);
  const bool centres = FormulaOf(norm.config.kind).centres;
  const bool along = norm.config.backward != NormBackward::kCenterScale;
  const bool scales = norm.config.backward != NormBackward::kProjected;
  for (int64_t row = 0; row < norm.rows; ++row, g += d) {
    const Scalar* x = norm.x + row * d;
    Scalar* __restrict to = dx + row * d;
    const RowStatistics<Scalar> is = StatisticsOf(x, norm);
    const auto x_hat = [&is, x](int64_t j) { return (x[j] - is.mean) * is.rstd; };
    if (dgain != nullptr) {
      for (int64_t j = 0; j < d; ++j) dgain[j] += g[j] * x_hat(j);
    }
    if (dshift != nullptr) {
      for (int64_t j = 0; j < d; ++j) dshift[j] += g[j];
    }
    for (int64_t j = 0; j < d; ++j) to[j] = norm.gain != nullptr ? g[j] * norm.gain[j] : g[j];
    if (norm.config.backward == NormBackward::kIdentity) continue;
    const Scalar radial =
        along ? LaneSum<Scalar>(d, [&](int64_t j) { return to[j] * x_hat(j); }) / is.divisor
              : Scalar(0);
    const Scalar level =
        centres ? LaneSum<Scalar>(d, [to](int64_t j) { return to[j]; }) / n : Scalar(0);
    const Scalar scale = scales ? is.rstd : Scalar(1);
    for (int64_t j = 0; j < d; ++j) to[j] = (to[j] - level - x_hat(j) * radial) * scale;
  }
}

}  // namespace

// Also compiled for AVX2 and selected at run time. Both versions give the same bits: AVX2 alone has
// no fused multiply-add, and sums use a fixed number of lanes. clang doesn't support flattened
// clones, and without flattening the loops wouldn't be compiled for AVX2.
#if defined(__x86_64__) && !defined(__clang__)
#define ABLATE_VECTOR_CLONES __attribute__((target_clones("avx2", "default"), flatten))
#else
#define ABLATE_VECTOR_CLONES
#endif

ABLATE_VECTOR_CLONES void NormRowsForward(const NormRows<float>& norm, float* y) {
  ForwardRows(norm, y);
}

ABLATE_VECTOR_CLONES void NormRowsForward(const NormRows<double>& norm, double* y) {
  ForwardRows(norm, y);
}

ABLATE_VECTOR_CLONES void NormRowsBackward(const NormRows<float>& norm, const float* g, float* dx,
                                           float* dgain, float* dshift) {
  BackwardRows(norm, g, dx, dgain, dshift);
}

ABLATE_VECTOR_CLONES void NormRowsBackward(const NormRows<double>& norm, const double* g,
                                           double* dx, double* dgain, double* dshift) {
  BackwardRows(norm, g, dx, dgain, dshift);
}

#undef ABLATE_VECTOR_CLONES

}  // namespace ablate::engine
