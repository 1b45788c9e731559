// Temperature, top-k, top-p and the inverse of the cumulative distribution.
#include "server/engine/analyze/draw.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "server/engine/data/random.h"

namespace ablate::engine {
namespace {

// Moves the `count` most likely tokens to the front, in order, and drops the rest.
void KeepBest(absl::Span<const double> scores, size_t count, std::vector<uint32_t>& tokens) {
  const auto better = [scores](uint32_t a, uint32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(tokens.begin(), end, tokens.end(), better);
  tokens.resize(count);
}

void Normalise(std::vector<double>& probabilities) {
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& probability : probabilities) probability /= sum;
}

// Length of the shortest prefix with a sum of at least `share`; all if rounding leaves the sum of
// all below it.
size_t PrefixReaching(const std::vector<double>& probabilities, double share) {
  double sum = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    sum += probabilities[i];
    if (sum >= share) return i + 1;
  }
  return probabilities.size();
}

}  // namespace

KeptTokens Keep(absl::Span<const double> scores, const SampleOptions& options) {
  KeptTokens kept;
  kept.tokens.resize(scores.size());
  std::iota(kept.tokens.begin(), kept.tokens.end(), 0u);
  const bool greedy = options.temperature == 0;
  const size_t most = greedy ? 1 : options.top_k == 0 ? scores.size() : options.top_k;
  KeepBest(scores, std::min(most, scores.size()), kept.tokens);
  if (greedy) return {kept.tokens, {1.0}};
  const double best = scores[kept.tokens.front()];
  for (const uint32_t token : kept.tokens) {
    kept.probabilities.push_back(std::exp((scores[token] - best) / options.temperature));
  }
  Normalise(kept.probabilities);
  if (options.top_p < 1) {
    const size_t count = PrefixReaching(kept.probabilities, options.top_p);
    kept.tokens.resize(count);
    kept.probabilities.resize(count);
    Normalise(kept.probabilities);
  }
  return kept;
}

uint32_t Draw(const KeptTokens& kept, double u) {
  double sum = 0;
  for (size_t i = 0; i < kept.tokens.size(); ++i) {
    sum += kept.probabilities[i];
    if (u < sum) return kept.tokens[i];
  }
  // Rounding left the sum below u. What could not be drawn otherwise must not be drawn now.
  size_t last = kept.tokens.size() - 1;
  while (last > 0 && kept.probabilities[last] == 0) --last;
  return kept.tokens[last];
}

double UniformAt(uint32_t seed, uint32_t sample, uint32_t position) {
  SplitMix64 generator(seed);
  generator.Skip((uint64_t{sample} << 32) | position);
  return static_cast<double>(generator.Next() >> 11) * 0x1p-53;
}

}  // namespace ablate::engine
