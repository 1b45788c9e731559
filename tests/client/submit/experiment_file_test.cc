// Tests that YAML and JSON give the same experiment, and the places of its fields.
#include "client/submit/experiment_file.h"

#include <filesystem>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/test_folder.h"

namespace ablate::client {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr const char* kYaml = R"(name: small
question: "Zähneputzen: ja?"
base:
  task: {documents: {dataset: names, held_out: 0x10}}
  training: {steps: 1.0e+2, betas: [0.5, .9], learning_rate: 1e-3, checkpoints: [0, -1]}
  model: {bias: false, init: {streams: by_name}, norm: ~}
axes:
  - name: norm
    settings:
      - {label: pre}
      - label: none
        set: {model.norm.placement: none, model.norm: {final: False, eps: null}}
  - {field: training.batch, values: [1, 2], tune: true}
exclude:
  - where: {norm: none, batch: 2}
seeds: {list: [3, 1]}
limits: {device_time: 7200s, bytes: "9007199254740993", priority: background}
)";

constexpr const char* kJson = R"({
  "name": "small", "question": "Z\u00e4hneputzen: ja?",
  "base": {
    "task": {"documents": {"dataset": "names", "held_out": 16}},
    "training": {"steps": 100, "betas": [0.5, 0.9], "learning_rate": 0.001, "checkpoints": [0, -1]},
    "model": {"bias": false, "init": {"streams": "by_name"}, "norm": null}
  },
  "axes": [
    {"name": "norm", "settings": [{"label": "pre"}, {"label": "none",
      "set": {"model.norm.placement": "none", "model.norm": {"final": false, "eps": null}}}]},
    {"field": "training.batch", "values": [1, 2], "tune": true}
  ],
  "exclude": [{"where": {"norm": "none", "batch": 2}}],
  "seeds": {"list": [3, 1]},
  "limits": {"device_time": "7200s", "bytes": "9007199254740993", "priority": "background"}
}
)";

ExperimentFile FromStdin(const std::string& text) {
  std::istringstream in(text);
  return LoadExperimentFile("-", in);
}

class ExperimentFileTest : public ::testing::Test {
 protected:
  ExperimentFile Load(const std::string& name, const std::string& text) {
    std::istringstream unused;
    return LoadExperimentFile(folder_.Write(name, text), unused);
  }

  const TestFolder folder_;
};

std::vector<std::string> Lines(const ExperimentFile& file) {
  std::vector<std::string> lines;
  for (const yaml::Diagnostic& problem : file.problems)
    lines.push_back(yaml::ToString(problem, "x"));
  return lines;
}

TEST_F(ExperimentFileTest, IsTheSameInEveryFormat) {
  const ExperimentFile yaml = Load("a.yaml", kYaml);
  const ExperimentFile json = Load("a.json", kJson);
  for (const ExperimentFile* file : {&yaml, &json}) {
    EXPECT_THAT(Lines(*file), ::testing::IsEmpty()) << file->name;
  }
  EXPECT_EQ(yaml.spec.base().training().steps(), 100u);
  EXPECT_EQ(yaml.spec.limits().bytes(), 9007199254740993u);
  EXPECT_TRUE(MessageDifferencer::Equals(yaml.spec, json.spec)) << json.spec.DebugString();
}

TEST_F(ExperimentFileTest, KnowsWhereFieldsAreInEveryFormat) {
  const ExperimentFile yaml = Load("a.yaml", kYaml);
  EXPECT_EQ(yaml.positions.Find("base.training.steps"), (yaml::Position{5, 14}));
  EXPECT_EQ(yaml.positions.Find("base.training.betas[1]"), (yaml::Position{5, 42}));
  EXPECT_EQ(yaml.positions.Find("axes[0].settings[1].set[\"model.norm.placement\"]"),
            (yaml::Position{12, 15}));
  EXPECT_EQ(yaml.positions.Find("axes[0].settings[1].set[\"model.norm\"].final"),
            (yaml::Position{12, 56}));
  EXPECT_EQ(yaml.positions.Find("axes[1].values[1]"), (yaml::Position{13, 41}));
  EXPECT_EQ(yaml.positions.Find("exclude[0].where[\"batch\"]"), (yaml::Position{15, 25}));

  const ExperimentFile json = Load("a.json", kJson);
  EXPECT_EQ(json.positions.Find("base.training.steps"), (yaml::Position{5, 18}));
  EXPECT_EQ(json.positions.Find("axes[0].settings[1].set[\"model.norm.placement\"]"),
            (yaml::Position{10, 15}));
}

// Half a megabyte of seeds in one line: takes minutes if a position takes more time the further it
// is behind the line's start.
TEST_F(ExperimentFileTest, ReadsALongLine) {
  constexpr int kSeeds = 80'000;
  std::string text = R"({"question": "Zähneputzen?", "seeds": {"list": [0)";
  for (int i = 1; i < kSeeds; ++i) absl::StrAppend(&text, ",", i);
  const auto last = static_cast<int>(text.size()) - 5;  // ä is two bytes, and columns begin at 1
  absl::StrAppend(&text, "]}}");
  for (const char* name : {"a.json", "a.yaml"}) {
    const ExperimentFile file = Load(name, text);
    EXPECT_THAT(Lines(file), ::testing::IsEmpty());
    EXPECT_EQ(file.spec.seeds().list_size(), kSeeds);
    EXPECT_EQ(file.positions.Find("seeds.list[79999]"), (yaml::Position{1, last}));
  }
}

