// Tests which fields of an experiment name a data set by a path.
#include "proto/yaml/dataset_paths.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/yaml/experiment_text.h"

namespace ablate::yaml {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kFileText = R"(name: a
base: {task: {documents: {dataset: data/a.txt}}}
axes:
  - name: data
    settings:
      - {label: a}
      - {label: b, set: {task.documents.dataset: ./b.txt}}
      - {label: c, set: {task: {documents: {dataset: c.txt, held_out: 1}}}}
      - {label: d, set: {task.documents: {dataset: datasets/d.e}}}
  - {field: task.documents.dataset, values: [plain, data/../data/a.txt]}
exclude: [{where: {dataset: data/a.txt, data: b}}]
)";

// Returns the paths to replace, each as FIELD = PATH.
std::vector<std::string> Found(ExperimentText* file, Overrides* overrides) {
  std::vector<std::string> found;
  for (const DatasetPath& path : FindDatasetPaths(&file->spec, overrides)) {
    found.push_back(absl::StrCat(path.field, " = ", *path.name));
  }
  return found;
}

TEST(IsPathTest, GoesByTheRule) {
  for (const char* path : {"a.txt", "data/a", "./a", "/a", "datasets.txt", "../datasets/a"}) {
    EXPECT_TRUE(IsPath(path)) << path;
  }
  for (const char* name : {"names", "datasets/names-1a2b3c", "datasets/a.b", ""}) {
    EXPECT_FALSE(IsPath(name)) << name;
  }
}

TEST(FindDatasetPathsTest, LooksEverywhere) {
  ExperimentText file = ReadExperiment(kFileText);
  ASSERT_THAT(file.problems, IsEmpty());
  Overrides overrides;
  EXPECT_THAT(Found(&file, &overrides),
              UnorderedElementsAre("base.task.documents.dataset = data/a.txt",
                                   "axes[0].settings[1].set[\"task.documents.dataset\"] = ./b.txt",
                                   "axes[0].settings[2].set[\"task\"].documents.dataset = c.txt",
                                   "axes[1].values[1] = data/../data/a.txt",
                                   "exclude[0].where[\"dataset\"] = data/a.txt"));
}

TEST(FindDatasetPathsTest, FindsAProgramsFilesAndNoneOfItsSettings) {
  ExperimentText file = ReadExperiment(R"(name: a
base:
  program: {command: [x], files: [a.py, "lib/*.py"], data: corpus}
  settings: {dataset: data/a.txt, nested: {dataset: b.txt}}
axes:
  - {field: settings.dataset, values: [c.txt]}
  - {name: code, settings: [{label: b, set: {program.files: b.py, settings.dataset: d.txt}}]}
)");
  ASSERT_THAT(file.problems, IsEmpty());
  Overrides overrides;
  overrides["settings.dataset"].set_string_value("e.txt");
  EXPECT_THAT(
      Found(&file, &overrides),
      UnorderedElementsAre("base.program.files = a.py, lib/*.py", "base.program.data = corpus",
                           "axes[1].settings[0].set[\"program.files\"] = b.py"));
  overrides["program.files"].set_string_value("datasets/a-1a2b3c");
  EXPECT_THAT(Found(&file, &overrides),
              UnorderedElementsAre("base.program.data = corpus",
                                   "axes[1].settings[0].set[\"program.files\"] = b.py"))
      << "a data set of the server isn't a path";
}

TEST(FindDatasetPathsTest, LeavesOutWhatTheCommandLineReplaces) {
  ExperimentText file = ReadExperiment("name: a\nbase: {task: {documents: {dataset: gone.txt}}}\n");
  Overrides overrides;
  overrides["task.documents.dataset"].set_string_value("here.txt");
  const std::vector<DatasetPath> found = FindDatasetPaths(&file.spec, &overrides);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].is_override);
  EXPECT_EQ(*found[0].name, "here.txt");
}

