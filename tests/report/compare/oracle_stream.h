// Makes the inputs of the oracles in docs/analyses: R(seed, n) and U(seed, n).
#ifndef ABLATE_TESTS_REPORT_COMPARE_ORACLE_STREAM_H_
#define ABLATE_TESTS_REPORT_COMPARE_ORACLE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/report/compare/paired.h"

namespace ablate::report {

inline constexpr double kTolerance = 1e-9;  // of an oracle's numbers

// Returns n numbers in [0, 1).
inline std::vector<double> OracleU(uint64_t seed, size_t n) {
  RandomStream stream(seed);
  std::vector<double> numbers(n);
  for (double& number : numbers) number = stream.Uniform();
  return numbers;
}

// Returns offset + scale · R(seed, [n]), R in [-1, 1).
inline std::vector<double> OracleR(uint64_t seed, size_t n, double offset = 0, double scale = 1) {
  std::vector<double> numbers = OracleU(seed, n);
  for (double& number : numbers) number = offset + scale * (2 * number - 1);
  return numbers;
}

}  // namespace ablate::report

#endif  // ABLATE_TESTS_REPORT_COMPARE_ORACLE_STREAM_H_
