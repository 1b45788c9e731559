// Tests that the server's problems are printed at the line or the option that causes them.
#include "client/submit/submission.h"

#include <algorithm>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;

constexpr const char* kSubmittedText = R"(name: a
base:
  task: {legacy_recall: {}}
  model: {width: 30, heads: 4}
axes:
  - name: norm
    settings:
      - {label: pre}
      - {label: pre, set: {model.norm.placement: none}}
seeds: {first: 1, count: 2}
)";

Submission ReadFrom(const std::string& text, const SubmitOptions& options) {
  std::istringstream in(text);
  absl::StatusOr<Submission> submission = ReadSubmission(options, in);
  EXPECT_TRUE(submission.ok()) << submission.status();
  return *std::move(submission);
}

std::vector<std::string> Located(const SubmitOptions& options,
                                 const std::vector<std::pair<std::string, std::string>>& problems) {
  v1::CreateExperimentResponse response;
  for (const auto& [field, message] : problems) {
    v1::Problem* problem = response.add_problems();
    problem->set_field(field);
    problem->set_message(message);
  }
  std::vector<std::string> lines;
  for (const yaml::Diagnostic& line :
       Locate(response.problems(), ReadFrom(kSubmittedText, options))) {
    lines.push_back(ToString(line, "f"));
  }
  return lines;
}

SubmitOptions FromStdin() {
  SubmitOptions options;
  options.file = "-";
  return options;
}

TEST(LocateTest, FindsLinesInTheFilesOrder) {
  EXPECT_THAT(Located(FromStdin(), {{"axes[0].settings[1].set[\"model.norm.placement\"]", "E"},
                                    {"axes[0].settings[1].label", "D"},
                                    {"base.model.heads", "C"},
                                    {"spec.base.model.width", "B"},
                                    {"limits", "A"}}),
              ElementsAre("f: A", "f:4:11: B", "f:4:22: C", "f:9:10: D", "f:9:28: E"));
}

TEST(LocateTest, BlamesTheCommandLineForWhatItSets) {
  SubmitOptions options = FromStdin();
  options.set = {"model.width=31", "training.betas=[1]"};
  options.seeds = "5";
  EXPECT_THAT(Located(options, {{"base.model.width", "A"},
                                {"base.model.heads", "B"},
                                {"base.training.betas[0]", "D"},
                                {"overrides[\"training.betas\"]", "C"},
                                {"seeds.count", "E"}}),
              ElementsAre("f:4:22: B", "--seeds: E", "--set model.width: A",
                          "--set training.betas: C", "--set training.betas: D"));
}

TEST(LocateTest, BlamesTagsAndTheNoteOnTheirOptions) {
  EXPECT_THAT(Located(FromStdin(), {{"note", "note: too long"},
                                    {"tags", "tags: 21 tags"},
                                    {"tags[1]", "tags[1]: \"x y\" can't be a tag"}}),
              ElementsAre("--note: too long", "--tag: \"x y\" can't be a tag", "--tag: 21 tags"));
}

TEST(LocateTest, NamesThePathOfAnOptionOnce) {
  SubmitOptions options = FromStdin();
  options.set = {"training.trainer=torch", "model.norm={kind: rms}", "training.betas=[1]"};
  EXPECT_THAT(
      Located(options, {{"overrides[\"training.trainer\"]", "overrides[\"training.trainer\"]: no"},
                        {"overrides[\"model.norm\"].kind", "overrides[\"model.norm\"].kind: no"},
                        {"base.training.betas[0]", "base.training.betas[0]: no"},
                        {"base.training.trainer", "base.training.trainer is no"}}),
      ElementsAre("--set model.norm: kind: no", "--set training.betas: [0]: no",
                  "--set training.trainer: no",
                  "--set training.trainer: base.training.trainer is no"));
}

// Returns the `fields` that are told if the server finds them wrong beside what is wrong in `text`.
std::vector<std::string> Told(const std::string& text, const std::vector<std::string>& fields,
                              const SubmitOptions& options = FromStdin()) {
  v1::CreateExperimentResponse response;
  for (const std::string& field : fields) {
    v1::Problem* problem = response.add_problems();
    problem->set_field(field);
    problem->set_message(field);
  }
  std::vector<std::string> told;
  for (const yaml::Diagnostic& line : Locate(response.problems(), ReadFrom(text, options))) {
    const bool is_servers = std::count(fields.begin(), fields.end(), line.message) > 0;
    if (is_servers) told.push_back(line.message);
  }
  return told;
}

