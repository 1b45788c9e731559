// Computes norms without gain and shift, literally by their formulas.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_NORM_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_NORM_H_

#include <ATen/ATen.h>

#include "server/engine/config.h"

namespace ablate::engine {

// Returns x̂ of vectors x [v, m] with the deviation of `scale` [v, m], in plain operations.
inline at::Tensor PlainNorm(const at::Tensor& x, const NormConfig& norm, const at::Tensor& scale) {
  if (norm.kind == NormKind::kL2) return x / (scale.square().sum(1, true) + norm.eps).sqrt();
  if (norm.kind == NormKind::kRms) return x / (scale.square().mean(1, true) + norm.eps).sqrt();
  const at::Tensor centred = x - x.mean(1, true);
  if (norm.deviation == NormDeviation::kUnbiasedEpsOutside) {
    return centred / (scale.std(1, /*unbiased=*/true, /*keepdim=*/true) + norm.eps);
  }
  return centred / (scale.var(1, false, true) + norm.eps).sqrt();
}

// The same with their own deviation.
inline at::Tensor PlainNorm(const at::Tensor& x, const NormConfig& norm) {
  return PlainNorm(x, norm, x);
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_NORM_H_
