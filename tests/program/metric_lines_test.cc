// Tests the lines of JSON by which programs report points, checkpoints and progress.
#include "server/program/metric_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace ablate::program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

MetricEvents Parse(absl::string_view text) {
  MetricLines lines;
  lines.Add(text);
  return lines.Take(/*last=*/true);
}

TEST(MetricLinesTest, TakesNumbersBooleansAndNestedObjects) {
  const MetricEvents events =
      Parse("{\"step\": 5, \"loss\": 0.25, \"good\": true, \"layer\": {\"0\": {\"w\": 1}}}\r\n\n");
  EXPECT_THAT(events.points,
              ElementsAre(Point{"good", 5, 1}, Point{"layer/0/w", 5, 1}, Point{"loss", 5, 0.25}));
  EXPECT_THAT(events.remarks, IsEmpty());
}

TEST(MetricLinesTest, TakesNotFiniteNumbersBareAndAsText) {
  const MetricEvents events = Parse(
      R"({"step": 1, "a": NaN, "b": Infinity, "c": -Infinity, "d \" NaN": "NaN", "e": "-Infinity"})");
  ASSERT_THAT(events.points, SizeIs(5));
  EXPECT_TRUE(std::isnan(events.points[0].value));
  EXPECT_EQ(events.points[1].value, INFINITY);
  EXPECT_EQ(events.points[2].value, -INFINITY);
  EXPECT_EQ(events.points[3].key, "d \" NaN");
  EXPECT_TRUE(std::isnan(events.points[3].value));
  EXPECT_EQ(events.points[4].value, -INFINITY);
}

TEST(MetricLinesTest, KeepsTheLastStepWhenALineHasNone) {
  EXPECT_THAT(Parse("{\"a\": 1}\n{\"step\": 7.0}\n{\"a\": 2}").points,
              ElementsAre(Point{"a", 0, 1}, Point{"a", 7, 2}));
}

TEST(MetricLinesTest, RemarksOnceForEachKeyWithValuesThatAreNotNumbers) {
  const MetricEvents events =
      Parse("{\"name\": \"x\", \"list\": [1]}\n{\"step\": 1, \"name\": \"y\", \"a\": 1}\n");
  EXPECT_THAT(events.points, ElementsAre(Point{"a", 1, 1}));
  EXPECT_THAT(events.remarks, ElementsAre(HasSubstr("\"list\""), HasSubstr("\"name\"")));
}

TEST(MetricLinesTest, LeavesOutLinesWithBadOrDecreasingSteps) {
  const MetricEvents events = Parse(
      "{\"step\": 5, \"a\": 1}\n{\"step\": 4, \"a\": 2}\n{\"step\": 3, \"a\": 3}\n"
      "{\"step\": -1, \"a\": 4}\n{\"step\": 5.5, \"a\": 4}\n{\"step\": 4294967296, \"a\": 4}\n"
      "{\"step\": 4294967295, \"a\": 5}\n");
  EXPECT_THAT(events.points, ElementsAre(Point{"a", 5, 1}, Point{"a", 4294967295, 5}));
  EXPECT_THAT(events.remarks, ElementsAre(HasSubstr("4 comes after 5"), HasSubstr("\"-1\"")));
}

TEST(MetricLinesTest, KeepsTheFirstOfTwoValuesAtOneStep) {
  const MetricEvents events = Parse("{\"a\": 1}\n{\"a\": 2, \"b\": 3}\n");
  EXPECT_THAT(events.points, ElementsAre(Point{"a", 0, 1}, Point{"b", 0, 3}));
  EXPECT_THAT(events.remarks, ElementsAre(HasSubstr("several values at step 0")));
}

TEST(MetricLinesTest, TakesTenThousandKeysUpToTheLimitWithOneRemark) {
  MetricLines lines;
  size_t points = 0;
  std::vector<std::string> remarks;
  for (int key = 0; key < 10'000; ++key) {
    lines.Add(absl::StrCat("{\"k", key, "\": 1}\n"));
    const MetricEvents events = lines.Take();
    points += events.points.size();
    remarks.insert(remarks.end(), events.remarks.begin(), events.remarks.end());
  }
  EXPECT_EQ(points, kMaxKeys);
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("more than 1000 keys")));
}

