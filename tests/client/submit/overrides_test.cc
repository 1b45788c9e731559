// Tests --set and --seeds.
#include "client/submit/experiment_file.h"
#include "client/submit/seeds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/reflect/field_lists.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParseOverridesTest, ReadsValuesAsInAFile) {
  const absl::StatusOr<Overrides> parsed = ParseOverrides(
      {"training.steps=100", "model.norm={kind: rms, final: false}", "training.betas=[0.5,0.9]",
       "task.documents.dataset=a=b.txt", "training.clip=null", "model.bias=false"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Overrides& overrides = *parsed;
  EXPECT_EQ(overrides.at("training.steps").number_value(), 100);
  EXPECT_EQ(overrides.at("model.norm").struct_value().fields().at("kind").string_value(), "rms");
  EXPECT_EQ(overrides.at("training.betas").list_value().values(1).number_value(), 0.9);
  EXPECT_EQ(overrides.at("task.documents.dataset").string_value(), "a=b.txt");
  EXPECT_EQ(overrides.at("training.clip").kind_case(), google::protobuf::Value::kNullValue);
  EXPECT_FALSE(overrides.at("model.bias").bool_value());
  std::vector<Diagnostic> problems;
  CheckOverrides(overrides, &problems);
  EXPECT_THAT(problems, IsEmpty());
}

TEST(ParseOverridesTest, RefusesWhatIsNoPathAndValue) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"training.batch"}, "--set training.batch: write path=value, such as training.steps=100"},
      {{"=1"}, "--set : write path=value, such as training.steps=100"},
      {{"model.heads="},
       "--set model.heads: no value after the '='; write null to clear the field"},
      {{"model.norm={kind: rms"},
       "--set model.norm: the file ends, but a '{' or '[' is not closed"},
      {{"training.clip=1", "training.clip=2", "model.heads="},
       "--set training.clip: given twice; "
       "--set model.heads: no value after the '='; write null to clear the field"}};
  for (const auto& [arguments, message] : cases) {
    EXPECT_EQ(ParseOverrides(arguments).status().message(), message);
  }
}

TEST(CheckOverridesTest, NamesEveryProblem) {
  const absl::StatusOr<Overrides> overrides =
      ParseOverrides({"training.stepz=1", "training.steps=many"});
  ASSERT_TRUE(overrides.ok());
  std::vector<Diagnostic> problems;
  CheckOverrides(*overrides, &problems);
  std::vector<std::string> lines;
  for (const Diagnostic& problem : problems) lines.push_back(ToString(problem, "file"));
  EXPECT_THAT(
      lines,
      ElementsAre(
          "--set training.steps: \"many\" is not a whole number; expected a whole number",
          WithFieldLists("--set training.stepz: unknown field \"stepz\" (did you mean steps?); "
                         "expected {TrainingSpec}")));
}

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
       "\"\" is not a number of seeds; expected 1 to 10000, "
       "a range such as 0..9, or a list such as 1,2,5"},
      {"x",
       "\"x\" is not a number of seeds; expected 1 to 10000, "
       "a range such as 0..9, or a list such as 1,2,5"},
      {"0",
       "\"0\" is not a number of seeds; expected 1 to 10000, "
       "a range such as 0..9, or a list such as 1,2,5"},
      {"-1",
       "\"-1\" is not a number of seeds; expected 1 to 10000, "
       "a range such as 0..9, or a list such as 1,2,5"},
      {"10001",
       "\"10001\" is not a number of seeds; expected 1 to 10000, "
       "a range such as 0..9, or a list such as 1,2,5"},
      {"4294967296",
       "\"4294967296\" is not a number of seeds; expected 1 to 10000, "
       "a range such as 0..9, or a list such as 1,2,5"},
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
}  // namespace ablate::client
