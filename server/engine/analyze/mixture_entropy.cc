#include "server/engine/analyze/mixture_entropy.h"

#include <limits>

#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)  // as in native/kernels.cc
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/engine/analyze/mixture_entropy.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After highway.h.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
double NegativeSum(const T* a, T p, const T* b, T q, size_t count) {
  const hn::ScalableTag<T> d;
  const auto ps = hn::Set(d, p), qs = hn::Set(d, q);
  const auto least = hn::Set(d, std::numeric_limits<T>::min());  // so that the logarithm is finite
  const auto term = [&](auto x, auto y) {
    const auto m = hn::MulAdd(ps, x, hn::Mul(qs, y));
    return hn::Mul(m, hn::Log(d, hn::Max(m, least)));
  };
  const size_t lanes = hn::Lanes(d);
  // Two sums, so that the logarithms of two vectors overlap.
  auto even = hn::Zero(d), odd = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    even = hn::Add(even, term(hn::LoadU(d, a + i), hn::LoadU(d, b + i)));
    odd = hn::Add(odd, term(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes)));
  }
  if (i + lanes <= count) {
    even = hn::Add(even, term(hn::LoadU(d, a + i), hn::LoadU(d, b + i)));
    i += lanes;
  }
  if (i < count) {
    const auto rest = hn::FirstN(d, count - i);
    odd = hn::Add(odd, term(hn::MaskedLoad(rest, d, a + i), hn::MaskedLoad(rest, d, b + i)));
  }
  return -static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd))));
}

double OfFloats(const float* a, float p, const float* b, float q, size_t count) {
  return NegativeSum(a, p, b, q, count);
}

double OfDoubles(const double* a, double p, const double* b, double q, size_t count) {
  return NegativeSum(a, p, b, q, count);
}

}  // namespace
}  // namespace ablate::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ablate::engine {

HWY_EXPORT(OfFloats);
HWY_EXPORT(OfDoubles);

double MixtureEntropy(const float* a, float p, const float* b, float q, size_t count) {
  return HWY_DYNAMIC_DISPATCH(OfFloats)(a, p, b, q, count);
}

double MixtureEntropy(const double* a, double p, const double* b, double q, size_t count) {
  return HWY_DYNAMIC_DISPATCH(OfDoubles)(a, p, b, q, count);
}

}  // namespace ablate::engine
#endif
