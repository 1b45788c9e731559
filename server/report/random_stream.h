// The random numbers of resampling tests: seeded, and the same on every platform.
#ifndef ABLATE_SERVER_REPORT_RANDOM_STREAM_H_
#define ABLATE_SERVER_REPORT_RANDOM_STREAM_H_

#include <cstdint>

namespace ablate::report {

// splitmix64, whose state starts at the seed. A value type, not thread-safe.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t word = state_;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
  }

  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  // Uniform in 0 … bound-1, without bias; bound >= 1.
  uint32_t Below(uint32_t bound) {
    // Words below 2^32 mod bound would make the first numbers likelier: draw again.
    const uint32_t reject = -bound % bound;
    while (true) {
      const uint64_t product = (Next() >> 32) * bound;
      if (static_cast<uint32_t>(product) >= reject) return static_cast<uint32_t>(product >> 32);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_RANDOM_STREAM_H_
