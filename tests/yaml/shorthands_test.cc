// Tests shorthands of seeds and of axis values.
#include "proto/yaml/shorthands.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/yaml/experiment_text.h"

namespace ablate::yaml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> ShorthandProblems(const ExperimentText& file) {
  std::vector<std::string> lines;
  for (const Diagnostic& problem : file.problems) lines.push_back(ToString(problem, "f"));
  return lines;
}

std::vector<double> AxisValues(const v1::Axis& axis) {
  std::vector<double> values;
  for (const auto& value : axis.values()) values.push_back(value.number_value());
  return values;
}

TEST(RangeValuesTest, AreShortDecimalsBetweenExactEnds) {
  EXPECT_THAT(RangeValues(1e-4, 1e-2, 5, true, false),
              ElementsAre(1e-4, 3.16e-4, 1e-3, 3.16e-3, 1e-2));
  EXPECT_THAT(RangeValues(1e-2, 1e-4, 3, true, false), ElementsAre(1e-2, 1e-3, 1e-4));
  EXPECT_THAT(RangeValues(0, 1, 5, false, false), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_THAT(RangeValues(0, 1, 4, false, false), ElementsAre(0, 0.333, 0.667, 1));
  EXPECT_THAT(RangeValues(0, 0.3, 4, false, false), ElementsAre(0, 0.1, 0.2, 0.3));
  EXPECT_THAT(RangeValues(-0.3, 0.3, 7, false, false),
              ElementsAre(-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3));
  EXPECT_THAT(RangeValues(1000, 1001, 5, false, false),
              ElementsAre(1000, 1000.25, 1000.5, 1000.75, 1001));
  EXPECT_THAT(RangeValues(0.1234567, 7, 2, true, false), ElementsAre(0.1234567, 7));
  EXPECT_THAT(RangeValues(16, 512, 4, true, true), ElementsAre(16, 51, 161, 512));
}

TEST(RangeValuesTest, StayDistinctAndAscending) {
  for (const bool log : {false, true}) {
    const std::vector<double> values = RangeValues(1, 1.001, 1000, log, false);
    for (size_t i = 1; i < values.size(); ++i) EXPECT_GT(values[i], values[i - 1]) << i;
  }
}

TEST(ShorthandsTest, StandForSeedsAndValues) {
  const ExperimentText file = ReadExperiment(R"(name: a
base: {task: {recall: {}}}
seeds: 8
axes:
  - {field: training.learning_rate, values: {log: [1e-4, 1e-2], count: 3}, tune: true}
  - {field: model.width, values: {linear: [16, 128], count: 3}}
  - {field: training.clip, values: [0, 1]}
)");
  EXPECT_THAT(ShorthandProblems(file), IsEmpty());
  EXPECT_FALSE(file.spec.seeds().has_first());
  EXPECT_EQ(file.spec.seeds().count(), 8u);
  EXPECT_THAT(AxisValues(file.spec.axes(0)), ElementsAre(1e-4, 1e-3, 1e-2));
  EXPECT_TRUE(file.spec.axes(0).tune());
  EXPECT_THAT(AxisValues(file.spec.axes(1)), ElementsAre(16, 72, 128));
  EXPECT_THAT(AxisValues(file.spec.axes(2)), ElementsAre(0, 1));
}

TEST(ShorthandsTest, StandForRangesAndListsOfSeeds) {
  const auto seeds = [](const std::string& yaml) {
    const ExperimentText file =
        ReadExperiment("name: a\nbase: {task: {recall: {}}}\nseeds: " + yaml);
    EXPECT_THAT(ShorthandProblems(file), IsEmpty()) << yaml;
    return file.spec.seeds();
  };
  EXPECT_EQ(seeds("42..53").first(), 42u);
  EXPECT_EQ(seeds("42..53").count(), 12u);
  EXPECT_THAT(seeds("[1, 2, 5]").list(), ElementsAre(1, 2, 5));
  EXPECT_THAT(seeds("0..2,5").list(), ElementsAre(0, 1, 2, 5));
}

TEST(ShorthandsTest, NameFieldAndValueOfMistakes) {
  const std::string range =
      "is not a range; expected a list of values, {log: [FIRST, LAST], count: N} or {linear: "
      "[FIRST, LAST], count: N}";
  const std::pair<const char*, std::string> cases[] = {
      {"seeds: 0",
       "f:1:1: seeds: 0 is not a number of seeds; expected a whole number from 1 to 10000, a range "
       "such as 0..9, a list, or the fields first, count and list"},
      {"seeds: 2.5",
       "f:1:1: seeds: 2.5 is not a number of seeds; expected a whole number from 1 to 10000, a "
       "range such as 0..9, a list, or the fields first, count and list"},
      {"seeds: twelve",
       "f:1:1: seeds: \"twelve\" is not a number of seeds; expected a whole number from 1 to "
       "10000, a range such as 0..9, a list, or the fields first, count and list"},
      {"seeds: 9..0",
       "f:1:1: seeds: the range \"9..0\" ends before it begins; expected FIRST..LAST"},
      {"seeds: 0..9,x",
       "f:1:1: seeds: \"x\" is not a seed; expected 0 to 4294967295, or a range such as 0..9"},
      {"seeds: [1, x]",
       "f:1:1: seeds.list[1]: \"x\" is not a whole number; expected a whole number"},
      {"axes: [{field: training.clip, values: {log: [0, 1], count: 3}}]",
       "f:1:31: axes[0].values: log: [0, 1] is not a range; expected two different numbers above "
       "0, such as [1e-4, 1e-2]"},
      {"axes: [{field: training.clip, values: {linear: [1, 1], count: 3}}]",
       "f:1:31: axes[0].values: linear: [1, 1] is not a range; expected two different numbers, "
       "such as [0, 1]"},
      {"axes: [{field: training.clip, values: {linear: [1], count: 3}}]",
       "f:1:31: axes[0].values: linear: [1] is not a range; expected two different numbers, such "
       "as [0, 1]"},
      {"axes: [{field: training.clip, values: {linear: [-1e308, 1e308], count: 3}}]",
       "f:1:31: axes[0].values: linear: [-1e+308, 1e+308] is not a range; expected two different "
       "numbers, such as [0, 1]"},
      {"axes: [{field: training.clip, values: {linear: [0, 1], count: 1}}]",
       "f:1:31: axes[0].values: count: 1 is not a number of values; expected a whole number from 2 "
       "to 1000"},
      {"axes: [{field: model.layers, values: {log: [1, 3], count: 8}}]",
       "f:1:30: axes[0].values: the range has only 3 different whole numbers, fewer than count: 8; "
       "expected a count of at most 3, or a list of values"},
      {"axes: [{field: model.width, values: {log: [1, 100], count: 20}}]",
       "f:1:29: axes[0].values: the range has only 17 different whole numbers, fewer than count: "
       "20; expected a count of at most 11, or a list of values"},
      {"axes: [{field: training.clip, values: {linear: [0, 1], count: 1e9}}]",
       "f:1:31: axes[0].values: count: 1000000000 is not a number of values; expected a whole "
       "number from 2 to 1000"},
      {"axes: [{field: training.clip, values: {linear: [0, 1], cuont: 3}}]",
       "f:1:31: axes[0].values: {cuont: 3, linear: [0, 1]} " + range},
      {"axes: [{field: training.clip, values: {log: [1, 2], linear: [0, 1], count: 3}}]",
       "f:1:31: axes[0].values: {count: 3, linear: [0, 1], log: [1, 2]} " + range}};
  for (const auto& [yaml, problem] : cases) {
    const ExperimentText file = ReadExperiment(yaml);
    EXPECT_THAT(ShorthandProblems(file), ElementsAre(problem));
    EXPECT_FALSE(file.unread.empty()) << yaml;
  }
}

}  // namespace
}  // namespace ablate::yaml
