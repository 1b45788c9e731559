// Tests requests that our clients never send: non-finite numbers, text that isn't UTF-8, unknown
// fields and enum numbers, endless lists and strings. Each gets its exact sentence and makes no
// cell.
#include <chrono>
#include <limits>

#include "base/utf8.h"
#include "gmock/gmock.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<std::string> RefusedInShort(const v1::ExperimentSpec& spec,
                                        const Overrides& overrides = {}) {
  const Resolution resolution = Resolve(spec, overrides, TestSurroundings());
  EXPECT_FALSE(resolution.problems.empty());
  for (const Problem& problem : resolution.problems) {
    EXPECT_LT(problem.message.size(), 1000u);
    EXPECT_LT(problem.field.size(), 300u);
    EXPECT_LE(problem.value.size(), 200u);
    EXPECT_TRUE(text::IsUtf8(problem.field + problem.value + problem.message));
    EXPECT_FALSE(text::HasControlCharacter(problem.field + problem.value + problem.message));
  }
  return Messages(resolution);
}

google::protobuf::Value Number(double number) {
  google::protobuf::Value value;
  value.set_number_value(number);
  return value;
}

// A spec with one axis of one setting, "x", which sets `path`.
v1::ExperimentSpec WithSetting(const std::string& path, const google::protobuf::Value& value) {
  v1::ExperimentSpec spec = SmallSpec();
  v1::Axis* axis = spec.add_axes();
  axis->set_name("a");
  axis->add_settings()->set_label("x");
  (*axis->mutable_settings(0)->mutable_set())[path] = value;
  return spec;
}

TEST(HostileTest, NumbersOfTheBaseMustBeFinite) {
  v1::ExperimentSpec spec = SmallSpec();
  v1::TrainingSpec* training = spec.mutable_base()->mutable_training();
  training->set_learning_rate(kNan);
  training->set_weight_decay(kInf);
  training->set_clip(-kInf);
  training->add_betas(kNan);
  training->add_betas(0.9);
  spec.mutable_base()->mutable_model()->mutable_norm()->set_eps(kNan);
  EXPECT_THAT(RefusedInShort(spec),
              ElementsAre("base.model.norm.eps: nan is out of range; expected 0 to 1",
                          "base.training.learning_rate: nan is out of range; expected 0 to 1,000",
                          "base.training.betas[0]: nan is out of range; expected 0 to below 1",
                          "base.training.weight_decay: inf is out of range; expected 0 to 10",
                          "base.training.clip: -inf is out of range; expected 0 to 1,000,000"));
}

TEST(HostileTest, AnAxisDoesNotHideANumberThatIsNotFinite) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_learning_rate(kNan);
  AddValues("training.learning_rate", {"0.1"}, &spec);
  EXPECT_THAT(RefusedInShort(spec),
              ElementsAre("base.training.learning_rate: nan is out of range; expected 0 to 1,000"));
}

TEST(HostileTest, NumbersOfValuesSettingsAndOverridesMustBeFinite) {
  v1::ExperimentSpec spec = SmallSpec();
  AddValues("training.learning_rate", {}, &spec)->add_values()->set_number_value(kNan);
  EXPECT_THAT(RefusedInShort(spec),
              ElementsAre("axes[0].values[0]: nan is not finite; expected a finite number"));
  EXPECT_THAT(RefusedInShort(WithSetting("training.clip", Number(kInf))),
              ElementsAre("axes[0].settings[0].set[\"training.clip\"]: inf is not finite; expected "
                          "a finite number"));
  EXPECT_THAT(RefusedInShort(SmallSpec(), {{"training.eps", Number(-kInf)}}),
              ElementsAre("overrides[\"training.eps\"]: -inf is not finite; expected a finite "
                          "number"));
}

TEST(HostileTest, AWhereMustBeFinite) {
  v1::ExperimentSpec spec = SmallSpec();
  (*spec.add_exclude()->mutable_where())["lr"] = Number(kNan);
  EXPECT_THAT(RefusedInShort(spec),
              Contains("exclude[0].where[\"lr\"]: nan is not finite; expected a finite number"));
}

TEST(HostileTest, EnumNumbersMustBeKnown) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_optimizer(static_cast<v1::Optimizer::Value>(77));
  spec.mutable_base()->mutable_model()->set_positions(v1::Positions::unspecified);
  spec.mutable_limits()->set_priority(static_cast<v1::Priority::Value>(-1));
  EXPECT_THAT(
      RefusedInShort(spec),
      ElementsAre(
          "base.model.positions: 0 is unknown; expected learned, none, sinusoidal, rotary or alibi",
          "base.training.optimizer: 77 is unknown; expected adamw, adam, sgd, muon or lion",
          "limits.priority: -1 is unknown; expected interactive, normal or background"));
}

