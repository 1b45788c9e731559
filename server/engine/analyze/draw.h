// The next token from its scores: which tokens are kept, and which of them is drawn. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_DRAW_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_DRAW_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/samples.h"

namespace ablate::engine {

// Tokens that may be drawn, most likely first, the lower of equals first; probabilities add up
// to 1.
struct KeptTokens {
  std::vector<uint32_t> tokens;
  std::vector<double> probabilities;
};

// softmax(scores / temperature), cut to the top_k first, then to the shortest prefix whose sum
// reaches top_p, each time made to add up to 1. `scores` must be finite and not empty.
KeptTokens Keep(absl::Span<const double> scores, const SampleOptions& options);

// The first kept token at which the probabilities so far exceed `u`, which is in [0, 1).
uint32_t Draw(const KeptTokens& kept, double u);

// In [0, 1): element (sample, position) of U(seed) with rows of 2³² elements (docs/analyses.md), so
// that a draw depends neither on the other samples nor on how many there are.
double UniformAt(uint32_t seed, uint32_t sample, uint32_t position);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_DRAW_H_
