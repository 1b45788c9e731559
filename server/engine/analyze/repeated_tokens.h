// Sums the attention weights of sequences that repeat their first tokens, by which heads that
// continue a repeated sequence are found.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_REPEATED_TOKENS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_REPEATED_TOKENS_H_

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <vector>

namespace ablate::engine {

// The keys whose weights are summed, for a query at position i, a period p and each k with
// 1 ≤ k ≤ i/p.
enum RepeatSum {
  kInduction,  // i − k·p + 1, the tokens that followed earlier occurrences; queries from p on
  kPreviousToken,   // i − 1; queries from 1 on
  kDuplicateToken,  // i − k·p, earlier occurrences; queries from p on
  kRepeatSums,
};

// Returns how many queries of a sequence each sum is over.
inline std::array<int64_t, kRepeatSums> RepeatQueries(int64_t length, int64_t period) {
  return {length - period, length - 1, length - period};
}

// Returns the sums over the queries of causal weights [..., T, T]: [..., kRepeatSums], float64. T
// is at least two periods.
inline at::Tensor SumsOfRepeats(const at::Tensor& weights, int64_t period) {
  // Returns the sum over queries from `first` on of the weight of the key `back` tokens earlier.
  const auto sum = [&](int64_t back, int64_t first) {
    const at::Tensor line = weights.diagonal(-back, -2, -1);  // queries from `back` on
    const int64_t without = first - back;
    return line.narrow(-1, without, line.size(-1) - without).to(at::kDouble).sum(-1);
  };
  at::Tensor induction = sum(period - 1, period), duplicate = sum(period, period);
  for (int64_t back = 2 * period; back < weights.size(-1); back += period) {
    induction = induction + sum(back - 1, back);
    duplicate = duplicate + sum(back, back);
  }
  return at::stack({induction, sum(1, 1), duplicate}, -1);
}

// Returns the means over queries if each weight of a query is one over the number of keys that it
// sees.
inline std::array<double, kRepeatSums> ChanceOfRepeats(int64_t length, int64_t period) {
  std::array<double, kRepeatSums> sums = {};
  for (int64_t i = 1; i < length; ++i) {
    const auto keys = static_cast<double>(i + 1);
    sums[kPreviousToken] += 1 / keys;
    if (i < period) continue;
    const int64_t occurrences = i / period;
    sums[kInduction] += static_cast<double>(occurrences) / keys;
    sums[kDuplicateToken] += static_cast<double>(occurrences) / keys;
  }
  const auto queries = RepeatQueries(length, period);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] /= static_cast<double>(queries[i]);
  return sums;
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_REPEATED_TOKENS_H_
