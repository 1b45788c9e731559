// Tests specs written as YAML: the command line reads them back equal, whatever their texts.
#include "proto/reflect/spec_yaml.h"

#include <google/protobuf/util/message_differencer.h>

#include <sstream>

#include "absl/strings/str_split.h"
#include "base/clean.h"
#include "client/submit/experiment_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::reflect {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

v1::ExperimentSpec ReadBack(const std::string& yaml) {
  std::istringstream in(yaml);
  const client::ExperimentFile file = client::LoadExperimentFile("-", in);
  EXPECT_TRUE(file.problems.empty()) << file.problems[0].message << "\n" << yaml;
  return file.spec;
}

void ExpectRoundTrip(const v1::ExperimentSpec& spec) {
  const std::string yaml = SpecYaml(spec);
  EXPECT_TRUE(MessageDifferencer::Equals(spec, ReadBack(yaml))) << yaml;
}

TEST(SpecYamlTest, GivesTheExamplesBack) {
  for (const char* name : {"names-norm", "recall-legacy"}) {
    std::istringstream none;
    const client::ExperimentFile file =
        client::LoadExperimentFile(std::string(EXAMPLES) + "/" + name + ".yaml", none);
    ASSERT_TRUE(file.problems.empty()) << name;
    ExpectRoundTrip(file.spec);
  }
}

TEST(SpecYamlTest, WritesShortMessagesOnOneLine) {
  v1::ExperimentSpec spec;
  spec.set_name("small");
  spec.mutable_base()->mutable_task()->mutable_legacy_recall()->set_keys(20);
  spec.mutable_base()->mutable_training()->set_learning_rate(1e-5);
  EXPECT_THAT(SpecYaml(spec), HasSubstr("base: {task: {legacy_recall: {keys: 20}}, training: "
                                        "{learning_rate: 1e-05}}\n"));
  ExpectRoundTrip(spec);
}

TEST(SpecYamlTest, QuotesWhatWouldBeReadAsSomethingElse) {
  for (const std::string text :
       {"true", "No", "null", "~",         "12",    "1e5", ".5",    "a: b", "a #b", "- a",
        "[a",   "{a", "&a",   "*a",        "!a",    "'a'", "\"a\"", "a\\n", "a\nb", "\t",
        " a ",  "%a", "@a",   "名: 🦊", "a\x7f", "?",   ":",     "yes",  "a,b",  "a]b"}) {
    v1::ExperimentSpec spec;
    spec.set_name("small");
    spec.set_question(text);
    auto* setting = spec.add_axes()->add_settings();
    setting->set_label("a");
    (*setting->mutable_set())["task.documents.dataset"].set_string_value(text);
    (*setting->mutable_set())["model.bias"].set_bool_value(true);
    (*setting->mutable_set())["training.checkpoints"]
        .mutable_list_value()
        ->add_values()
        ->set_number_value(-1);
    (*setting->mutable_set())["model.norm"].set_null_value(google::protobuf::NULL_VALUE);
    ExpectRoundTrip(spec);
  }
}

TEST(SpecYamlTest, IsShownOnAPageAsItIs) {
  v1::ExperimentSpec spec;
  spec.set_name("small");
  spec.set_question("a\x01\x7f\u0085b\u202E\u2028c\uFEFF\uFDD0\U0001FFFF\uFFFD é🦊");
  for (const absl::string_view line : absl::StrSplit(SpecYaml(spec), '\n')) {
    EXPECT_EQ(text::CleanText(line), line);
  }
  EXPECT_THAT(SpecYaml(spec), HasSubstr("b\\u202E"));
  ExpectRoundTrip(spec);
}

TEST(SpecYamlTest, WritesEveryKindOfField) {
  v1::ExperimentSpec spec;
  spec.set_name("all");
  v1::BaseSpec* base = spec.mutable_base();
  base->mutable_task()->mutable_documents()->set_dataset("datasets/names-ab12cd");
  base->mutable_model()->set_bias(false);
  base->mutable_model()->mutable_norm()->set_placement(v1::NormPlacement::none);
  base->mutable_training()->add_betas(.85);
  base->mutable_training()->add_betas(.99);
  for (const int step : {0, 100, -1}) base->mutable_training()->add_checkpoints(step);
  spec.mutable_limits()->mutable_device_time()->set_seconds(7200);
  spec.mutable_limits()->set_bytes(uint64_t{1} << 60);
  spec.add_exclude();
  (*spec.mutable_exclude(0)->mutable_where())["lr"].set_number_value(.02);
  for (uint32_t seed = 0; seed < 100; ++seed) spec.mutable_seeds()->add_list(1000 + seed);
  for (int i = 0; i < 3; ++i) {
    auto* window = spec.mutable_report()->add_summaries();
    window->set_key("train/loss, a rather long name of a metric that fills a line");
    window->set_reduce(v1::Reduce::max);
  }
  ExpectRoundTrip(spec);
}

}  // namespace
}  // namespace ablate::reflect
