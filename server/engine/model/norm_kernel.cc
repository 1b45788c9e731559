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
inline RowStatistics<Scalar> StatisticsOf(const Scalar* x, const NormRows<Scalar>& norm) {
  const Scalar n = static_cast<Scalar>(norm.d);
  const Scalar mean = norm.kind == NormKind::kLayer
                          ? LaneSum<Scalar>(norm.d, [x](int64_t j) { return x[j]; }) / n
                          : Scalar(0);
  const Scalar squares =
      LaneSum<Scalar>(norm.d, [x, mean](int64_t j) { return (x[j] - mean) * (x[j] - mean); });
  return {mean, Scalar(1) / std::sqrt(squares / n + norm.eps)};
}

template <typename Scalar>
inline void ForwardRows(const NormRows<Scalar>& norm, Scalar* y) {
  const int64_t d = norm.d;
  for (int64_t row = 0; row < norm.rows; ++row) {
    const Scalar* x = norm.x + row * d;
    Scalar* __restrict to = y + row * d;
    const RowStatistics<Scalar> is = StatisticsOf(x, norm);
    for (int64_t j = 0; j < d; ++j) to[j] = (x[j] - is.mean) * is.inverse;
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
  for (int64_t row = 0; row < norm.rows; ++row, g += d) {
    const Scalar* x = norm.x + row * d;
    Scalar* __restrict to = dx + row * d;
    const RowStatistics<Scalar> is = StatisticsOf(x, norm);
    const auto z = [&is, x](int64_t j) { return (x[j] - is.mean) * is.inverse; };
    if (dgain != nullptr) {
      for (int64_t j = 0; j < d; ++j) dgain[j] += g[j] * z(j);
    }
    if (dshift != nullptr) {
      for (int64_t j = 0; j < d; ++j) dshift[j] += g[j];
    }
    for (int64_t j = 0; j < d; ++j) to[j] = norm.gain != nullptr ? g[j] * norm.gain[j] : g[j];
    const Scalar radial = LaneSum<Scalar>(d, [&](int64_t j) { return to[j] * z(j); }) / n;
    const Scalar level = norm.kind == NormKind::kLayer
                             ? LaneSum<Scalar>(d, [to](int64_t j) { return to[j]; }) / n
                             : Scalar(0);
    for (int64_t j = 0; j < d; ++j) to[j] = (to[j] - level - z(j) * radial) * is.inverse;
  }
}

}  // namespace

// Compiled for AVX2 too and chosen at run time. Without fused multiply-add, which AVX2 alone does
// not have, and with sums in a fixed number of lanes, both give the same bits. clang takes no
// clones that are flattened, and without that the loops would not be compiled for AVX2.
#if defined(__x86_64__) && !defined(__clang__)
#define ABLATE_VECTOR_CLONES __attribute__((target_clones("avx2", "default"), flatten))
#else
#define ABLATE_VECTOR_CLONES
#endif

ABLATE_VECTOR_CLONES void NormForward(const NormRows<float>& norm, float* y) {
  ForwardRows(norm, y);
}

ABLATE_VECTOR_CLONES void NormForward(const NormRows<double>& norm, double* y) {
  ForwardRows(norm, y);
}

ABLATE_VECTOR_CLONES void NormBackward(const NormRows<float>& norm, const float* g, float* dx,
                                       float* dgain, float* dshift) {
  BackwardRows(norm, g, dx, dgain, dshift);
}

ABLATE_VECTOR_CLONES void NormBackward(const NormRows<double>& norm, const double* g, double* dx,
                                       double* dgain, double* dshift) {
  BackwardRows(norm, g, dx, dgain, dshift);
}

#undef ABLATE_VECTOR_CLONES

}  // namespace ablate::engine
