// Computes with vectors of all parameters in float64, without a copy of a whole vector.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_LARGE_VECTORS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_LARGE_VECTORS_H_

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace ablate::engine {

// Returns the number of elements that are converted to float64 at a time: 512 kB, which stay in a
// core's second cache, or on a device, where each part is a launch, 128 MB.
inline int64_t LargePartOf(const at::Tensor& like) {
  return int64_t{1} << (like.is_cpu() ? 16 : 24);
}

// Calls `of(first, count)` with the parts of a vector of `size` elements, in order.
template <typename Of>
void ForEachPart(int64_t size, int64_t part, const Of& of) {
  for (int64_t first = 0; first < size; first += part) of(first, std::min(part, size - first));
}

// Returns the dot product of two vectors [n] of any precision, in float64.
inline double DotOf(const at::Tensor& a, const at::Tensor& b) {
  double dot = 0;
  ForEachPart(a.size(0), LargePartOf(a), [&](int64_t first, int64_t count) {
    const at::Tensor some = a.narrow(0, first, count).to(at::kDouble);
    const at::Tensor other = b.narrow(0, first, count);
    dot += some.dot(b.is_same(a) ? some : other.to(at::kDouble)).item<double>();
  });
  return dot;
}

// Returns the norm of a tensor of any precision, in float64.
inline double NormOf(const at::Tensor& x) {
  const at::Tensor flat = x.flatten();
  return std::sqrt(DotOf(flat, flat));
}

// Adds `from` [n], of any precision, to `to` [n], float64.
inline void AddTo(const at::Tensor& from, const at::Tensor& to) {
  ForEachPart(to.size(0), LargePartOf(to), [&](int64_t first, int64_t count) {
    to.narrow(0, first, count).add_(from.narrow(0, first, count));
  });
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_LARGE_VECTORS_H_
