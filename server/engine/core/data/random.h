// Implements the random generators of a run: CPython's for the order of documents, and named
// splitmix64 streams for all other draws. docs/reference/random-streams.md has test vectors.
#ifndef ABLATE_SERVER_ENGINE_CORE_DATA_RANDOM_H_
#define ABLATE_SERVER_ENGINE_CORE_DATA_RANDOM_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::engine {

// Returns the order that CPython's random.seed(seed); random.shuffle(list(range(n))) produces
// (MT19937 seeded by init_by_array, Fisher–Yates from the end, _randbelow by rejection of
// getrandbits).
std::vector<uint32_t> PythonShuffle(uint32_t n, uint32_t seed);

// Returns the 64-bit seed of a run's stream called `name`. Streams of different names are
// independent, and no stream depends on which others exist.
uint64_t StreamSeed(uint32_t seed, absl::string_view name);

// splitmix64; its state is one word.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}
  uint64_t Next();
  // Uniform in [0, bound), without bias; bound ≥ 1.
  uint64_t Below(uint64_t bound);
  // Advances as `numbers` calls of Next would: the state grows by a constant.
  void Skip(uint64_t numbers);
  uint64_t state() const { return state_; }

  // Returns the number that follows n calls of Next by a generator started at `state`.
  static uint64_t At(uint64_t state, uint64_t n) { return Mix(state + (n + 1) * kGamma); }

  // Returns uniform(state, n) of docs/reference/random-streams.md, in [0, 1).
  static double UniformAt(uint64_t state, uint64_t n) {
    return static_cast<double>(At(state, n) >> 11) * 0x1p-53;
  }

  // The finalizer: a bijection in which every input bit affects every output bit.
  static uint64_t Mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
  }

  static constexpr uint64_t kGamma = 0x9E3779B97F4A7C15u;

 private:
  uint64_t state_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_DATA_RANDOM_H_
