// Tests --axis: the axis that a name means, its values, and problems.
#include "client/submit/axis_options.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/submit/submission.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kAxisFile[] = R"(name: a
base: {task: {recall: {}}}
axes:
  - name: norm
    settings: [{label: pre}, {label: post, set: {model.norm.placement: post}}]
  - {name: rate, field: training.learning_rate, values: [0.1], tune: true}
  - {field: model.width, values: [8, 16]}
)";

Submission ReadWith(const std::vector<std::string>& axes, const std::string& file = kAxisFile) {
  SubmitOptions options;
  options.file = "-";
  options.axes = axes;
  std::istringstream in(file);
  absl::StatusOr<Submission> submission = ReadSubmission(options, in);
  EXPECT_TRUE(submission.ok()) << submission.status();
  return submission.ok() ? *std::move(submission) : Submission();
}

std::vector<std::string> AxisProblems(const Submission& submission) {
  std::vector<std::string> lines;
  for (const yaml::Diagnostic& problem : submission.file.problems) {
    lines.push_back(yaml::ToString(problem, "f"));
  }
  return lines;
}

std::string AxisText(const v1::Axis& axis) {
  std::string text = absl::StrCat(axis.name(), ":", axis.field(), axis.tune() ? " tuned" : "");
  for (const auto& value : axis.values()) {
    absl::StrAppend(
        &text, " ",
        value.has_number_value() ? absl::StrCat(value.number_value()) : value.string_value());
  }
  return text;
}

TEST(AxisOptionsTest, ReplaceTheValuesOfAnAxisOfTheFile) {
  // By its name, by the name that it has by default, by its field, and by the end of its field.
  for (const char* name :
       {"rate", "training.learning_rate", "learning_rate", "training.lr", "lr"}) {
    const Submission submission = ReadWith({absl::StrCat(name, "=1e-3,3e-3")});
    EXPECT_THAT(AxisProblems(submission), IsEmpty());
    ASSERT_EQ(submission.file.spec.axes_size(), 3);
    EXPECT_EQ(AxisText(submission.file.spec.axes(1)),
              "rate:training.learning_rate tuned 0.001 0.003");
  }
  EXPECT_EQ(AxisText(ReadWith({"width=[32]"}).file.spec.axes(2)), ":model.width 32");
}

TEST(AxisOptionsTest, LeaveSwitchesAlone) {
  const std::string file = R"(name: a
base: {task: {recall: {}}}
axes:
  - switches:
      - rms: {model.norm.kind: rms}
      - typo: {model.nrom.kind: rms}
)";
  EXPECT_THAT(AxisProblems(ReadWith({"switches=1"}, file)),
              ElementsAre(HasSubstr("f:6:9: axes[0].switches[1].set[\"model.nrom.kind\"]: unknown"),
                          "--axis switches: the file's axis of this name has switches; expected an "
                          "axis with field and values"));
}

TEST(AxisOptionsTest, RemoveExclusionsOfValuesThatTheyReplace) {
  const std::string file = absl::StrCat(kAxisFile, R"(exclude:
  - {where: {width: 8, norm: pre}}
  - {where: {width: 16, norm: post}}
  - {where: {width: 12}}
)");
  const Submission submission = ReadWith({"width=16,32"}, file);
  EXPECT_THAT(AxisProblems(submission), IsEmpty());
  ASSERT_EQ(submission.file.spec.exclude_size(), 2) << "a value that the file never had stays";
  EXPECT_EQ(submission.file.spec.exclude(0).where().at("width").number_value(), 16);
  EXPECT_EQ(submission.file.spec.exclude(1).where().at("width").number_value(), 12);
  EXPECT_EQ(ReadWith({"lr=1"}, file).file.spec.exclude_size(), 3);
}

TEST(AxisOptionsTest, ReadUnitsOfProgramLimits) {
  const Submission submission =
      ReadWith({"program.limits.time=10m,2h"},
               "name: a\nbase: {program: {command: a}, settings: {lr: 1}}\n");
  EXPECT_THAT(AxisProblems(submission), IsEmpty());
  EXPECT_EQ(AxisText(submission.file.spec.axes(0)), ":program.limits.time 600s 7200s");
}

TEST(AxisOptionsTest, MeanTheSettingsOfAProgram) {
  const std::string file =
      "name: a\nbase: {program: {command: [x]}, settings: {lr: 0.1, model: {bias: false}}}\n";
  for (const auto& [option, field] :
       {std::pair("lr=0.1,0.2", "settings.lr"), std::pair("bias=false,true", "settings.model.bias"),
        std::pair("model.bias=true", "settings.model.bias")}) {
    const Submission submission = ReadWith({option}, file);
    EXPECT_THAT(AxisProblems(submission), IsEmpty());
    ASSERT_EQ(submission.file.spec.axes_size(), 1);
    EXPECT_EQ(submission.file.spec.axes(0).field(), field);
  }
}

