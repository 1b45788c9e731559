// Tests curves in buckets.
#include "client/web/curves.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ablate::web {
namespace {

using nlohmann::json;

v1::Series Points(const std::string& run, uint32_t first, const std::vector<double>& values) {
  v1::Series series;
  series.set_run(run);
  for (size_t i = 0; i < values.size(); ++i) {
    series.add_steps(first + i);
    series.add_values(values[i]);
  }
  return series;
}

TEST(CurveTableTest, HasMeanAndRangeOfARunsBuckets) {
  CurveTable table({{"a", 3, {"runs/1"}}}, 600);  // two steps a bucket
  table.Add(Points("runs/1", 0, {1, 3, 5, 9}));
  EXPECT_EQ(json::parse(table.Whole()),
            json::parse(R"({"whole":true,"width":2,"labels":["a"],"hues":[3],
                            "rows":[[0,[1,2,3]],[2,[5,7,9]]]})"));
}

TEST(CurveTableTest, HasTheRangeOfSeedsForASetting) {
  CurveTable table({{"a", 0, {"runs/1", "runs/2"}}, {"b", 1, {"runs/3"}}}, 10);
  table.Add(Points("runs/1", 0, {1, 1}));
  table.Add(Points("runs/2", 0, {3}));
  EXPECT_EQ(json::parse(table.Whole())["rows"], json::parse("[[0,[1,2,3],null],[1,[1,1,1],null]]"));
}

TEST(CurveTableTest, ReturnsOnlyWhatChanged) {
  CurveTable table({{"a", 0, {"runs/1"}}}, 10);
  EXPECT_EQ(table.TakeChanges(), "");
  table.Add(Points("runs/1", 0, {1, 2}));
  EXPECT_EQ(json::parse(table.TakeChanges())["rows"], json::parse("[[0,[1,1,1]],[1,[2,2,2]]]"));
  EXPECT_EQ(table.TakeChanges(), "");
  table.Add(Points("runs/1", 2, {5}));
  const json changes = json::parse(table.TakeChanges());
  EXPECT_EQ(changes["rows"], json::parse("[[2,[5,5,5]]]"));
  EXPECT_EQ(changes["whole"], false);
}

TEST(CurveTableTest, CountsPointsThatComeAgainOnce) {
  CurveTable table({{"a", 0, {"runs/1"}}}, 600);
  table.Add(Points("runs/1", 0, {1, 3}));
  table.Add(Points("runs/1", 0, {1, 3, 8}));
  EXPECT_EQ(table.NextStep("runs/1"), 3u);
  EXPECT_EQ(json::parse(table.Whole())["rows"], json::parse("[[0,[1,2,3]],[2,[8,8,8]]]"));
}

TEST(CurveTableTest, LeavesOutValuesThatArentFinite) {
  CurveTable table({{"a", 0, {"runs/1"}}}, 600);
  table.Add(Points("runs/1", 0, {std::nan(""), 3, std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(json::parse(table.Whole())["rows"], json::parse("[[0,[3,3,3]]]"));
}

TEST(CurveTableTest, IgnoresRunsWithoutACurve) {
  CurveTable table({{"a", 0, {"runs/1"}}}, 10);
  table.Add(Points("runs/9", 0, {1}));
  EXPECT_EQ(table.TakeChanges(), "");
  EXPECT_EQ(table.NextStep("runs/9"), 0u);
}

TEST(CurveTableTest, GrowsBeyondTheExpectedSteps) {
  CurveTable table({{"a", 0, {"runs/1"}}}, 0);  // as of a program
  table.Add(Points("runs/1", 5000, {1}));
  EXPECT_EQ(json::parse(table.Whole())["rows"], json::parse("[[5000,[1,1,1]]]"));
}

TEST(CurveTableTest, EscapesLabels) {
  CurveTable table({{"</script>\"\n\xff", 0, {}}}, 1);
  EXPECT_EQ(json::parse(table.Whole())["labels"][0], "</script>\"\n\uFFFD");
}

}  // namespace
}  // namespace ablate::web
