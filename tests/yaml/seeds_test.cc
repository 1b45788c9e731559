// Tests seeds as texts.
#include "proto/yaml/seeds.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::yaml {
namespace {

using ::testing::ElementsAre;

TEST(ParseSeedsTest, ReadsRangesAndLists) {
  EXPECT_EQ(ParseSeeds("0..9")->first(), 0u);
  EXPECT_EQ(ParseSeeds("0..9")->count(), 10u);
  EXPECT_EQ(ParseSeeds("0..9")->list_size(), 0);
  EXPECT_EQ(ParseSeeds("7..7")->first(), 7u);
  EXPECT_EQ(ParseSeeds("7..7")->count(), 1u);
  EXPECT_FALSE(ParseSeeds("8")->has_first());
  EXPECT_EQ(ParseSeeds("8")->count(), 8u);
  EXPECT_EQ(ParseSeeds("10000")->count(), 10'000u);
  EXPECT_THAT(ParseSeeds("5,1,2")->list(), ElementsAre(5, 1, 2));
  EXPECT_THAT(ParseSeeds("1..3,9")->list(), ElementsAre(1, 2, 3, 9));
  EXPECT_EQ(ParseSeeds("4294967295..4294967295")->first(), 4294967295u);
  EXPECT_EQ(ParseSeeds("4294967290..4294967295")->count(), 6u);
  EXPECT_EQ(ParseSeeds("1..10000")->count(), 10'000u);
}

TEST(ParseSeedsTest, RefusesWhatMakesNoSense) {
  const std::pair<const char*, const char*> cases[] = {
      {"",
       "\"\" is not a number of seeds; expected 1 to 10000, a range such as 0..9, or a list such "
       "as 1,2,5"},
      {"x",
       "\"x\" is not a number of seeds; expected 1 to 10000, a range such as 0..9, or a list such "
       "as 1,2,5"},
      {"0",
       "\"0\" is not a number of seeds; expected 1 to 10000, a range such as 0..9, or a list such "
       "as 1,2,5"},
      {"-1",
       "\"-1\" is not a number of seeds; expected 1 to 10000, a range such as 0..9, or a list such "
       "as 1,2,5"},
      {"10001",
       "\"10001\" is not a number of seeds; expected 1 to 10000, a range such as 0..9, or a list "
       "such as 1,2,5"},
      {"4294967296",
       "\"4294967296\" is not a number of seeds; expected 1 to 10000, a range such as 0..9, or a "
       "list such as 1,2,5"},
      {"1,", "\"\" is not a seed; expected 0 to 4294967295, or a range such as 0..9"},
      {"1..", "\"1..\" is not a seed; expected 0 to 4294967295, or a range such as 0..9"},
      {"4294967296,1",
       "\"4294967296\" is not a seed; expected 0 to 4294967295, or a range such as 0..9"},
      {"9..0", "the range \"9..0\" ends before it begins; expected FIRST..LAST"},
      {"1,2,1", "1 is given twice; expected different seeds"},
      {"0..3,2", "2 is given twice; expected different seeds"},
      {"0..4294967295", "\"0..4294967295\" has too many seeds; expected at most 10000"},
      {"0..10000", "\"0..10000\" has too many seeds; expected at most 10000"},
      {"0..9998,10000..10001",
       "\"0..9998,10000..10001\" has too many seeds; expected at most 10000"}};
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(ParseSeeds(text).status().message(), message) << text;
  }
}

}  // namespace
}  // namespace ablate::yaml
