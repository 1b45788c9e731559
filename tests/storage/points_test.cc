// Tests the codecs of points and summaries, also on invalid bytes.
#include "storage/sqlite/points.h"

#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/summaries.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Series {
  std::vector<uint32_t> steps;
  std::vector<double> values;
};

bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// Returns steps of several shapes, values with any bits.
Series RandomSeries(std::mt19937_64* random) {
  Series series;
  const size_t count = 1 + (*random)() % 50;
  const bool even = (*random)() % 2 == 0;
  const bool floats = (*random)() % 2 == 0;
  uint32_t step = static_cast<uint32_t>((*random)() % 1000);
  for (size_t i = 0; i < count; ++i) {
    series.steps.push_back(step);
    step += even ? 3 : 1 + static_cast<uint32_t>((*random)() % 100000);
    uint64_t bits = (*random)();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (floats) value = static_cast<float>(static_cast<double>(bits) / 1e18);
    series.values.push_back(value);
  }
  return series;
}

TEST(PointsTest, RoundTripsWhateverIsPutIn) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Series> series(1 + random() % 6);
    std::vector<EncodedColumn> columns;
    for (uint32_t i = 0; i < series.size(); ++i) {
      series[i] = RandomSeries(&random);
      if (i > 0 && random() % 2 == 0) {
        series[i].steps = series[0].steps;
        series[i].values.resize(series[0].steps.size(), 0.1);
      }
      columns.push_back({i * 1000, &series[i].steps, &series[i].values});
    }
    const std::string bytes = EncodePoints("place", columns);
    const auto decoded = Value(DecodePoints("place", bytes));
    ASSERT_EQ(decoded.size(), series.size());
    for (uint32_t i = 0; i < series.size(); ++i) {
      EXPECT_EQ(decoded[i].key, i * 1000);
      EXPECT_EQ(decoded[i].steps, series[i].steps);
      EXPECT_TRUE(SameBits(decoded[i].values, series[i].values));
      Series found;
      ASSERT_TRUE(
          AppendPoints("place", bytes, i * 1000, 0, UINT32_MAX, &found.steps, &found.values).ok());
      EXPECT_EQ(found.steps, series[i].steps);
      EXPECT_TRUE(SameBits(found.values, series[i].values));
    }
  }
}

TEST(PointsTest, IsSmallForFloatsAtEvenSteps) {
  Series a, b;
  for (uint32_t i = 0; i < 1000; ++i) {
    a.steps.push_back(10 * i);
    a.values.push_back(static_cast<float>(0.1 * i));
  }
  b = a;
  EXPECT_LE(EncodePoints("place", {{0, &a.steps, &a.values}}).size(), 4020u);
  EXPECT_LE(EncodePoints("place", {{0, &a.steps, &a.values}, {1, &b.steps, &b.values}}).size(),
            8030u);
  b.values[500] = 0.1;  // not a float
  EXPECT_GE(EncodePoints("place", {{1, &b.steps, &b.values}}).size(), 8000u);
}

TEST(PointsTest, AppendsOnlyTheRange) {
  const Series a{{1, 3, 5, 7}, {10, 30, 50, 70}};
  const std::string bytes = EncodePoints("place", {{4, &a.steps, &a.values}});
  Series found{{0}, {0}};
  ASSERT_TRUE(AppendPoints("place", bytes, 4, 2, 5, &found.steps, &found.values).ok());
  EXPECT_THAT(found.steps, ElementsAre(0, 3, 5));
  EXPECT_THAT(found.values, ElementsAre(0, 30, 50));
  ASSERT_TRUE(AppendPoints("place", bytes, 4, 8, 9, &found.steps, &found.values).ok());
  ASSERT_TRUE(AppendPoints("place", bytes, 5, 0, 9, &found.steps, &found.values).ok());
  EXPECT_THAT(found.steps, SizeIs(3));
}

TEST(PointsTest, RefusesEveryTruncation) {
  const Series a{{1, 3, 9}, {10, 0.1, 50}};
  const std::string bytes = EncodePoints("place", {{4, &a.steps, &a.values}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = DecodePoints("place", absl::string_view(bytes).substr(0, size));
    EXPECT_EQ(CodeOf(decoded), absl::StatusCode::kDataLoss) << size;
  }
  EXPECT_EQ(CodeOf(DecodePoints("place", bytes + "x")), absl::StatusCode::kDataLoss);
}

TEST(PointsTest, SurvivesAnyDamage) {
  std::mt19937_64 random(2);
  const Series a{{1, 3, 9, 10, 11}, {10, 0.1, 50, 1, 2}};
  const Series b{{0, 2, 4}, {1, 2, 3}};
  const std::string good = EncodePoints(
      "place", {{4, &a.steps, &a.values}, {5, &b.steps, &b.values}, {6, &a.steps, &a.values}});
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (uint64_t i = 0; i < 1 + random() % 3; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    Series found;
    if (!DecodePoints("place", bytes).ok()) ++refused;
    AppendPoints("place", bytes, 6, 0, UINT32_MAX, &found.steps, &found.values).IgnoreError();
    EXPECT_EQ(found.steps.size(), found.values.size());
  }
  EXPECT_GT(refused, 1000);
}

TEST(SummariesTest, RoundTripAndFindKeys) {
  KeySummaries summaries(3);
  for (size_t i = 0; i < summaries.size(); ++i) summaries[i].summary.key = absl::StrCat("key", i);
  AddPoints(MakeColumn("key1", {4, 5, 6}, {NAN, 2, 4}), &summaries[1]);
  const std::string bytes = EncodeSummaries("a", summaries);
  const KeySummaries again = Value(DecodeSummaries("a", bytes));
  ASSERT_THAT(again, SizeIs(3));
  EXPECT_EQ(again[1].summary.key, "key1");
  EXPECT_EQ(again[1].summary.mean, 3);
  EXPECT_EQ(again[1].summary.first_nonfinite_step, 4u);
  EXPECT_EQ(again[1].last_step, 6u);
  EXPECT_EQ(again[0].summary.count, 0u);
  const auto found = Value(FindKey("a", bytes, "key1"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->number, 1u);
  EXPECT_EQ(found->count, 3u);
  EXPECT_EQ(found->last_step, 6u);
  EXPECT_FALSE(Value(FindKey("a", bytes, "key")).has_value());
  EXPECT_FALSE(Value(FindKey("a", "", "key")).has_value());
  EXPECT_THAT(Value(DecodeSummaries("a", "")), IsEmpty());
  const absl::string_view view = bytes;
  EXPECT_EQ(CodeOf(DecodeSummaries("a", view.substr(0, bytes.size() - 1))),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf(DecodeSummaries("a", "\x09zzz")), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ablate::storage
