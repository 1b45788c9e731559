// Tests the ranking of tokens against a plain sort.
#include "server/engine/core/analyses/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

std::vector<uint32_t> Sorted(const std::vector<double>& logits) {
  std::vector<uint32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0U);
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  return tokens;
}

void ExpectRanked(const std::vector<double>& logits) {
  const std::vector<uint32_t> all = Sorted(logits);
  for (const size_t divisor : {1, 2, 15, 16, 17, 100, 100'000'000}) {
    const size_t count = std::max<size_t>(1, logits.size() / divisor);
    const std::vector<uint32_t> best(all.begin(), all.begin() + static_cast<int64_t>(count));
    EXPECT_EQ(MostLikely(logits, count), best) << count << " of " << logits.size();
  }
}

constexpr size_t kSizes[] = {1, 2, 27, 2047, 2048, 50'257};

TEST(MostLikelyTest, SortsDoublesAndFloats) {
  SplitMix64 generator(3);
  for (const size_t size : kSizes) {
    std::vector<double> logits(size), floats(size);
    for (size_t i = 0; i < size; ++i) {
      logits[i] = (static_cast<double>(generator.Next() >> 11) * 0x1p-53 - .5) * 40;
      floats[i] = static_cast<double>(static_cast<float>(logits[i]));
    }
    ExpectRanked(logits);
    ExpectRanked(floats);
  }
}

TEST(MostLikelyTest, KeepsTiesInTheOrderOfTheirIds) {
  SplitMix64 generator(4);
  for (const size_t size : kSizes) {
    std::vector<double> logits(size);
    for (double& logit : logits) logit = static_cast<double>(generator.Next() % 5) - 2;
    ExpectRanked(logits);
    ExpectRanked(std::vector<double>(size, -7.25));
  }
}

TEST(MostLikelyTest, SortsEveryKindOfFiniteNumber) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> kinds = {
      0.0,  -0.0, 1.0,           -1.0,           Limits::max(),        1e-3,
      -2.0, 2.0,  Limits::min(), -Limits::max(), Limits::denorm_min(), -Limits::denorm_min()};
  for (const size_t size : kSizes) {
    std::vector<double> logits;
    for (size_t i = 0; i < size; ++i) logits.push_back(kinds[i * 7 % kinds.size()]);
    ExpectRanked(logits);
  }
}

}  // namespace
}  // namespace ablate::engine
