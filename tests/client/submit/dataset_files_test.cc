// Tests data sets as files: their names on the server, and the paths by which an experiment names
// them.
#include "client/submit/dataset_files.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
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

ExperimentFile Load(const std::string& text) {
  std::istringstream in(text);
  ExperimentFile file = LoadExperimentFile("-", in);
  file.folder = "folder";
  return file;
}

// Returns the paths to replace, each as FIELD = PATH.
std::vector<std::string> Found(ExperimentFile* file, Overrides* overrides) {
  std::vector<std::string> found;
  for (const DatasetPath& path : FindDatasetPaths(&file->spec, overrides)) {
    found.push_back(absl::StrCat(path.field, " = ", *path.name));
  }
  return found;
}

// How many files of an experiment in "folder" are not uploaded.
size_t ProblemsOf(ExperimentFile file, const std::vector<std::string>& allowed,
                  Overrides overrides = {}) {
  const absl::Status status = ReplaceDatasetPaths(
      &file, &overrides, allowed, [](const std::string&) { return std::string("datasets/x"); });
  EXPECT_TRUE(status.ok()) << status;
  return file.problems.size();
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
  ExperimentFile file = Load(kFileText);
  ASSERT_THAT(file.problems, IsEmpty());
  Overrides overrides;
  EXPECT_THAT(Found(&file, &overrides),
              UnorderedElementsAre("base.task.documents.dataset = data/a.txt",
                                   "axes[0].settings[1].set[\"task.documents.dataset\"] = ./b.txt",
                                   "axes[0].settings[2].set[\"task\"].documents.dataset = c.txt",
                                   "axes[1].values[1] = data/../data/a.txt",
                                   "exclude[0].where[\"dataset\"] = data/a.txt"));
}

TEST(FindDatasetPathsTest, LeavesOutWhatTheCommandLineReplaces) {
  ExperimentFile file = Load("name: a\nbase: {task: {documents: {dataset: gone.txt}}}\n");
  Overrides overrides;
  overrides["task.documents.dataset"].set_string_value("here.txt");
  const std::vector<DatasetPath> found = FindDatasetPaths(&file.spec, &overrides);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].from_command_line);
  EXPECT_EQ(*found[0].name, "here.txt");
}

