// Tests --set and --seeds.
#include "client/submit/experiment_file.h"
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
  std::vector<yaml::Diagnostic> problems;
  CheckOverrides(overrides, &problems);
  EXPECT_THAT(problems, IsEmpty());
}

TEST(ParseOverridesTest, ReadsShorthandsOfPrograms) {
  const absl::StatusOr<Overrides> parsed =
      ParseOverrides({"program.command=python a.py | tee log", "program.files=[a.py, lib]",
                      "program.limits.time=1.5h", "program.limits={memory: 8GB}", "settings.t=2h"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->at("program.command").list_value().values(2).string_value(),
            "python a.py | tee log \"$@\"");
  EXPECT_EQ(parsed->at("program.files").string_value(), "a.py, lib");
  EXPECT_EQ(parsed->at("program.limits.time").string_value(), "5400s");
  EXPECT_EQ(parsed->at("program.limits").struct_value().fields().at("memory").number_value(), 8e9);
  EXPECT_EQ(parsed->at("settings.t").string_value(), "2h");
  std::vector<yaml::Diagnostic> problems;
  CheckOverrides(*parsed, &problems);
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
       "--set training.clip: given twice; --set model.heads: no value after the '='; write null to "
       "clear the field"}};
  for (const auto& [arguments, message] : cases) {
    EXPECT_EQ(ParseOverrides(arguments).status().message(), message);
  }
}

TEST(CheckOverridesTest, NamesEveryProblem) {
  const absl::StatusOr<Overrides> overrides =
      ParseOverrides({"training.stepz=1", "training.steps=many"});
  ASSERT_TRUE(overrides.ok());
  std::vector<yaml::Diagnostic> problems;
  CheckOverrides(*overrides, &problems);
  std::vector<std::string> lines;
  for (const yaml::Diagnostic& problem : problems) lines.push_back(yaml::ToString(problem, "file"));
  EXPECT_THAT(
      lines,
      ElementsAre(
          "--set training.steps: \"many\" is not a whole number; expected a whole number",
          WithFieldLists("--set training.stepz: unknown field \"stepz\" (did you mean steps?); "
                         "expected {TrainingSpec}")));
}

}  // namespace
}  // namespace ablate::client
