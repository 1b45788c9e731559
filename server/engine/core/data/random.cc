// Implements splitmix64 and the part of CPython's Mersenne Twister that its shuffle uses.
#include "server/engine/core/data/random.h"

#include <array>
#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

namespace ablate::engine {
namespace {

// MT19937, seeded as CPython seeds it with a non-negative integer below 2^32.
class MersenneTwister {
 public:
  explicit MersenneTwister(uint32_t seed) {
    SeedByInteger(19650218);
    // init_by_array with the one-word key {seed}; key index and word are the same at every step.
    size_t i = 1;
    for (size_t k = 0; k < kWords; ++k) {
      state_[i] = (state_[i] ^ (Spread(i - 1) * 1664525u)) + seed;
      Advance(i);
    }
    for (size_t k = 1; k < kWords; ++k) {
      state_[i] = (state_[i] ^ (Spread(i - 1) * 1566083941u)) - static_cast<uint32_t>(i);
      Advance(i);
    }
    state_[0] = 0x80000000u;
  }

  uint32_t Next() {
    if (next_ == kWords) Refill();
    uint32_t word = state_[next_++];
    word ^= word >> 11;
    word ^= (word << 7) & 0x9D2C5680u;
    word ^= (word << 15) & 0xEFC60000u;
    return word ^ (word >> 18);
  }

  // Returns a number uniform in [0, bound): the top bits of a word, drawn again while too large.
  // bound ≥ 1.
  uint32_t Below(uint32_t bound) {
    const int bits = static_cast<int>(std::bit_width(bound));
    uint32_t value = Next() >> (32 - bits);
    while (value >= bound) value = Next() >> (32 - bits);
    return value;
  }

 private:
  static constexpr size_t kWords = 624;
  static constexpr size_t kMiddle = 397;

  uint32_t Spread(size_t i) const { return state_[i] ^ (state_[i] >> 30); }

  void SeedByInteger(uint32_t seed) {
    state_[0] = seed;
    for (size_t i = 1; i < kWords; ++i) {
      state_[i] = 1812433253u * Spread(i - 1) + static_cast<uint32_t>(i);
    }
  }

  void Advance(size_t& i) {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  }

  void Refill() {
    for (size_t i = 0; i < kWords; ++i) {
      const uint32_t joined = (state_[i] & 0x80000000u) | (state_[(i + 1) % kWords] & 0x7FFFFFFFu);
      const uint32_t twist = (joined & 1u) != 0 ? 0x9908B0DFu : 0u;
      state_[i] = state_[(i + kMiddle) % kWords] ^ (joined >> 1) ^ twist;
    }
    next_ = 0;
  }

  std::array<uint32_t, kWords> state_;
  size_t next_ = kWords;
};

}  // namespace

std::vector<uint32_t> PythonShuffle(uint32_t n, uint32_t seed) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  MersenneTwister generator(seed);
  for (uint32_t left = n; left > 1; --left) {
    std::swap(order[left - 1], order[generator.Below(left)]);
  }
  return order;
}

uint64_t StreamSeed(uint32_t seed, absl::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  // Mixed in between, so that neighbouring seeds and similar names don't give neighbouring states.
  return SplitMix64::At(SplitMix64::Mix(hash), seed);
}

uint64_t SplitMix64::Next() {
  state_ += kGamma;
  return Mix(state_);
}

void SplitMix64::Skip(uint64_t numbers) { state_ += numbers * kGamma; }

uint64_t SplitMix64::Below(uint64_t bound) {
  const uint64_t mask = ~uint64_t{0} >> std::countl_zero((bound - 1) | 1);
  uint64_t value = Next() & mask;
  while (value >= bound) value = Next() & mask;
  return value;
}

}  // namespace ablate::engine
