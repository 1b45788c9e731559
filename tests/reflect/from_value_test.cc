// Tests FromValue: the values that each type takes, and the sentence for each that it refuses.
#include "proto/reflect/from_value.h"

#include <limits>

#include "ablate/v1/dataset.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/spec.pb.h"
#include "gmock/gmock.h"
#include "tests/reflect/field_lists.h"
#include "tests/reflect/values.h"

namespace ablate::reflect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Messages(const std::vector<FieldProblem>& problems) {
  std::vector<std::string> messages;
  for (const FieldProblem& problem : problems) messages.push_back(problem.message);
  return messages;
}

// Returns the problems of filling a T from JSON.
template <typename T>
std::vector<std::string> Problems(const std::string& json, T* message) {
  std::vector<FieldProblem> problems;
  FromValue(FromJson(json), "", message, &problems);
  return Messages(problems);
}

std::vector<std::string> SpecProblems(const std::string& json) {
  v1::ExperimentSpec spec;
  return Problems(json, &spec);
}

TEST(FromValueTest, FillsEveryKindOfField) {
  v1::ExperimentSpec spec;
  EXPECT_THAT(Problems(R"({"name": "x", "base": {"task": {"legacy_recall": {"keys": 10.0}},
      "model": {"bias": false, "norm": {"placement": "none"}},
      "training": {"learning_rate": 1, "betas": [0.9, 0.99], "checkpoints": [0, -1],
                   "device": "auto"}},
      "axes": [{"name": "a", "settings": [{"label": "l", "set": {"model.bias": null}}]},
               {"field": "model.width", "values": [16, "x", true, [1], {"a": null}]}],
      "limits": {"device_time": "7200s", "bytes": "18446744073709551615"}})",
                       &spec),
              IsEmpty());
  EXPECT_EQ(spec.base().task().legacy_recall().keys(), 10u);
  EXPECT_FALSE(spec.base().model().bias());
  EXPECT_TRUE(spec.base().model().has_bias());
  EXPECT_EQ(spec.base().model().norm().placement(), v1::NormPlacement::none);
  EXPECT_EQ(spec.base().training().device(), v1::Device::auto_);
  EXPECT_THAT(spec.base().training().betas(), ElementsAre(0.9, 0.99));
  EXPECT_THAT(spec.base().training().checkpoints(), ElementsAre(0, -1));
  EXPECT_TRUE(spec.axes(0).settings(0).set().at("model.bias").has_null_value());
  EXPECT_THAT(spec.axes(1).values(), SizeIs(5));
  EXPECT_EQ(spec.limits().device_time().seconds(), 7200);
  EXPECT_EQ(spec.limits().bytes(), UINT64_MAX);
}

TEST(FromValueTest, ClearsTheMessageFirst) {
  v1::ModelSpec model;
  model.set_width(3);
  EXPECT_THAT(Problems(R"({"layers": 2})", &model), IsEmpty());
  EXPECT_FALSE(model.has_width());
  EXPECT_THAT(Problems("null", &model), IsEmpty());
  EXPECT_FALSE(model.has_layers());
}

TEST(FromValueTest, NullMeansAbsent) {
  v1::ModelSpec model;
  EXPECT_THAT(Problems(R"({"width": null, "norm": null})", &model), IsEmpty());
  EXPECT_FALSE(model.has_width());
  EXPECT_FALSE(model.has_norm());
}

TEST(FromValueTest, SuggestsTheNearestField) {
  EXPECT_THAT(
      SpecProblems(R"({"base": {"training": {"batchs": 1}}})"),
      ElementsAre(WithFieldLists("base.training.batchs: unknown field (did you mean batch?); "
                                 "expected {TrainingSpec}")));
}

TEST(FromValueTest, ListsTheFieldsWhenNoneIsNear) {
  EXPECT_THAT(
      SpecProblems(R"({"base": {"evaluation": {"frequency": 1}}})"),
      ElementsAre(
          "base.evaluation.frequency: unknown field; expected every, batches, tokens or record"));
}

