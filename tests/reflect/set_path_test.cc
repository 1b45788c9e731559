// Tests SetPath: dotted paths below a message, null, oneofs, and problems that change nothing.
#include <cmath>

#include "ablate/v1/spec.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/reflect/from_value.h"
#include "tests/reflect/field_lists.h"
#include "tests/reflect/values.h"

namespace ablate::reflect {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;

class SetPathTest : public ::testing::Test {
 protected:
  // Returns problems of setting `path`, reported as "here".
  std::vector<std::string> Set(absl::string_view path, const std::string& json) {
    std::vector<FieldProblem> problems;
    SetPath(path, FromJson(json), "here", &base_, &problems);
    std::vector<std::string> messages;
    for (const FieldProblem& problem : problems) messages.push_back(problem.message);
    return messages;
  }

  v1::BaseSpec base_;
};

TEST_F(SetPathTest, MakesTheMessagesOnTheWay) {
  EXPECT_THAT(Set("model.norm.placement", "\"post\""), ElementsAre());
  EXPECT_EQ(base_.model().norm().placement(), v1::NormPlacement::post);
}

TEST_F(SetPathTest, ReplacesMessagesAndLists) {
  base_.mutable_model()->mutable_norm()->set_eps(1);
  base_.mutable_training()->add_betas(0.5);
  EXPECT_THAT(Set("model.norm", R"({"gain": false})"), ElementsAre());
  EXPECT_THAT(Set("training.betas", "[0.8, 0.9]"), ElementsAre());
  EXPECT_FALSE(base_.model().norm().has_eps());
  EXPECT_TRUE(base_.model().norm().has_gain());
  EXPECT_THAT(base_.training().betas(), ElementsAre(0.8, 0.9));
}

TEST_F(SetPathTest, NullClears) {
  base_.mutable_model()->mutable_norm()->set_eps(1);
  EXPECT_THAT(Set("model.norm.eps", "null"), ElementsAre());
  EXPECT_FALSE(base_.model().norm().has_eps());
  EXPECT_THAT(Set("model", "null"), ElementsAre());
  EXPECT_FALSE(base_.has_model());
}

TEST_F(SetPathTest, NullMakesNothing) {
  EXPECT_THAT(Set("model.norm.eps", "null"), ElementsAre());
  EXPECT_FALSE(base_.has_model());
}

TEST_F(SetPathTest, AMemberOfAOneofClearsTheOthers) {
  base_.mutable_task()->mutable_documents()->set_dataset("d");
  EXPECT_THAT(Set("task.legacy_recall.keys", "9"), ElementsAre());
  EXPECT_FALSE(base_.task().has_documents());
  EXPECT_EQ(base_.task().legacy_recall().keys(), 9u);
  EXPECT_THAT(Set("task", R"({"documents": {"dataset": "e"}})"), ElementsAre());
  EXPECT_FALSE(base_.task().has_legacy_recall());
  EXPECT_EQ(base_.task().documents().dataset(), "e");
}

TEST_F(SetPathTest, NullOfAnAbsentMemberLeavesTheOther) {
  base_.mutable_task()->mutable_documents()->set_dataset("d");
  EXPECT_THAT(Set("task.legacy_recall", "null"), ElementsAre());
  EXPECT_TRUE(base_.task().has_documents());
}

TEST_F(SetPathTest, NamesThePartThatIsUnknown) {
  EXPECT_THAT(Set("model.nrom.eps", "1"),
              ElementsAre(WithFieldLists(
                  "here: unknown field \"nrom\" (did you mean norm?); expected {ModelSpec}")));
  EXPECT_THAT(Set("", "1"), ElementsAre("here: unknown field \"\"; expected task, model, training, "
                                        "evaluation, model_from, program, settings or imported"));
}

TEST_F(SetPathTest, RefusesToGoBelowValuesAndLists) {
  EXPECT_THAT(Set("model.width.x", "1"),
              ElementsAre("here: width has no field \"x\"; expected a path that ends at width"));
  EXPECT_THAT(Set("training.betas.0", "1"),
              ElementsAre("here: betas has no field \"0\"; expected a path that ends at betas"));
  EXPECT_THAT(Set("training.optimizer.lr", "1"),
              ElementsAre("here: optimizer has no field \"lr\" (did you mean "
                          "training.learning_rate?); expected a path that ends at optimizer"));
}

TEST_F(SetPathTest, AProblemChangesNothing) {
  base_.mutable_task()->mutable_documents()->set_dataset("d");
  base_.mutable_model()->mutable_norm()->set_eps(1);
  const v1::BaseSpec before = base_;
  EXPECT_THAT(Set("task.legacy_recall.keys", "-1"),
              ElementsAre("here: -1 is negative; expected a whole number, 0 or more"));
  EXPECT_THAT(
      Set("model.norm", R"({"gain": true, "kind": "x"})"),
      ElementsAre("here.kind: \"x\" is unknown; expected layer, rms, batch, l2, dyt or derf"));
  EXPECT_THAT(Set("training.betas", "[0.5, \"x\"]"),
              ElementsAre("here[1]: \"x\" is not a number; expected a number"));
  EXPECT_TRUE(MessageDifferencer::Equals(base_, before));
}

TEST_F(SetPathTest, LeadsOnIntoFreeNames) {
  EXPECT_THAT(Set("settings", R"({"lr": 0.1, "model": {"heads": 4}, "name": "a"})"), ElementsAre());
  EXPECT_THAT(Set("settings.lr", "0.2"), ElementsAre());
  EXPECT_THAT(Set("settings.model.heads", "8"), ElementsAre());
  EXPECT_THAT(Set("settings.model.norm.kind", "\"rms\""), ElementsAre());
  EXPECT_THAT(Set("settings.name", "null"), ElementsAre());
  EXPECT_TRUE(MessageDifferencer::Equals(
      base_.settings(),
      FromJson(R"({"lr": 0.2, "model": {"heads": 8, "norm": {"kind": "rms"}}, "name": null})")
          .struct_value()));
  EXPECT_THAT(Set("settings", "null"), ElementsAre());
  EXPECT_FALSE(base_.has_settings());
}

TEST_F(SetPathTest, ChangesNoFreeNamesAfterAProblem) {
  google::protobuf::Value infinite;
  infinite.set_number_value(HUGE_VAL);
  std::vector<FieldProblem> problems;
  SetPath("settings.lr", infinite, "here", &base_, &problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message, ::testing::HasSubstr("here: "));
  std::string deep = "settings";
  for (int i = 0; i < kMaxDepth + 1; ++i) deep += ".a";
  EXPECT_THAT(Set(deep, "1"), ElementsAre(::testing::HasSubstr("deep")));
  EXPECT_THAT(Set("settings", "[1]"), ElementsAre("here: [1] has no names; expected names and "
                                                  "their values"));
  EXPECT_FALSE(base_.has_settings());
}

}  // namespace
}  // namespace ablate::reflect