TEST(HostileTest, FieldsMustBeKnown) {
  v1::ExperimentSpec spec = SmallSpec();
  v1::TrainingSpec* training = spec.mutable_base()->mutable_training();
  training->GetReflection()->MutableUnknownFields(training)->AddVarint(999, 1);
  spec.GetReflection()->MutableUnknownFields(&spec)->AddVarint(7, 1);
  EXPECT_THAT(RefusedInShort(spec),
              ElementsAre("field number 7 is unknown; expected the fields of this server's version",
                          "base.training: field number 999 is unknown; expected the fields of this "
                          "server's version"));
}

TEST(HostileTest, TextMustBeUtf8) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.set_question("caf\xE9");
  spec.mutable_report()->set_primary("\xFF");
  v1::Axis* axis = spec.add_axes();
  axis->set_name("a");
  axis->add_settings()->set_label("\xC0\x80");
  (*axis->mutable_settings(0)->mutable_set())["\x80"] = Number(1);
  const std::vector<std::string> messages = RefusedInShort(spec);
  EXPECT_THAT(messages, Contains("question: \"caf\\xe9\" is not UTF-8; expected text in UTF-8"));
  EXPECT_THAT(messages, Contains("report.primary: \"\\xff\" is not UTF-8; expected text in UTF-8"));
  EXPECT_THAT(messages, Contains("axes[0].settings[0].label: \"\\xc0\\x80\" is not UTF-8; expected "
                                 "text in UTF-8"));
  EXPECT_THAT(messages, Contains("axes[0].settings[0].set[\"\\x80\"]: \"\\x80\" is not UTF-8; "
                                 "expected text in UTF-8"));
}

TEST(HostileTest, ValuesMustBeSet) {
  EXPECT_THAT(RefusedInShort(WithSetting("model.width", google::protobuf::Value())),
              Contains("axes[0].settings[0].set[\"model.width\"]: the value is missing; expected "
                       "null, a boolean, a number, text, a list or fields"));
}

TEST(HostileTest, DeepValuesAreRefused) {
  google::protobuf::Value value;
  google::protobuf::Value* inner = &value;
  for (int i = 0; i < 2000; ++i) inner = inner->mutable_list_value()->add_values();
  inner->set_number_value(1);
  EXPECT_THAT(RefusedInShort(WithSetting("training.betas", value)), ::testing::Not(IsEmpty()));
}

TEST(HostileTest, HugeTextsMakeShortSentences) {
  const std::string huge(1 << 20, 'x');
  v1::ExperimentSpec spec = WithSetting(huge, Number(1));
  spec.set_name(huge);
  spec.set_question(huge);
  spec.mutable_report()->set_primary(huge);
  spec.mutable_axes(0)->mutable_settings(0)->set_label(huge);
  spec.mutable_base()->mutable_task()->mutable_documents()->set_dataset(huge);
  spec.add_axes()->set_field(huge);
  spec.mutable_axes(1)->add_values()->set_string_value(huge);
  (*spec.add_exclude()->mutable_where())[huge].set_string_value(huge);
  EXPECT_THAT(RefusedInShort(spec, {{huge, Number(1)}}), SizeIs(9));
}

TEST(HostileTest, AQuestionHasALimit) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.set_question(std::string(2001, 'x'));
  EXPECT_THAT(RefusedInShort(spec),
              ElementsAre("question: the text has 2,001 bytes; expected at most 2,000 bytes"));
}

TEST(HostileTest, ListsHaveLimits) {
  v1::ExperimentSpec spec = SmallSpec();
  for (int i = 0; i < 10'001; ++i) spec.mutable_seeds()->add_list(i);
  for (int i = 0; i < 201; ++i) spec.mutable_base()->mutable_training()->add_checkpoints(i);
  for (int i = 0; i < 51; ++i) spec.mutable_report()->add_summaries()->set_key("eval/loss");
  for (int i = 0; i < 1001; ++i) spec.add_exclude();
  v1::Axis* values = AddValues("training.learning_rate", {}, &spec);
  for (int i = 0; i < 1001; ++i) values->add_values()->set_number_value(i);
  v1::Axis* settings = spec.add_axes();
  settings->set_name("a");
  for (int i = 0; i < 1001; ++i) settings->add_settings();
  v1::Axis* paths = spec.add_axes();
  paths->set_name("b");
  paths->add_settings()->set_label("x");
  Overrides overrides;
  for (int i = 0; i < 101; ++i) {
    (*paths->mutable_settings(0)->mutable_set())[std::to_string(i)] = Number(1);
    overrides[std::to_string(i)] = Number(1);
  }
  EXPECT_THAT(RefusedInShort(spec, overrides),
              ElementsAre("report.summaries: 51 entries; expected at most 50",
                          "overrides: 101 entries; expected at most 100",
                          "base.training.checkpoints: 201 entries; expected at most 200",
                          "axes[0].values: 1,001 entries; expected 1 to 1,000",
                          "axes[1].settings: 1,001 entries; expected 1 to 1,000",
                          "axes[2].settings[0].set: 101 paths; expected at most 100",
                          "exclude: 1,001 entries; expected at most 1,000",
                          "seeds.list: 10,001 entries; expected at most 10,000"));
}

TEST(HostileTest, ADurationMustBeWellFormed) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_limits()->mutable_device_time()->set_seconds(1);
  spec.mutable_limits()->mutable_device_time()->set_nanos(-5);
  EXPECT_THAT(RefusedInShort(spec), ElementsAre("limits.device_time: 1s with -5 nanoseconds is out "
                                                "of range; expected 0s to 315576000000s"));
}