TEST(FromValueTest, RefusesNumbersThatDoNotFit) {
  v1::ModelSpec model;
  EXPECT_THAT(
      Problems(R"({"width": 2.5, "layers": -1, "heads": 4294967296, "context": "3",
                   "positions": 1, "bias": 1, "tied_head": "true"})",
               &model),
      ElementsAre("bias: 1 is not a boolean; expected true or false",
                  "context: \"3\" is not a whole number; expected a whole number",
                  "heads: 4294967296 is too large; expected at most 4294967295",
                  "layers: -1 is negative; expected a whole number, 0 or more",
                  "positions: 1 is unknown; expected learned, none, sinusoidal, rotary or alibi",
                  "tied_head: \"true\" is not a boolean; expected true or false",
                  "width: 2.5 is not a whole number; expected a whole number"));
}

TEST(FromValueTest, RefusesBooleansAndTextAsNumbers) {
  v1::TrainingSpec training;
  EXPECT_THAT(
      Problems(R"({"steps": true, "learning_rate": "0.1", "clip": null, "eps": [1]})", &training),
      ElementsAre("eps: [1] is not a number; expected a number",
                  "learning_rate: \"0.1\" is not a number; expected a number",
                  "steps: true is not a whole number; expected a whole number"));
}

TEST(FromValueTest, RefusesNumbersThatAreNotFinite) {
  google::protobuf::Value value;
  auto& fields = *value.mutable_struct_value()->mutable_fields();
  fields["learning_rate"].set_number_value(std::numeric_limits<double>::quiet_NaN());
  fields["steps"].set_number_value(std::numeric_limits<double>::infinity());
  v1::TrainingSpec training;
  std::vector<FieldProblem> problems;
  FromValue(value, "base.training", &training, &problems);
  EXPECT_THAT(
      Messages(problems),
      ElementsAre("base.training.learning_rate: nan is not finite; expected a finite number",
                  "base.training.steps: inf is not a whole number; expected a whole number"));
}

TEST(FromValueTest, RefusesFieldsWithoutAValue) {
  google::protobuf::Value value;
  auto& base = *value.mutable_struct_value()->mutable_fields();
  base["model"];
  auto& task = *base["task"].mutable_struct_value()->mutable_fields();
  task["legacy_recall"];
  task["text"].mutable_struct_value();
  auto& training = *base["training"].mutable_struct_value()->mutable_fields();
  training["steps"];
  training["betas"];
  training["clip"].set_null_value(google::protobuf::NULL_VALUE);
  v1::BaseSpec spec;
  std::vector<FieldProblem> problems;
  FromValue(value, "base", &spec, &problems);
  const std::string fields =
      ": the value is missing; expected fields, or {} for the default of each";
  const std::string scalar = ": the value is missing; expected a value, or null for the default";
  EXPECT_THAT(Messages(problems),
              ElementsAre("base.model" + fields, "base.task.legacy_recall" + fields,
                          "base.training.betas" + scalar, "base.training.steps" + scalar));
}

TEST(FromValueTest, PrintsEveryDigitOfWholeNumbers) {
  v1::TrainingSpec training;
  EXPECT_THAT(
      Problems(R"({"steps": "9007199254740993", "batch": "-9007199254740993",
                           "clip": "9007199254740993", "eps": "12", "warmup": "12"})",
               &training),
      ElementsAre("batch: -9007199254740993 is negative; expected a whole number, 0 or more",
                  "eps: \"12\" is not a number; expected a number",
                  "steps: 9007199254740993 is too large; expected at most 4294967295",
                  "warmup: \"12\" is not a whole number; expected a whole number"));
  EXPECT_EQ(training.clip(), 9007199254740993.0);
  v1::Limits limits;
  EXPECT_THAT(Problems(R"({"bytes": "9007199254740993"})", &limits), IsEmpty());
  EXPECT_EQ(limits.bytes(), (uint64_t{1} << 53) + 1);
}

TEST(FromValueTest, TakesWideIntegersInQuotes) {
  v1::Limits limits;
  EXPECT_THAT(Problems(R"({"bytes": 9007199254740992})", &limits), IsEmpty());
  EXPECT_EQ(limits.bytes(), uint64_t{1} << 53);
  EXPECT_THAT(
      Problems(R"({"bytes": 1e17})", &limits),
      ElementsAre(
          "bytes: 1e+17 is too large; expected at most 9007199254740992, or more in quotes"));
  EXPECT_THAT(Problems(R"({"bytes": -1})", &limits),
              ElementsAre("bytes: -1 is negative; expected a whole number, 0 or more"));
  for (const char* text :
       {"\"18446744073709551616\"", "\" 1\"", "\"+1\"", "\"-1\"", "\"1.0\"", "\"\""}) {
    EXPECT_THAT(Problems(std::string(R"({"bytes": )") + text + "}", &limits),
                ElementsAre(std::string("bytes: ") + text +
                            " is not a whole number in range; expected 0 to 18446744073709551615"));
  }
}