TEST(FindDatasetPathsTest, FindsTheFileOfAText) {
  ExperimentText file = ReadExperiment(
      "name: a\n"
      "base: {task: {text: {dataset: data/t.txt}}}\n"
      "axes: [{name: data, settings: [{label: a}, {label: b, set: {task: {text: {dataset: "
      "u.txt}}}}]}]\n");
  Overrides overrides;
  EXPECT_THAT(Found(&file, &overrides),
              UnorderedElementsAre("base.task.text.dataset = data/t.txt",
                                   "axes[0].settings[1].set[\"task\"].text.dataset = u.txt"));
  overrides["task.text.validation"].set_number_value(.2);
  EXPECT_EQ(FindDatasetPaths(&file.spec, &overrides).size(), 2u);
  overrides["task.recall"].mutable_struct_value();
  EXPECT_EQ(FindDatasetPaths(&file.spec, &overrides).size(), 1u);
  overrides.clear();
  overrides["task.text.dataset"].set_string_value("here.txt");
  EXPECT_EQ(FindDatasetPaths(&file.spec, &overrides).size(), 2u) << "one of them of the option";
}

TEST(FindDatasetPathsTest, FindsTheFilesOfInputs) {
  ExperimentText file = ReadExperiment(
      "name: a\n"
      "base: {task: {documents: {dataset: names}}}\n"
      "analyses:\n"
      "  - {spectrum: {}}\n"
      "  - {probe: {}, inputs: {dataset: tagged.conllu}}\n"
      "  - {cka: {}, inputs: {dataset: datasets/other.txt}}\n");
  ASSERT_THAT(file.problems, IsEmpty());
  Overrides overrides;
  EXPECT_THAT(Found(&file, &overrides),
              UnorderedElementsAre("analyses[1].inputs.dataset = tagged.conllu"));
}

TEST(FindDatasetPathsTest, LeavesOutTheFileOfATaskThatTheCommandLineReplaces) {
  ExperimentText file = ReadExperiment("name: a\nbase: {task: {documents: {dataset: gone.txt}}}\n");
  Overrides overrides;
  overrides["task.legacy_recall.keys"].set_null_value(google::protobuf::NULL_VALUE);
  EXPECT_EQ(FindDatasetPaths(&file.spec, &overrides).size(), 1u) << "it clears what is not there";
  overrides["task.legacy_recall.keys"].set_number_value(5);
  EXPECT_THAT(FindDatasetPaths(&file.spec, &overrides), IsEmpty());
}

TEST(FindDatasetPathsTest, FindsTheFolderOfATokenizer) {
  ExperimentText file = ReadExperiment(
      "name: a\n"
      "base: {task: {text: {dataset: t, tokenizer: data/bpe}}}\n"
      "axes: [{field: task.text.tokenizer, values: [chars, ./gpt2]}]\n"
      "exclude: [{where: {tokenizer: ./gpt2}}]\n");
  Overrides overrides;
  EXPECT_THAT(
      Found(&file, &overrides),
      UnorderedElementsAre("base.task.text.tokenizer = data/bpe", "axes[0].values[1] = ./gpt2",
                           "exclude[0].where[\"tokenizer\"] = ./gpt2"));
  overrides["task.text.dataset"].set_string_value("u");
  EXPECT_EQ(FindDatasetPaths(&file.spec, &overrides).size(), 3u);
  overrides["task.text.tokenizer"].set_string_value("chars");
  EXPECT_EQ(FindDatasetPaths(&file.spec, &overrides).size(), 2u);
}

TEST(FindDatasetPathsTest, FindsTheTokenizerOfDocuments) {
  ExperimentText file = ReadExperiment(
      "name: a\n"
      "base: {task: {documents: {dataset: t, tokenizer: data/bpe}}}\n"
      "axes: [{name: t, settings: [{label: b, set: {task.documents.tokenizer: ./gpt2}}]}]\n");
  Overrides overrides;
  EXPECT_THAT(
      Found(&file, &overrides),
      UnorderedElementsAre("base.task.documents.tokenizer = data/bpe",
                           "axes[0].settings[0].set[\"task.documents.tokenizer\"] = ./gpt2"));
  overrides["task.documents.tokenizer"].set_string_value("./other");
  EXPECT_EQ(FindDatasetPaths(&file.spec, &overrides).size(), 2u);
}

}  // namespace
}  // namespace ablate::yaml