TEST(LocateTest, LeavesOutWhatFollowsFromAFieldThatCantBeRead) {
  EXPECT_THAT(Told("name: a\nbase: {training: {steps: x, batch: 0}}\n",
                   {"base.training.steps", "base.training", "base.training.batch", "base.task"}),
              ElementsAre("base.task", "base.training.batch"));
  EXPECT_THAT(Told("base: {modle: {width: 3}}\n", {"base.model.width", "base.task", "name"}),
              ElementsAre("name", "base.task"));
  EXPECT_THAT(Told("base: {modle: {width: 3}, model: {width: 3}}\n", {"base.model.width"}),
              ElementsAre("base.model.width"));
  EXPECT_THAT(Told("base:\n  training: {steps: 5}\n  training: {batch: 0, steps: 9}\n  task: {}\n",
                   {"base.training.batch", "base.training.steps", "base.task"}),
              ElementsAre("base.training.batch", "base.task"))
      << "only of steps are there two values";
  EXPECT_THAT(Told("analyses:\n- spectrum\n- {spectrum: {}, at: [x, 7]}\n- {spectrum: {}}\n",
                   {"analyses[0]", "analyses[1].at[0]", "analyses[1].name", "analyses[2].name"}),
              ElementsAre("analyses[1].name", "analyses[2].name"));
}

TEST(LocateTest, LeavesOutWhatMarksAFieldAsUnread) {
  SubmitOptions options = FromStdin();
  options.set = {"training.batch=0"};
  EXPECT_THAT(Told("base: {training: {steps: x}}\n",
                   {"overrides[\"training.steps\"]", "overrides[\"training.batch\"]"}, options),
              ElementsAre("overrides[\"training.batch\"]"));
}

TEST(LocateTest, TellsOfTooManyOverrides) {
  EXPECT_THAT(Told("base: {training: {steps: x}}\n", {"overrides"}), ElementsAre("overrides"));
}

// Paths of base that the server is told to hold nothing against, for a file and its options.
std::vector<std::string> MarkedIn(const std::string& text,
                                  const SubmitOptions& options = FromStdin()) {
  const Submission submission = ReadFrom(text, options);
  v1::CreateExperimentRequest request = MakeRequest(submission, options);
  MarkUnread(submission.file, &request);
  std::vector<std::string> marked;
  for (const auto& [path, value] : request.overrides()) {
    if (value.kind_case() == google::protobuf::Value::KIND_NOT_SET) marked.push_back(path);
  }
  std::sort(marked.begin(), marked.end());
  return marked;
}

TEST(MarkUnreadTest, MarksTheMessageOfAMisspeltField) {
  EXPECT_THAT(MarkedIn("base: {training: {steps: x, betas: [x, 1]}, model: {norm: {kind: x}}}\n"),
              ElementsAre("model.norm.kind", "training.betas", "training.steps"));
  EXPECT_THAT(MarkedIn("base: {training: {checkpoint: [500]}}\n"), ElementsAre("training"));
  const auto all = ElementsAre("evaluation", "imported", "model", "model_from", "program",
                               "settings", "task", "training");
  EXPECT_THAT(MarkedIn("base: {modle: {layers: 12}}\n"), all);
  EXPECT_THAT(MarkedIn("base: 3\n"), all);
  EXPECT_THAT(MarkedIn("analyses: [spectrum]\n"), ElementsAre());
}

TEST(MakeRequestTest, CarriesAllThatWasAsked) {
  SubmitOptions options = FromStdin();
  options.set = {"model.width=32"};
  options.seeds = "5..6";
  options.fresh = true;
  const Submission submission = ReadFrom(kSubmittedText, options);
  const v1::CreateExperimentRequest request = MakeRequest(submission, options);
  EXPECT_EQ(request.spec().name(), "a");
  EXPECT_EQ(request.spec().base().model().width(), 30u);  // the server applies overrides
  EXPECT_EQ(request.overrides().at("model.width").number_value(), 32);
  EXPECT_EQ(request.spec().seeds().first(), 5u);
  EXPECT_EQ(request.spec().seeds().count(), 2u);
  EXPECT_TRUE(request.fresh());
  EXPECT_FALSE(request.validate_only());
  EXPECT_EQ(request.request_id().size(), 32u);
  EXPECT_NE(request.request_id(), MakeRequest(submission, options).request_id());

  options.dry_run = true;
  EXPECT_TRUE(MakeRequest(submission, options).validate_only());
  EXPECT_EQ(MakeRequest(submission, options).request_id(), "");
}

}  // namespace
}  // namespace ablate::client
