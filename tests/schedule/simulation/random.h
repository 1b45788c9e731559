// Random choices of a simulation: the same for the same seed, on every machine.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_RANDOM_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace ablate::simulation {

class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}

  // Returns 0 … n − 1; n ≥ 1.
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(generator_() % n); }
  // Returns first … last.
  uint32_t Between(uint32_t first, uint32_t last) { return first + Below(last - first + 1); }
  bool Chance(uint32_t percent) { return Below(100) < percent; }

  // Returns an index, by its weight; the sum is positive.
  size_t Weighted(const std::vector<uint32_t>& weights) {
    uint32_t sum = 0;
    for (const uint32_t weight : weights) sum += weight;
    uint32_t left = Below(sum);
    size_t index = 0;
    while (left >= weights[index]) left -= weights[index++];
    return index;
  }

 private:
  std::mt19937_64 generator_;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_RANDOM_H_