TEST(FromValueTest, SuggestsTheNearestEnumValue) {
  v1::NormSpec norm;
  EXPECT_THAT(Problems(R"({"placement": "PRE", "kind": "power"})", &norm),
              ElementsAre("kind: \"power\" is unknown; expected layer, rms, batch, l2, dyt or derf",
                          "placement: \"PRE\" is unknown (did you mean pre?); expected pre, post, "
                          "none or sandwich"));
  EXPECT_THAT(
      Problems(R"({"kind": "unspecified"})", &norm),
      ElementsAre("kind: \"unspecified\" is unknown; expected layer, rms, batch, l2, dyt or derf"));
}

struct DurationCase {
  const char* text;
  int64_t seconds;
  int32_t nanos;
};

void PrintTo(const DurationCase& duration, std::ostream* out) { *out << duration.text; }

class DurationTest : public ::testing::TestWithParam<DurationCase> {};

TEST_P(DurationTest, ReadsSecondsWithDecimals) {
  v1::Limits limits;
  EXPECT_THAT(Problems(std::string(R"({"device_time": ")") + GetParam().text + "\"}", &limits),
              IsEmpty());
  EXPECT_EQ(limits.device_time().seconds(), GetParam().seconds);
  EXPECT_EQ(limits.device_time().nanos(), GetParam().nanos);
}

INSTANTIATE_TEST_SUITE_P(Texts, DurationTest,
                         ::testing::Values(DurationCase{"7200s", 7200, 0}, DurationCase{"0s", 0, 0},
                                           DurationCase{"1.5s", 1, 500'000'000},
                                           DurationCase{"0.000000001s", 0, 1},
                                           DurationCase{"-2.25s", -2, -250'000'000},
                                           DurationCase{"315576000000s", 315'576'000'000, 0}));

TEST(FromValueTest, RefusesWhatIsNoDuration) {
  for (const char* text : {"\"2h\"", "\"7200\"", "\"s\"", "\"\"", "\"1.s\"", "\".5s\"", "\"+1s\"",
                           "\"1e3s\"", "\"1.0000000001s\"", "\"315576000001s\"",
                           "\"99999999999999999999s\"", "\"--1s\"", "7200", "true", "{}"}) {
    v1::Limits limits;
    const std::vector<std::string> problems =
        Problems(std::string(R"({"device_time": )") + text + "}", &limits);
    ASSERT_THAT(problems, SizeIs(1)) << text;
    EXPECT_EQ(problems[0], std::string("device_time: ") + text +
                               " is not a duration; expected seconds followed by s, such as 7200s");
  }
}

TEST(FromValueTest, RefusesTwoMembersOfAOneof) {
  EXPECT_THAT(SpecProblems(R"({"base": {"task": {"documents": {}, "legacy_recall": {}}}})"),
              ElementsAre("base.task: documents, legacy_recall exclude each other; expected "
                          "documents, legacy_recall, recall or text"));
}

TEST(FromValueTest, ANullMemberOfAOneofCountsAsAbsent) {
  EXPECT_THAT(SpecProblems(R"({"base": {"task": {"documents": null, "legacy_recall": {}}}})"),
              IsEmpty());
}

TEST(FromValueTest, RefusesWrongShapes) {
  EXPECT_THAT(
      SpecProblems(R"({"axes": {}, "base": [], "exclude": [{"where": 3}], "name": 7,
                               "seeds": {"list": [1, null, {}]}})"),
      ElementsAre("axes: {} is not a list; expected a list, such as [a, b]",
                  "base: [] has no fields; expected the fields task, model, training, evaluation, "
                  "model_from, program, settings, imported",
                  "exclude[0].where: 3 has no keys; expected keys and their values",
                  "name: 7 is not text; expected text, in quotes if it looks like something else",
                  "seeds.list[1]: null is not a whole number; expected a whole number",
                  "seeds.list[2]: {} is not a whole number; expected a whole number"));
}

TEST(FromValueTest, RefusesAnEmptyElementOfAListOfMessages) {
  EXPECT_THAT(SpecProblems(R"({"axes": [null]})"),
              ElementsAre("axes[0]: null has no fields; expected the fields name, field, values, "
                          "settings, tune, switches, form"));
}

TEST(FromValueTest, RefusesTextThatIsNotUtf8) {
  google::protobuf::Value value;
  auto& fields = *value.mutable_struct_value()->mutable_fields();
  fields["question"].set_string_value("caf\xE9");
  v1::ExperimentSpec spec;
  std::vector<FieldProblem> problems;
  FromValue(value, "", &spec, &problems);
  EXPECT_THAT(Messages(problems),
              ElementsAre("question: \"caf\\xe9\" is not UTF-8; expected text in UTF-8"));
}

TEST(FromValueTest, ChecksValuesThatAreKeptAsValues) {
  google::protobuf::Value axis;
  auto& values = *(*axis.mutable_struct_value()->mutable_fields())["values"].mutable_list_value();
  values.add_values()->set_number_value(-std::numeric_limits<double>::infinity());
  values.add_values();
  (*values.add_values()->mutable_struct_value()->mutable_fields())["k"].set_string_value("\xFF");
  v1::Axis message;
  std::vector<FieldProblem> problems;
  FromValue(axis, "axes[0]", &message, &problems);
  EXPECT_THAT(Messages(problems),
              ElementsAre("axes[0].values[0]: -inf is not finite; expected a finite number",
                          "axes[0].values[1]: the value is missing; expected null, a boolean, a "
                          "number, text, a list or fields",
                          "axes[0].values[2].k: \"\\xff\" is not UTF-8; expected text in UTF-8"));
}

TEST(FromValueTest, RefusesDeepNesting) {
  google::protobuf::Value value;
  google::protobuf::Value* inner = (*value.mutable_struct_value()->mutable_fields())["values"]
                                       .mutable_list_value()
                                       ->add_values();
  for (int i = 0; i < 2000; ++i) inner = inner->mutable_list_value()->add_values();
  inner->set_number_value(1);
  v1::Axis message;
  std::vector<FieldProblem> problems;
  FromValue(value, "", &message, &problems);
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].allowed, "at most 50 levels");
  EXPECT_EQ(problems[0].field.substr(0, 15), "values[0][0][0]");
}