TEST(FindDatasetPathsTest, FindsTheFileOfAText) {
  ExperimentFile file = Load(
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
  ExperimentFile file = Load(
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
  ExperimentFile file = Load("name: a\nbase: {task: {documents: {dataset: gone.txt}}}\n");
  Overrides overrides;
  overrides["task.legacy_recall.keys"].set_null_value(google::protobuf::NULL_VALUE);
  EXPECT_EQ(FindDatasetPaths(&file.spec, &overrides).size(), 1u) << "it clears what is not there";
  overrides["task.legacy_recall.keys"].set_number_value(5);
  EXPECT_THAT(FindDatasetPaths(&file.spec, &overrides), IsEmpty());
}

TEST(FindDatasetPathsTest, FindsTheFolderOfATokenizer) {
  ExperimentFile file = Load(
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
  ExperimentFile file = Load(
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

TEST(ReplaceDatasetPathsTest, UploadsEachFileOnceRelativeToTheExperiment) {
  ExperimentFile file = Load(kFileText);
  Overrides overrides;
  std::vector<std::string> uploaded;
  const absl::Status status = ReplaceDatasetPaths(
      &file, &overrides, {}, [&](const std::string& path) -> absl::StatusOr<std::string> {
        uploaded.push_back(path);
        return absl::StrCat("datasets/", uploaded.size());
      });
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(uploaded, UnorderedElementsAre("folder/data/a.txt", "folder/b.txt", "folder/c.txt"));
  EXPECT_EQ(uploaded[0], "folder/data/a.txt");
  EXPECT_EQ(file.spec.base().task().documents().dataset(), "datasets/1");
  EXPECT_EQ(file.spec.axes(1).values(0).string_value(), "plain");
  EXPECT_EQ(file.spec.axes(1).values(1).string_value(), "1");  // becomes a label
  EXPECT_EQ(file.spec.exclude(0).where().at("dataset").string_value(), "1");
  EXPECT_EQ(file.spec.exclude(0).where().at("data").string_value(), "b");
}

TEST(ReplaceDatasetPathsTest, PutsProblemsWhereTheFileIsNamed) {
  ExperimentFile file = Load(kFileText);
  Overrides overrides;
  overrides["task.documents.dataset"].set_string_value("e.txt");
  const absl::Status status = ReplaceDatasetPaths(
      &file, &overrides, {}, [](const std::string& path) -> absl::StatusOr<std::string> {
        if (path == "folder/b.txt" || path == "folder/e.txt") {
          return absl::NotFoundError(absl::StrCat("no file ", path));
        }
        return "datasets/x";
      });
  EXPECT_TRUE(status.ok());
  std::vector<std::string> lines;
  for (const Diagnostic& problem : file.problems) lines.push_back(ToString(problem, "x"));
  EXPECT_THAT(lines, ElementsAre("x:7:26: axes[0].settings[1].set[\"task.documents.dataset\"]: no "
                                 "file folder/b.txt",
                                 "--set task.documents.dataset: no file folder/e.txt"));
}

TEST(ReplaceDatasetPathsTest, ReturnsErrorsThatAreNotAboutFiles) {
  ExperimentFile file = Load(kFileText);
  Overrides overrides;
  const absl::Status status = ReplaceDatasetPaths(
      &file, &overrides, {}, [](const std::string&) -> absl::StatusOr<std::string> {
        return absl::UnavailableError("no server");
      });
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(file.problems, IsEmpty());
}

TEST(ReplaceDatasetPathsTest, RefusesPathsInTheFileThatLeadOutOfItsFolder) {
  const ExperimentFile file =
      Load("name: a\nbase: {task: {documents: {dataset: ../folder-2/a.txt}}}\n");
  EXPECT_EQ(ProblemsOf(file, {}), 1u);
  EXPECT_EQ(ProblemsOf(file, {"folder"}), 1u) << "of which folder-2 only has the beginning";
  EXPECT_EQ(ProblemsOf(file, {"folder-2"}), 0u);
  EXPECT_EQ(ProblemsOf(file, {"elsewhere", "folder-2/a.txt"}), 0u);
  Overrides overrides;
  overrides["task.documents.dataset"].set_string_value("/etc/hostname");
  EXPECT_EQ(ProblemsOf(file, {}, overrides), 0u) << "whoever types it means it";
}

TEST(ReplaceDatasetPathsTest, RefusesHiddenFilesBelowTheFilesFolder) {
  const ExperimentFile file = Load("name: a\nbase: {task: {documents: {dataset: .keys/a.txt}}}\n");
  EXPECT_EQ(ProblemsOf(file, {}), 1u);
  EXPECT_EQ(ProblemsOf(file, {"folder/.keys"}), 0u);
}

TEST(DisplayNameTest, KeepsWhatServersAllow) {
  EXPECT_EQ(DisplayName("a/b/names.txt"), "names.txt");
  EXPECT_EQ(DisplayName("my names (2).txt"), "my-names--2-.txt");
  EXPECT_EQ(DisplayName(".hidden"), "hidden");
  EXPECT_EQ(DisplayName("名前.txt"), "txt");
  EXPECT_EQ(DisplayName("___"), "data");
  EXPECT_EQ(DisplayName(std::string(200, 'a') + ".txt"), std::string(33, 'a') + ".txt");
  EXPECT_EQ(DisplayName(std::string(200, 'a')), std::string(33, 'a'));
  EXPECT_EQ(DisplayName("a." + std::string(200, 'b')), "a." + std::string(98, 'b'));
}

TEST(DisplayNameTest, LeavesRoomForTheHashInALabel) {
  EXPECT_EQ(DisplayName(std::string(40, 'a') + "-2025.txt"), std::string(28, 'a') + "-2025.txt");
}

}  // namespace
}  // namespace ablate::client
