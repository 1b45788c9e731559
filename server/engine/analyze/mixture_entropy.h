// Computes entropies of rows of attention weights by vector instructions.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_MIXTURE_ENTROPY_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_MIXTURE_ENTROPY_H_

#include <cstddef>

namespace ablate::engine {

// Returns −Σ m ln m in nats, with m = p·a + q·b for each of `count` elements, none negative, and
// 0·ln 0 = 0. NaN if an m is NaN. Elements are computed in their own precision.
double MixtureEntropy(const float* a, float p, const float* b, float q, size_t count);
double MixtureEntropy(const double* a, double p, const double* b, double q, size_t count);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_MIXTURE_ENTROPY_H_