TEST(FromValueTest, KeepsHostileKeysOutOfPaths) {
  google::protobuf::Value value;
  auto& fields = *value.mutable_struct_value()->mutable_fields();
  fields["\x1B[31m\xFF"].set_number_value(1);
  fields[std::string(1 << 20, 'x')].set_number_value(1);
  v1::EvaluationSpec evaluation;
  std::vector<FieldProblem> problems;
  FromValue(value, "base.evaluation", &evaluation, &problems);
  ASSERT_THAT(problems, SizeIs(2));
  EXPECT_EQ(
      problems[0].message,
      "base.evaluation[\"\\x1b[31m\\xff\"]: unknown field; expected every, batches, tokens or "
      "record");
  EXPECT_LT(problems[1].message.size(), 300u);
}

TEST(FromValueTest, ReadsBytesInBase64) {
  v1::UploadDatasetRequest request;
  EXPECT_THAT(Problems(R"({"data": "YWI="})", &request), IsEmpty());
  EXPECT_EQ(request.data(), "ab");
  EXPECT_THAT(Problems(R"({"data": "%"})", &request),
              ElementsAre("data: \"%\" is not base64; expected bytes in base64"));
}

TEST(FromValueTest, FillsMapsOfMessagesAndText) {
  v1::Cell cell;
  EXPECT_THAT(Problems(R"({"labels": {"lr": "0.01", "a": "b"}})", &cell), IsEmpty());
  EXPECT_EQ(cell.labels().at("lr"), "0.01");
  EXPECT_THAT(cell.labels(), SizeIs(2));
  EXPECT_THAT(Problems(R"({"labels": {"lr": 0.01}})", &cell),
              ElementsAre("labels[\"lr\"]: 0.01 is not text; expected text, in quotes if it looks "
                          "like something else"));
}

}  // namespace
}  // namespace ablate::reflect