TEST_F(ExperimentFileTest, FindsTheNearestFieldAroundAnAbsentOne) {
  const ExperimentFile file = Load("a.yaml", kYaml);
  EXPECT_EQ(file.positions.Find("axes[0].settings[1].colour"), (yaml::Position{11, 9}));
  EXPECT_EQ(file.positions.Find("base.model.heads"), (yaml::Position{6, 3}));
  EXPECT_EQ(file.positions.Find("report.primary"), (yaml::Position{0, 0}));
  EXPECT_EQ(file.positions.Find(""), (yaml::Position{0, 0}));
  EXPECT_EQ(file.positions.Find("]][.\"\\"), (yaml::Position{0, 0}));
}

TEST_F(ExperimentFileTest, ReadsStdinAsYamlOrJson) {
  EXPECT_EQ(FromStdin("name: a\n").spec.name(), "a");
  EXPECT_EQ(FromStdin("{name: a}\n").spec.name(), "a");
  // A pair of surrogates and tabs are JSON, not YAML.
  const ExperimentFile json =
      FromStdin("{\n\t\"question\": \"\\u00e9\\/\\ud83d\\ude00 \\\\ud83d\\\\ude00\\\"\"}\n");
  EXPECT_THAT(Lines(json), ::testing::IsEmpty());
  EXPECT_EQ(json.spec.question(), "\u00e9/\U0001F600 \\ud83d\\ude00\"");
  EXPECT_EQ(json.name, "<stdin>");
}

TEST_F(ExperimentFileTest, KeepsQuotedAndBlockTextsAsTheyAre) {
  const ExperimentFile file = FromStdin("name: '5'\nquestion: |\n  one\n  two\n");
  EXPECT_THAT(Lines(file), ::testing::IsEmpty());
  EXPECT_EQ(file.spec.name(), "5");
  EXPECT_EQ(file.spec.question(), "one\ntwo\n");
}

TEST_F(ExperimentFileTest, RefusesTabsInTheIndentationOnly) {
  const ExperimentFile file =
      FromStdin("name: a\nquestion: >-  # of two lines\n\n  one\n  \ttwo\nseeds: {count: 2}\n");
  EXPECT_THAT(Lines(file), ::testing::IsEmpty());
  EXPECT_EQ(file.spec.question(), "\none\n\ttwo");
  EXPECT_EQ(file.spec.seeds().count(), 2u);
  for (const auto& [text, where] : {std::pair("question: |\n\tone\n", "x:2:1: "),
                                    {"question: |\n  one\n \ttwo\n", "x:3:2: "},
                                    {"question: |\n  one\nseeds:\n  \tcount: 2\n", "x:4:3: "},
                                    {"# why |\n  \tname: a\n", "x:2:3: "}}) {
    EXPECT_THAT(Lines(FromStdin(text)),
                ::testing::ElementsAre(::testing::StartsWith(where + std::string("a tab in"))));
  }
}

TEST_F(ExperimentFileTest, SkipsAByteOrderMark) {
  EXPECT_EQ(FromStdin("\xEF\xBB\xBFname: a\n").spec.name(), "a");
}

TEST_F(ExperimentFileTest, SaysWhyAFileCantBeRead) {
  std::istringstream unused;
  EXPECT_THAT(Lines(LoadExperimentFile(folder_ / "none.yaml", unused)),
              ::testing::ElementsAre("x: no such file"));
  std::filesystem::create_directories(folder_ / "a.yaml");
  EXPECT_THAT(Lines(LoadExperimentFile(folder_ / "a.yaml", unused)),
              ::testing::ElementsAre("x: is a folder"));
}

TEST_F(ExperimentFileTest, ShowsControlCharactersOfMessagesHarmlessly) {
  EXPECT_THAT(Lines(FromStdin("name: a\n\"b\\e[31m\": 1\n")),
              ::testing::ElementsAre(::testing::AllOf(
                  ::testing::StartsWith("x:2:1: "), ::testing::Not(::testing::HasSubstr("\x1b")))));
}

TEST_F(ExperimentFileTest, ReadsTheExamples) {
  int examples = 0;
  std::istringstream unused;
  for (const auto& entry : std::filesystem::directory_iterator(EXAMPLES)) {
    if (entry.path().extension() != ".yaml") continue;
    ++examples;
    const ExperimentFile file = LoadExperimentFile(entry.path().string(), unused);
    EXPECT_THAT(Lines(file), ::testing::IsEmpty()) << entry.path();
    EXPECT_EQ(file.spec.name(), entry.path().stem().string());
    EXPECT_GT(file.spec.axes_size(), 0);
  }
  EXPECT_GE(examples, 2);
}

}  // namespace
}  // namespace ablate::client
