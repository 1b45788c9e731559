// Sign-flip test: all patterns by two sorted halves, or drawn ones by tables of eight signs.
#include "server/report/sign_flip.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "server/report/compensated_sum.h"
#include "server/report/random_stream.h"
#include "server/report/statistics.h"

namespace ablate::report {
namespace {

using Sizes = absl::Span<const double>;  // absolute differences, largest first

// The 2^k sums ±x0 ± … ± x(k-1); bit i of the index says whether x(i) counts as positive.
std::vector<double> SignedSums(Sizes sizes) {
  std::vector<double> sums{0.0};
  for (const double size : sizes) {
    const size_t half = sums.size();
    sums.resize(2 * half);
    for (size_t i = 0; i < half; ++i) {
      sums[half + i] = sums[i] + size;
      sums[i] -= size;
    }
  }
  return sums;
}

// Share of all patterns with |sum| >= threshold > 0. Sums come in pairs of opposite sign, so the
// first difference keeps its sign; the others are two halves of about √(2^n) sums each, one of them
// sorted.
double ExactShare(Sizes sizes, double threshold) {
  const Sizes rest = sizes.subspan(1);
  const size_t middle = rest.size() / 2;
  std::vector<double> sorted = SignedSums(rest.subspan(0, middle));
  std::sort(sorted.begin(), sorted.end());
  const std::vector<double> others = SignedSums(rest.subspan(middle));
  size_t count = 0;
  for (const double other : others) {
    const double fixed = sizes[0] + other;
    const auto high = std::lower_bound(sorted.begin(), sorted.end(), threshold - fixed);
    const auto low = std::upper_bound(sorted.begin(), sorted.end(), -threshold - fixed);
    count += static_cast<size_t>((sorted.end() - high) + (low - sorted.begin()));
  }
  return static_cast<double>(count) / static_cast<double>(sorted.size() * others.size());
}

// (c+1)/(B+1), where c of B drawn patterns reach the threshold.
double DrawnShare(Sizes sizes, double threshold, const SignFlipOptions& options) {
  constexpr size_t kSigns = 8;
  std::vector<std::vector<double>> tables;
  for (size_t first = 0; first < sizes.size(); first += kSigns) {
    tables.push_back(SignedSums(sizes.subspan(first, kSigns)));
  }
  RandomStream random(options.seed);
  size_t count = 0;
  for (size_t draw = 0; draw < options.draws; ++draw) {
    double sum = 0;
    uint64_t signs = 0;
    for (size_t i = 0; i < tables.size(); ++i) {
      signs = i % kSigns == 0 ? random.Next() : signs >> kSigns;
      sum += tables[i][signs & (tables[i].size() - 1)];
    }
    count += std::abs(sum) >= threshold;
  }
  return static_cast<double>(count + 1) / static_cast<double>(options.draws + 1);
}

}  // namespace

SignFlipResult SignFlipTest(absl::Span<const double> differences, const SignFlipOptions& options) {
  SignFlipResult result;
  result.exact = differences.size() <= options.exact_up_to;
  if (differences.size() < 2) {
    result.p = NoNumber(Undefined::kTooFewPairs);
    return result;
  }
  CompensatedSum sum;
  std::vector<double> sizes;
  for (const double difference : differences) {
    sum.Add(difference);
    sizes.push_back(std::abs(difference));
  }
  // Every difference finite, and no sum of them too large.
  const double observed = std::abs(sum.Total());
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  CompensatedSum largest_sum;
  for (const double size : sizes) largest_sum.Add(size);
  if (!std::isfinite(largest_sum.Total())) {
    result.p = NoNumber(Undefined::kNonFinite);
    return result;
  }
  const double threshold = observed - kTie * std::max(observed, sizes[0]);
  if (threshold <= 0) {
    result.p = Defined(1);  // every sum is at least 0
  } else {
    result.p = Defined(result.exact ? ExactShare(sizes, threshold)
                                    : DrawnShare(sizes, threshold, options));
  }
  return result;
}

}  // namespace ablate::report
