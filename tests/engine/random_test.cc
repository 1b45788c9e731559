// Tests CPython's shuffle against values that CPython 3.11 printed, and the properties of our own
// streams.
#include "server/engine/core/data/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// Returns FNV-1a over the elements as whole words.
uint64_t Checksum(const std::vector<uint32_t>& order) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const uint32_t element : order) hash = (hash ^ element) * 0x100000001B3u;
  return hash;
}

TEST(PythonShuffleTest, EqualsCPython) {
  EXPECT_THAT(PythonShuffle(5, 0), ElementsAre(2, 1, 0, 4, 3));
  EXPECT_THAT(PythonShuffle(5, 42), ElementsAre(3, 1, 2, 4, 0));
  EXPECT_THAT(PythonShuffle(17, 42),
              ElementsAre(7, 10, 5, 6, 15, 14, 13, 9, 8, 1, 2, 12, 16, 4, 11, 0, 3));
}

TEST(PythonShuffleTest, ChecksumsEqualCPython) {
  const struct {
    uint32_t n, seed;
    uint64_t checksum;
  } cases[] = {
      {1, 0, 0xaf63bd4c8601b7df},
      {2, 0, 0x8328707b4eb6e3a},
      {2, 1, 0x82f2207b4e88cc4},
      {5, 1, 0xc0baaf3689a07705},
      {5, 4294967295, 0x9e18243676035703},
      {16, 0, 0x5977e76673497277},
      {16, 42, 0xab3bc5dbba274041},
      {16, 4294967295, 0x619aa8666ec586d3},
      {17, 0, 0xe1aeff3ca9ab0dbd},
      {17, 1, 0x932fd4b48bcbbe35},
      {17, 4294967295, 0xe85d083467b9ad5b},
      {1000, 0, 0x8d2f20bb9607fa79},
      {1000, 1, 0x41f5ed738cb022d7},
      {1000, 42, 0xab51ac8cc6a2f04d},
      {1000, 4294967295, 0x45e56c665ee57f53},
      {32033, 0, 0xa02a9557ec9019e9},
      {32033, 42, 0x7b097761c2fb6689},
      {32033, 4294967295, 0x54273d7ef084b1e3},
  };
  for (const auto& item : cases) {
    EXPECT_EQ(Checksum(PythonShuffle(item.n, item.seed)), item.checksum)
        << "n " << item.n << " seed " << item.seed;
  }
}

TEST(PythonShuffleTest, NothingToShuffleWhenEmpty) { EXPECT_TRUE(PythonShuffle(0, 42).empty()); }

TEST(PythonShuffleTest, IsAPermutation) {
  std::vector<uint32_t> order = PythonShuffle(777, 3);
  std::sort(order.begin(), order.end());
  std::vector<uint32_t> all(777);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_THAT(order, ElementsAreArray(all));
}

TEST(SplitMix64Test, EqualsTheReferenceSequence) {
  // First outputs of the published generator from state 1234567.
  SplitMix64 generator(1234567);
  EXPECT_EQ(generator.Next(), 6457827717110365317u);
  EXPECT_EQ(generator.Next(), 3203168211198807973u);
  EXPECT_EQ(generator.Next(), 9817491932198370423u);
}

TEST(SplitMix64Test, ContinuesFromItsState) {
  SplitMix64 first(7);
  for (int i = 0; i < 5; ++i) first.Next();
  SplitMix64 second(first.state());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(first.Next(), second.Next());
}

TEST(SplitMix64Test, SkipsAsManyCallsWould) {
  SplitMix64 first(7), second(7);
  for (int i = 0; i < 5; ++i) first.Next();
  second.Skip(5);
  EXPECT_EQ(first.Next(), second.Next());
}

TEST(SplitMix64Test, BelowIsUniform) {
  for (const uint64_t bound : {1u, 2u, 3u, 7u, 8u, 40u}) {
    SplitMix64 generator(bound);
    std::vector<double> counts(bound);
    constexpr int kDraws = 40000;
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t value = generator.Below(bound);
      ASSERT_LT(value, bound);
      ++counts[value];
    }
    const double expected = static_cast<double>(kDraws) / static_cast<double>(bound);
    double chi_squared = 0;
    for (const double count : counts)
      chi_squared += (count - expected) * (count - expected) / expected;
    // Mean bound−1, variance 2(bound−1): eight standard deviations for a fixed seed.
    const double freedom = static_cast<double>(bound) - 1;
    EXPECT_LE(chi_squared, freedom + 8 * std::sqrt(2 * freedom)) << bound;
  }
}

TEST(SplitMix64Test, BelowReachesBeyond32Bits) {
  SplitMix64 generator(1);
  const uint64_t bound = (uint64_t{1} << 63) + 1;
  bool large = false;
  for (int i = 0; i < 64; ++i) {
    const uint64_t value = generator.Below(bound);
    ASSERT_LT(value, bound);
    large = large || value > (uint64_t{1} << 62);
  }
  EXPECT_TRUE(large);
}

TEST(StreamSeedTest, DiffersByNameAndSeed) {
  std::set<uint64_t> seeds;
  int count = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    for (const std::string name : {"", "a", "b", "ab", "ba", "data/train", "data/held_out"}) {
      seeds.insert(StreamSeed(seed, name));
      ++count;
    }
  }
  EXPECT_EQ(static_cast<int>(seeds.size()), count);
}

TEST(StreamSeedTest, StaysWhatItIs) {
  // If a value changes, so do every run's numbers: raise kNumericsVersion.
  EXPECT_EQ(StreamSeed(0, "data/train"), 17492601851246172403u);
  EXPECT_EQ(StreamSeed(42, "token_embedding.weight"), 12295114084480776426u);
}

}  // namespace
}  // namespace ablate::engine
