// Tests shorthands of files whose runs are programs.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/yaml/dataset_paths.h"
#include "proto/yaml/experiment_text.h"

namespace ablate::yaml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Reads a file whose program has these lines.
ExperimentText ReadProgram(const std::string& program, const std::string& settings = "{lr: 0.1}") {
  return ReadExperiment(
      absl::StrCat("name: a\nbase:\n  program: ", program, "\n  settings: ", settings, "\n"));
}

std::string ProblemOf(const std::string& program) {
  const ExperimentText file = ReadProgram(program);
  return file.problems.empty() ? "" : ToString(file.problems[0], "f");
}

TEST(ProgramFileTest, TakesATextAsAShellLine) {
  EXPECT_THAT(
      ReadProgram("{command: \"python train.py | tee log\"}").spec.base().program().command(),
      ElementsAre("sh", "-c", "python train.py | tee log \"$@\"", "sh"));
  EXPECT_THAT(ReadProgram("{command: [python, train.py]}").spec.base().program().command(),
              ElementsAre("python", "train.py"));
}

TEST(ProgramFileTest, JoinsListsOfFiles) {
  EXPECT_EQ(ReadProgram("{command: a, files: [\"*.py\", lib]}").spec.base().program().files(),
            "*.py, lib");
  EXPECT_EQ(ReadProgram("{command: a, files: .}").spec.base().program().files(), ".");
  EXPECT_EQ(ReadProgram("{command: a, data: [a.bin, vocab]}").spec.base().program().data(),
            "a.bin, vocab");
}

TEST(ProgramFileTest, ReadsUnits) {
  struct Case {
    std::string limits;
    int64_t seconds;
    uint64_t memory, disk;
  };
  for (const Case& test :
       {Case{"{time: 2h, memory: 8GB, disk: 5 GB}", 7200, 8'000'000'000, 5'000'000'000},
        Case{"{time: 90m, memory: 500MB, disk: 200kB}", 5400, 500'000'000, 200'000},
        Case{"{time: 1.5d, memory: 0.5GB, disk: 1TB}", 129'600, 500'000'000, 1'000'000'000'000},
        Case{"{time: 45s, memory: 1e9, disk: 1000000}", 45, 1'000'000'000, 1'000'000}}) {
    const ExperimentText file =
        ReadProgram(absl::StrCat("{command: a, limits: ", test.limits, "}"));
    EXPECT_THAT(file.problems, IsEmpty()) << test.limits << ToString(file.problems[0], "f");
    const v1::ProgramLimits& limits = file.spec.base().program().limits();
    EXPECT_EQ(limits.time().seconds(), test.seconds) << test.limits;
    EXPECT_EQ(limits.memory(), test.memory) << test.limits;
    EXPECT_EQ(limits.disk(), test.disk) << test.limits;
  }
}

TEST(ProgramFileTest, RefusesBadUnits) {
  for (const std::string limit :
       {"time: 2x", "time: h", "time: -2h", "time: 1 week", "memory: 8G B", "memory: -1GB",
        "memory: nanGB", "memory: 8GiB", "disk: 5h", "disk: 1e300TB"}) {
    const std::string problem = ProblemOf(absl::StrCat("{command: a, limits: {", limit, "}}"));
    EXPECT_THAT(problem, HasSubstr(absl::StrCat("limits.", limit.substr(0, limit.find(':')))));
    EXPECT_THAT(problem, HasSubstr(limit[0] == 't' ? "with a unit: s, m, h or d"
                                                   : "with a unit: kB, MB, GB or TB"))
        << limit;
  }
  EXPECT_THAT(ProblemOf("{command: {a: b}}"), HasSubstr("program.command"));
  EXPECT_THAT(ProblemOf("{command: a, limits: {memory: [8GB]}}"), HasSubstr("limits.memory"));
  EXPECT_THAT(ProblemOf("{command: a, device: auto}"), HasSubstr("expected cpu or cuda"));
  EXPECT_THAT(ProblemOf("{command: a, files: [1]}"), HasSubstr("program.files"));
  EXPECT_THAT(ProblemOf("{command: a, shell: true}"), HasSubstr("unknown field"));
}

TEST(ProgramFileTest, ReadsShorthandsOfAxes) {
  const ExperimentText file = ReadExperiment(R"(name: a
base: {program: {command: a}, settings: {lr: 0.1}}
axes:
  - {field: program.limits.time, values: [10m, 2h]}
  - name: memory
    by: time
    field: program.limits.memory
    values: {600s: [1GB], 7200s: [1GB, 5e8]}
  - name: kind
    settings:
      - {label: line, set: {program.command: "python a.py | tee log", program.files: [a.py, lib]}}
      - {label: small, set: {program.limits: {memory: 1MB}, settings.text: 2h}}
)");
  EXPECT_THAT(file.problems, IsEmpty());
  EXPECT_EQ(file.spec.axes(0).values(0).string_value(), "600s");
  EXPECT_EQ(file.spec.axes(0).values(1).string_value(), "7200s");
  EXPECT_EQ(file.spec.axes(1).values(0).number_value(), 1e9);
  EXPECT_EQ(file.spec.axes(1).values(1).number_value(), 5e8);
  const auto& line = file.spec.axes(2).settings(0).set();
  EXPECT_EQ(line.at("program.command").list_value().values_size(), 4);
  EXPECT_EQ(line.at("program.files").string_value(), "a.py, lib");
  const auto& small = file.spec.axes(2).settings(1).set();
  EXPECT_EQ(small.at("program.limits").struct_value().fields().at("memory").number_value(), 1e6);
  EXPECT_EQ(small.at("settings.text").string_value(), "2h");
}

TEST(ProgramFileTest, KeepsSettingsAsTheyAre) {
  const ExperimentText file = ReadProgram(
      "{command: a}", "{lr: 1e-3, on: true, text: \"0.1\", none: null, a: {b: [1, x]}}");
  EXPECT_THAT(file.problems, IsEmpty());
  const auto& settings = file.spec.base().settings().fields();
  EXPECT_EQ(settings.at("lr").number_value(), 0.001);
  EXPECT_TRUE(settings.at("on").bool_value());
  EXPECT_EQ(settings.at("text").string_value(), "0.1");
  EXPECT_TRUE(settings.at("none").has_null_value());
  EXPECT_EQ(settings.at("a").struct_value().fields().at("b").list_value().values_size(), 2);
}

TEST(ProgramFileTest, FindsFilesButNoDataSetsAmongSettings) {
  ExperimentText file =
      ReadProgram("{command: a, files: \"train.py, lib\"}", "{dataset: data/corpus.txt}");
  Overrides overrides;
  overrides["settings.dataset"].set_string_value("other/corpus.txt");
  const auto found = FindDatasetPaths(&file.spec, &overrides);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].is_files);
  EXPECT_EQ(*found[0].name, "train.py, lib");
  overrides["program.files"].set_string_value("src");
  const auto replaced = FindDatasetPaths(&file.spec, &overrides);
  ASSERT_EQ(replaced.size(), 1u);
  EXPECT_EQ(*replaced[0].name, "src");
  EXPECT_TRUE(replaced[0].is_override);
  overrides["program.files"].set_string_value("datasets/src-123456");
  EXPECT_THAT(FindDatasetPaths(&file.spec, &overrides), IsEmpty());
}

}  // namespace
}  // namespace ablate::yaml
