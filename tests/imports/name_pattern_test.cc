#include "server/imports/name_pattern.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::imports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

auto Match(const std::string& pattern, const std::string& name)
    -> absl::StatusOr<std::map<std::string, std::string>> {
  const auto parsed = NamePattern::Parse(pattern, "seed");
  return parsed.ok() ? parsed->Match(name) : parsed.status();
}

TEST(NamePatternTest, ReadsTheValuesOfItsKeys) {
  EXPECT_THAT(*Match("{norm}/lr{lr}-s{seed}", "post/lr0.01-s12"),
              ElementsAre(Pair("lr", "0.01"), Pair("norm", "post"), Pair("seed", "12")));
  EXPECT_THAT(*Match("{x}", "a"), ElementsAre(Pair("x", "a")));
  EXPECT_THAT(*Match("run", "run"), ElementsAre());
}

TEST(NamePatternTest, TakesDigitsForTheSeedOnly) {
  EXPECT_THAT(*Match("{norm}-s{seed}", "a-s1-s2"),
              ElementsAre(Pair("norm", "a-s1"), Pair("seed", "2")));
  EXPECT_FALSE(Match("s{seed}", "s1a").ok());
}

TEST(NamePatternTest, RefusesANameThatMatchesInNoOrInSeveralWays) {
  EXPECT_THAT(Match("{a}-{b}", "x").status().message(), HasSubstr("doesn't match \"x\""));
  EXPECT_THAT(Match("{a}-{b}", "x-y-z").status().message(), HasSubstr("in several ways"));
  EXPECT_FALSE(Match("{a}", "x/y").ok()) << "a value has no slash";
  EXPECT_FALSE(Match("{a}", "").ok());
}

TEST(NamePatternTest, TakesATimeThatGrowsWithTheNameAlone) {
  const std::string pattern = "{a}{b}{c}{d}{e}{f}{g}{h}!";
  EXPECT_FALSE(Match(pattern, std::string(1000, 'x')).ok());
}

TEST(NamePatternTest, RefusesBadPatterns) {
  for (const char* pattern : {"", "{", "{}", "{a}{a}", "x{seed"}) {
    EXPECT_EQ(Match(pattern, "x").status().code(), absl::StatusCode::kInvalidArgument) << pattern;
  }
}

}  // namespace
}  // namespace ablate::imports
