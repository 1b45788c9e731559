// Makes grids of pure noise, with or without a difference, for error rates.
#ifndef ABLATE_TESTS_REPORT_COMPARE_NOISE_H_
#define ABLATE_TESTS_REPORT_COMPARE_NOISE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "server/report/compare/paired.h"

namespace ablate::report {

// Normal noise by Box and Muller's method.
class Noise {
 public:
  explicit Noise(uint64_t seed) : stream_(seed) {}
  double operator()() {
    const double size = std::sqrt(-2 * std::log(1 - stream_.Uniform()));
    return size * std::cos(2 * M_PI * stream_.Uniform());
  }
  double Uniform() { return stream_.Uniform(); }

 private:
  RandomStream stream_;
};

// Returns an upper bound for the observed frequency of an event with probability `rate` in so many
// experiments: two standard errors above it.
inline double AtMost(double rate, int experiments) {
  return rate + 2 * std::sqrt(rate * (1 - rate) / experiments);
}

}  // namespace ablate::report

#endif  // ABLATE_TESTS_REPORT_COMPARE_NOISE_H_
