// Tests walking stored series, and thinning one for a plot.
#include "server/results/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "storage/sqlite/connection.h"
#include "tests/results/stored_grid.h"
#include "tests/test_folder.h"

namespace ablate::results {
namespace {

analysis::Points Thin(const analysis::Points& series, uint32_t max_points, size_t piece = 1'000) {
  Downsampler downsampler(max_points, series.steps.empty() ? 0 : series.steps.back());
  for (size_t from = 0; from < series.steps.size(); from += piece) {
    const auto begin = static_cast<std::ptrdiff_t>(from);
    const auto end = static_cast<std::ptrdiff_t>(std::min(from + piece, series.steps.size()));
    downsampler.Add({series.steps.begin() + begin, series.steps.begin() + end},
                    {series.values.begin() + begin, series.values.begin() + end});
  }
  return downsampler.Finish();
}

analysis::Points Noise(uint32_t count, uint32_t every) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  analysis::Points series;
  for (uint32_t i = 0; i < count; ++i) {
    series.steps.push_back(i * every);
    series.values.push_back(normal(random));
  }
  return series;
}

// Expects every point of `thin` in `series`, in order, bit for bit.
void ExpectSubset(const analysis::Points& thin, const analysis::Points& series) {
  size_t at = 0;
  for (size_t i = 0; i < thin.steps.size(); ++i) {
    while (at < series.steps.size() && series.steps[at] < thin.steps[i]) ++at;
    ASSERT_LT(at, series.steps.size());
    ASSERT_EQ(series.steps[at], thin.steps[i]);
    ASSERT_EQ(std::memcmp(&series.values[at], &thin.values[i], sizeof(double)), 0);
    ++at;
  }
}

TEST(DownsamplerTest, PassesAShortSeriesUnchanged) {
  const analysis::Points series = Noise(500, 3);
  const analysis::Points thin = Thin(series, 500);
  EXPECT_EQ(thin.steps, series.steps);
  EXPECT_EQ(thin.values, series.values);
}

TEST(DownsamplerTest, KeepsFirstLastAndExtremes) {
  for (const uint32_t count : {501u, 1'000u, 10'000u, 12'345u}) {
    const analysis::Points series = Noise(count, 1);
    const analysis::Points thin = Thin(series, 500);
    EXPECT_LE(thin.steps.size(), 500u);
    EXPECT_GE(thin.steps.size(), 250u);
    ExpectSubset(thin, series);
    EXPECT_EQ(thin.steps.front(), series.steps.front());
    EXPECT_EQ(thin.steps.back(), series.steps.back());
    EXPECT_EQ(*std::max_element(thin.values.begin(), thin.values.end()),
              *std::max_element(series.values.begin(), series.values.end()));
    EXPECT_EQ(*std::min_element(thin.values.begin(), thin.values.end()),
              *std::min_element(series.values.begin(), series.values.end()));
  }
}

TEST(DownsamplerTest, KeepsTheExtremesOfEveryBucket) {
  analysis::Points series;
  for (uint32_t step = 0; step < 100; ++step) {
    series.steps.push_back(step);
    series.values.push_back(step % 10 == 3 ? 5.0 : step % 10 == 6 ? -5.0 : 0.0);
  }
  const analysis::Points thin = Thin(series, 40, 7);
  ASSERT_EQ(thin.steps.size(), 40u);
  for (uint32_t bucket = 0; bucket < 10; ++bucket) {
    EXPECT_EQ(thin.steps[4 * bucket], 10 * bucket);
    EXPECT_EQ(thin.steps[4 * bucket + 1], 10 * bucket + 3);
    EXPECT_EQ(thin.steps[4 * bucket + 2], 10 * bucket + 6);
    EXPECT_EQ(thin.steps[4 * bucket + 3], 10 * bucket + 9);
  }
}

TEST(DownsamplerTest, GivesAtMostFourPointsForTheSmallestLimit) {
  const analysis::Points series = Noise(1'000, 1);
  const analysis::Points thin = Thin(series, 4);
  EXPECT_LE(thin.steps.size(), 4u);
  EXPECT_EQ(thin.steps.front(), 0u);
  EXPECT_EQ(thin.steps.back(), 999u);
}

TEST(DownsamplerTest, DoesNotDependOnThePieces) {
  const analysis::Points series = Noise(5'000, 2);
  const analysis::Points whole = Thin(series, 100, 5'000);
  for (const size_t piece : {1u, 13u, 999u}) {
    const analysis::Points pieces = Thin(series, 100, piece);
    EXPECT_EQ(pieces.steps, whole.steps);
    EXPECT_EQ(pieces.values, whole.values);
  }
}

TEST(DownsamplerTest, TreatsInfinitiesAsExtremesAndNanAsNeither) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  analysis::Points series;
  for (uint32_t step = 0; step < 1'000; ++step) {
    series.steps.push_back(step);
    series.values.push_back(step == 500 ? kInfinity : step == 250 || step == 999 ? kNan : 1.0);
  }
  series.values[0] = kNan;
  series.values[1] = -3;
  const analysis::Points thin = Thin(series, 8);
  EXPECT_TRUE(std::isnan(thin.values.front()));
  EXPECT_TRUE(std::isnan(thin.values.back()));
  EXPECT_EQ(std::count(thin.values.begin(), thin.values.end(), kInfinity), 1);
  EXPECT_EQ(std::count(thin.values.begin(), thin.values.end(), -3.0), 1);
}

TEST(DownsamplerTest, ToleratesASeriesThatRunsPastItsExpectedEnd) {
  const analysis::Points series = Noise(10'000, 1);
  Downsampler downsampler(100, 50);
  downsampler.Add(series.steps, series.values);
  const analysis::Points thin = downsampler.Finish();
  EXPECT_LE(thin.steps.size(), 100u);
  EXPECT_EQ(thin.steps.back(), 9'999u);
}

// A run with three series in a store of its own.
class SeriesCursorTest : public testing::Test {
 protected:
  SeriesCursorTest() : stored_(SmallGrid(1)) {
    const auto cells = stored_.store()->ListCells(stored_.experiment(), 0, 1);
    run_ = cells->front().run;
    StoredGrid::Curves curves;
    for (uint32_t step = 0; step < 10; ++step) {
      for (const char* key : {"a", "b", "c"}) curves[key][step] = step / 10.0;
    }
    stored_.Finish(cells->front().name, curves);
  }

  // Reads to the end of a series, stopped by its visitor after each piece.
  static std::vector<uint32_t> ReadInPieces(SeriesCursor* cursor,
                                            SeriesEnd expected = SeriesEnd::kComplete) {
    std::vector<uint32_t> all;
    SeriesEnd end = SeriesEnd::kStopped;
    while (end == SeriesEnd::kStopped) {
      end = *cursor->Read([&](const std::vector<uint32_t>& steps, const std::vector<double>&) {
        all.insert(all.end(), steps.begin(), steps.end());
        return false;
      });
    }
    EXPECT_EQ(end, expected);
    return all;
  }

  StoredGrid stored_;
  std::string run_;
};

TEST_F(SeriesCursorTest, WalksTheKeysThatAreWantedEachOnce) {
  SeriesCursor cursor(stored_.store(), nullptr);
  const auto keys = [&](const std::vector<std::string>& names) {
    WantedKeys wanted;
    for (const std::string& name : names) *wanted.Add() = name;
    EXPECT_TRUE(cursor.OpenRun(run_, wanted).ok());
    std::vector<std::string> walked;
    while (cursor.has_series()) {
      walked.push_back(cursor.key());
      EXPECT_EQ(ReadInPieces(&cursor).size(), 10u);
    }
    return walked;
  };
  EXPECT_THAT(keys({}), testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(keys({"c", "none", "a", "c"}), testing::ElementsAre("c", "a"));
}

TEST_F(SeriesCursorTest, GoesOnAfterThePointsThatWereTaken) {
  SeriesCursor cursor(stored_.store(), nullptr, 3, 6);
  ASSERT_TRUE(cursor.OpenRun(run_, {}).ok());
  while (cursor.has_series()) {
    EXPECT_THAT(ReadInPieces(&cursor), testing::ElementsAre(3, 4, 5, 6));
  }
}

TEST_F(SeriesCursorTest, FindsNothingInASeriesThatThereIsNot) {
  SeriesCursor cursor(stored_.store(), nullptr);
  cursor.OpenSeries(run_, "none");
  EXPECT_TRUE(ReadInPieces(&cursor).empty());
  EXPECT_FALSE(cursor.has_series());
}

// More than a page of the store, so that its end is read by another call than its beginning.
TEST_F(SeriesCursorTest, CountsALongSeriesThatIsReadInPieces) {
  constexpr uint32_t kSteps = 140'000;
  const TestFolder folder;
  StoredGrid stored(R"(
      name: "long"
      base { task { legacy_recall { keys: 20 draw: 4 } }
             model { layers: 1 width: 8 heads: 2 } training { steps: 140000 batch: 2 } }
      seeds { first: 1 count: 1 })",
                    folder.path());
  const std::string run = stored.store()->ListCells(stored.experiment(), 0, 1)->front().run;
  StoredGrid::Curves curves;
  for (uint32_t step = 0; step < kSteps; ++step) curves["a"][step] = step / 10.0;
  curves["b"][0] = 1;
  stored.Finish("s1", curves);
  ASSERT_TRUE(stored.store()->Maintain().ok());
  Damages damages;
  SeriesCursor cursor(stored.store(), &damages);
  ASSERT_TRUE(cursor.OpenRun(run, {}).ok());
  EXPECT_EQ(ReadInPieces(&cursor).size(), kSteps);
  EXPECT_EQ(ReadInPieces(&cursor).size(), 1u);

  auto db = *storage::Connection::OpenFile(folder.path() + "/ablate.db",
                                           storage::Connection::Access::kReadWrite);
  storage::Statement(*db, "UPDATE chunks SET key = 64 WHERE key = 0 AND first_step = 65536").Run();
  ASSERT_TRUE(db->error().ok()) << db->error();
  ASSERT_TRUE(cursor.OpenRun(run, {}).ok());
  EXPECT_LT(ReadInPieces(&cursor, SeriesEnd::kDamaged).size(), kSteps);
  EXPECT_EQ(ReadInPieces(&cursor).size(), 1u);
  EXPECT_THAT(damages.ToStatus().message(),
              testing::AllOf(testing::HasSubstr("run " + run + ": points of a are damaged"),
                             testing::HasSubstr("74464 of 140000 are there")));
  SeriesCursor range(stored.store(), &damages, 1);  // doesn't know how many there should be
  range.OpenSeries(run, "a");
  EXPECT_EQ(ReadInPieces(&range).size(), kSteps - 65'536 - 1);
}

}  // namespace
}  // namespace ablate::results
