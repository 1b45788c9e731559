// The generators of a run: CPython's for the source's shuffles, and named splitmix64 streams for
// everything of ours.
#ifndef ABLATE_SERVER_ENGINE_DATA_RANDOM_H_
#define ABLATE_SERVER_ENGINE_DATA_RANDOM_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::engine {

// The order that CPython's random.seed(seed); random.shuffle(list(range(n))) leaves (MT19937 seeded
// by init_by_array, Fisher–Yates from the end, _randbelow by rejection of getrandbits).
std::vector<uint32_t> PythonShuffle(uint32_t n, uint32_t seed);

// 64-bit seed of the stream called `name` of a run: streams of different names are independent, and
// a stream does not depend on which others exist.
uint64_t StreamSeed(uint32_t seed, absl::string_view name);

// splitmix64; its whole state is one word.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}
  uint64_t Next();
  // Uniform in [0, bound), without bias; bound ≥ 1.
  uint64_t Below(uint64_t bound);
  // As so many calls of Next: the state grows by a constant.
  void Skip(uint64_t numbers);
  uint64_t state() const { return state_; }

  // What call `n` of Next would give after n others, for a generator that begins at `state`.
  static uint64_t At(uint64_t state, uint64_t n) { return Mix(state + (n + 1) * kGamma); }

  // The finalizer: a bijection in which every input bit reaches every output bit.
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

#endif  // ABLATE_SERVER_ENGINE_DATA_RANDOM_H_