// A spec of `axes` axes of `values` good values each.
v1::ExperimentSpec GridSpec(int axes, int values) {
  const char* fields[] = {"training.learning_rate", "training.weight_decay", "training.clip",
                          "model.norm.eps",         "training.eps",          "training.steps",
                          "training.batch",         "evaluation.every"};
  v1::ExperimentSpec spec = SmallSpec();
  for (int i = 0; i < axes; ++i) {
    v1::Axis* axis = spec.add_axes();
    axis->set_name("a" + std::to_string(i));
    axis->set_field(fields[i]);
    const double unit = i < 5 ? 0.001 : 1;
    for (int j = 1; j <= values; ++j) axis->add_values()->set_number_value(j * unit);
  }
  return spec;
}

TEST(HostileTest, AGridOfABillionRunsIsRefusedBeforeItIsMade) {
  v1::ExperimentSpec spec = GridSpec(5, 10);
  spec.mutable_seeds()->set_count(10'000);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(RefusedInShort(spec),
              ElementsAre("limits.runs: the grid has 1,000,000,000 cells (10 a0 × 10 a1 × 10 a2 × "
                          "10 a3 × 10 a4 × 10,000 seeds); expected at most 1,000, or a higher "
                          "limit up to 100,000"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST(HostileTest, AGridBeyondAllCountingIsRefused) {
  v1::ExperimentSpec spec = GridSpec(8, 1000);
  (*spec.add_exclude()->mutable_where())["a1"] = Number(0.001);
  spec.mutable_seeds()->set_count(10'000);
  EXPECT_THAT(
      RefusedInShort(spec),
      ElementsAre(::testing::AllOf(
          ::testing::StartsWith("limits.runs: the grid has more than 10^18 cells (1,000 a0 × "),
          ::testing::HasSubstr(" seeds) before exclusions, which are not counted; expected "))));
}

TEST(HostileTest, AProblemIsReportedOnceNotForEachCell) {
  v1::ExperimentSpec spec = NamesNorm();
  spec.mutable_base()->mutable_model()->set_heads(5);
  EXPECT_THAT(RefusedInShort(spec),
              ElementsAre("base.model.heads: heads 5 does not divide width 16; expected heads that "
                          "divide width, or attention.head_size"));
}

TEST(HostileTest, ProblemsHaveAnEnd) {
  v1::ExperimentSpec spec = SmallSpec();
  for (int i = 0; i < 8; ++i) {
    v1::Axis* axis = spec.add_axes();
    axis->set_name("a" + std::to_string(i));
    for (int j = 0; j < 1000; ++j) axis->add_settings();
  }
  EXPECT_THAT(RefusedInShort(spec), SizeIs(Problems::kMaxProblems));
}

TEST(HostileTest, AnEndlessListIsOneProblem) {
  v1::ExperimentSpec spec = SmallSpec();
  v1::Axis* axis = AddValues("training.learning_rate", {}, &spec);
  for (int i = 0; i < 100'000; ++i) axis->add_values();
  EXPECT_THAT(RefusedInShort(spec),
              ElementsAre("axes[0].values: 100,000 entries; expected 1 to 1,000"));
}

TEST(HostileTest, AnEndlessListInAValueHasAnEnd) {
  google::protobuf::Value list;
  for (int i = 0; i < 100'000; ++i) list.mutable_list_value()->add_values();
  std::vector<Problem> problems;
  EXPECT_FALSE(reflect::CheckValue(list, "value", &problems));
  EXPECT_THAT(problems, SizeIs(1000));
  v1::BaseSpec base;
  reflect::SetPath("training.betas", list, "set", &base, &problems);
  EXPECT_THAT(problems, SizeIs(2000));
}

TEST(HostileTest, SeveralProblemsComeAtOnce) {
  v1::ExperimentSpec spec = NamesNorm();
  spec.set_name("Names");
  spec.mutable_base()->mutable_model()->set_heads(5);
  spec.mutable_base()->mutable_training()->set_batch(0);
  spec.mutable_base()->mutable_task()->mutable_documents()->set_dataset("nmaes");
  spec.mutable_report()->set_primary("loss");
  (*spec.mutable_axes(0)->mutable_settings(2)->mutable_set())["model.layers"] = Number(0);
  EXPECT_THAT(RefusedInShort(spec, {{"training.steps", Json("\"many\"")}}), SizeIs(7));
}

}  // namespace
}  // namespace ablate::spec