TEST(MetricLinesTest, LeavesOutBadKeys) {
  const MetricEvents events =
      Parse(absl::StrCat("{\"\": 1, \"a\\u0007\": 2, \"", std::string(101, 'k'), "\": 3, \"",
                         std::string(100, 'k'), "\": 4}"));
  ASSERT_THAT(events.points, SizeIs(1));
  EXPECT_EQ(events.points[0].value, 4);
  EXPECT_THAT(events.remarks, SizeIs(1));
}

TEST(MetricLinesTest, StopsAtACheckpoint) {
  MetricLines lines;
  lines.Add("{\"step\": 3, \"a\": 1}\n{\"checkpoint\": 3}\n{\"step\": 4, \"a\": 2}\n");
  const MetricEvents before = lines.Take();
  EXPECT_THAT(before.points, ElementsAre(Point{"a", 3, 1}));
  EXPECT_EQ(before.checkpoint, 3u);
  const MetricEvents after = lines.Take();
  EXPECT_THAT(after.points, ElementsAre(Point{"a", 4, 2}));
  EXPECT_EQ(after.checkpoint, std::nullopt);
}

TEST(MetricLinesTest, RejectsACheckpointBelowTheLastStep) {
  const MetricEvents events = Parse("{\"step\": 3, \"a\": 1}\n{\"checkpoint\": 2}\n");
  EXPECT_EQ(events.checkpoint, std::nullopt);
  EXPECT_EQ(events.rejected_checkpoints, 1u);
  EXPECT_THAT(events.remarks, ElementsAre(HasSubstr("at least 3")));
}

TEST(MetricLinesTest, TakesTheLastProgress) {
  EXPECT_EQ(Parse("{\"progress\": 1, \"of\": 9}\n{\"progress\": 2, \"of\": 9}").progress,
            (Progress{2, 9}));
  EXPECT_EQ(Parse("{\"progress\": 2}").progress, (Progress{2, 0}));
  EXPECT_THAT(Parse("{\"progress\": 0.5, \"loss\": 1}").points, SizeIs(2)) << "an ordinary key";
}

TEST(MetricLinesTest, DropsLongLinesInBoundedMemory) {
  MetricLines lines;
  const std::string part(10'000, 'x');
  std::vector<std::string> remarks;
  for (int count = 0; count < 1000; ++count) {
    lines.Add(part);
    const MetricEvents events = lines.Take();
    remarks.insert(remarks.end(), events.remarks.begin(), events.remarks.end());
  }
  lines.Add("\n{\"a\": 1}\n");
  EXPECT_THAT(lines.Take().points, ElementsAre(Point{"a", 0, 1}));
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("longer than 64 KiB")));
}

TEST(MetricLinesTest, SurvivesLinesThatAreNoJson) {
  EXPECT_THAT(Parse("loss = 1\n[1]\n\xFF\xFE{}\n{\"a\": 1").remarks, SizeIs(1));
  EXPECT_THAT(Parse(std::string(60'000, '[')).remarks, SizeIs(1));
  const std::string deep = std::string(30'000, '[') + std::string(30'000, ']');
  EXPECT_THAT(Parse("{\"a\": " + deep + "}").remarks, ElementsAre(HasSubstr("array")));
  EXPECT_THAT(Parse("{\"step\": " + deep + "}").remarks, SizeIs(1));
  std::string objects;
  for (int depth = 0; depth < 9'000; ++depth) objects += "{\"a\":";
  EXPECT_THAT(Parse(objects + "1" + std::string(9'000, '}')).remarks, SizeIs(1));
}

TEST(MetricLinesTest, MakesAtMostTwentyRemarks) {
  std::string line = "{";
  for (int key = 0; key < 50; ++key) absl::StrAppend(&line, "\"k", key, "\": null, ");
  const MetricEvents events = Parse(line + "\"a\": 1}");
  EXPECT_THAT(events.remarks, SizeIs(kMaxRemarks));
  EXPECT_THAT(events.points, SizeIs(1));
}

}  // namespace
}  // namespace ablate::program