TEST(AxisOptionsTest, AddAnAxisOfAnotherField) {
  const Submission submission =
      ReadWith({"model.norm.kind=layer,rms", "bs=8,16", "clip={linear: [0, 1], count: 3}"});
  EXPECT_THAT(AxisProblems(submission), IsEmpty());
  ASSERT_EQ(submission.file.spec.axes_size(), 6);
  EXPECT_EQ(AxisText(submission.file.spec.axes(3)), ":model.norm.kind layer rms");
  EXPECT_EQ(AxisText(submission.file.spec.axes(4)), "bs:training.batch 8 16");
  EXPECT_EQ(AxisText(submission.file.spec.axes(5)), ":training.clip 0 0.5 1");
}

TEST(AxisOptionsTest, AreInTheRequest) {
  const Submission submission = ReadWith({"lr=1"});
  EXPECT_EQ(MakeRequest(submission, {}).spec().axes(1).values(0).number_value(), 1);
}

TEST(AxisOptionsTest, NameTheProblemAndWhatIsExpected) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"norm=pre"},
       "--axis norm: the file's axis of this name has settings; expected an axis with field and "
       "values"},
      {{"eps=1"},
       "--axis eps: several fields have this name; expected model.norm.eps or training.eps"},
      {{"trainig.lr=1"},
       "--axis trainig.lr: unknown field \"trainig\" (did you mean training?); expected"},
      {{"precison=1"},
       "--axis precison: unknown field \"precison\" (did you mean training.precision or "
       "training.muon.precision?); expected"},
      {{"xyzzy=1"},
       "--axis xyzzy: unknown field \"xyzzy\"; expected task, model, training, evaluation, "
       "model_from, program, settings or imported"},
      {{"rate=1", "lr=2"}, "--axis lr: --axis rate gives values to the same axis already"},
      {{"width=8,wide"},
       "--axis width: values[1]: \"wide\" is not a whole number; expected a whole number"},
      {{"lr={log: [0, 1], count: 3}"},
       "--axis lr: log: [0, 1] is not a range; expected two different numbers above 0"}};
  for (const auto& [axes, problem] : cases) {
    EXPECT_THAT(AxisProblems(ReadWith(axes)), ElementsAre(HasSubstr(problem)));
  }
}

TEST(AxisOptionsTest, AreRefusedWithoutNameOrValues) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"lr"}, "--axis lr: write NAME=VALUES, such as lr=1e-3,3e-3"},
      {{"=1"}, "--axis : write NAME=VALUES, such as lr=1e-3,3e-3"},
      {{"lr= "}, "--axis lr: no values after the '='; expected some, such as 1e-3,3e-3"},
      {{"lr=1,,2", "lr"}, "--axis lr: "},
      {{"lr={log: 1"}, "--axis lr: the file ends, but a '{' or '[' is not closed"}};
  for (const auto& [axes, message] : cases) {
    EXPECT_THAT(std::string(ParseAxes(axes).status().message()), HasSubstr(message));
  }
}

TEST(AxisOptionsTest, OwnTheServersProblemsWithTheirAxis) {
  const Submission submission = ReadWith({"rate=1,1"});
  v1::CreateExperimentResponse response;
  v1::Problem* problem = response.add_problems();
  problem->set_field("axes[1].values[1]");
  problem->set_message("axes[1].values[1]: 1 is given twice; expected distinct values");
  std::vector<std::string> lines;
  for (const yaml::Diagnostic& one : Locate(response.problems(), submission)) {
    lines.push_back(ToString(one, "f"));
  }
  EXPECT_THAT(lines, ElementsAre("--axis rate: values[1]: 1 is given twice; expected distinct "
                                 "values"));
}

TEST(AxisOptionsTest, HaveEachProblemOnceIfTheServerFindsItToo) {
  const Submission submission = ReadWith({"rate=fast"});
  v1::CreateExperimentResponse response;
  v1::Problem* problem = response.add_problems();
  problem->set_field("axes[1].values[0]");
  problem->set_message("axes[1].values[0]: \"fast\" is not a number; expected a number");
  EXPECT_EQ(Locate(response.problems(), submission).size(), 1u);
}

TEST(AxisOptionsTest, SayNothingOfAFileThatCannotBeRead) {
  const Submission submission = ReadWith({"norm=1"}, "name: [");
  EXPECT_FALSE(submission.file.readable);
  EXPECT_EQ(submission.file.problems.size(), 1u);
}

}  // namespace
}  // namespace ablate::client
