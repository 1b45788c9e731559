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

// How many files of an experiment in "folder" are not uploaded.
size_t ProblemsOf(ExperimentFile file, const std::vector<std::string>& allowed,
                  Overrides overrides = {}) {
  const absl::Status status = ReplaceDatasetPaths(
      &file, &overrides, allowed, [](const NamedPath&) { return std::string("datasets/x"); });
  EXPECT_TRUE(status.ok()) << status;
  return file.problems.size();
}

TEST(ReplaceDatasetPathsTest, UploadsEachFileOnceRelativeToTheExperiment) {
  ExperimentFile file = Load(kFileText);
  Overrides overrides;
  std::vector<std::string> uploaded;
  const absl::Status status = ReplaceDatasetPaths(
      &file, &overrides, {}, [&](const NamedPath& named) -> absl::StatusOr<std::string> {
        uploaded.push_back(named.path);
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
      &file, &overrides, {}, [](const NamedPath& named) -> absl::StatusOr<std::string> {
        if (named.path == "folder/b.txt" || named.path == "folder/e.txt") {
          return absl::NotFoundError(absl::StrCat("no file ", named.path));
        }
        return "datasets/x";
      });
  EXPECT_TRUE(status.ok());
  std::vector<std::string> lines;
  for (const yaml::Diagnostic& problem : file.problems)
    lines.push_back(yaml::ToString(problem, "x"));
  EXPECT_THAT(lines, ElementsAre("x:7:26: axes[0].settings[1].set[\"task.documents.dataset\"]: no "
                                 "file folder/b.txt",
                                 "--set task.documents.dataset: no file folder/e.txt"));
}

TEST(ReplaceDatasetPathsTest, ReturnsErrorsThatAreNotAboutFiles) {
  ExperimentFile file = Load(kFileText);
  Overrides overrides;
  const absl::Status status = ReplaceDatasetPaths(
      &file, &overrides, {}, [](const NamedPath&) -> absl::StatusOr<std::string> {
        return absl::UnavailableError("no server");
      });
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(file.problems, IsEmpty());
}

TEST(ReplaceDatasetPathsTest, UploadsAProgramsFilesAsWritten) {
  ExperimentFile file = Load(
      "name: a\nbase:\n  program: {command: [x], files: [train.py, ../lib.py]}\n"
      "  settings: {dataset: data/a.txt}\n"
      "axes: [{field: settings.dataset, values: [data/b.txt]}]\n");
  Overrides overrides;
  std::vector<std::string> uploaded;
  const auto upload = [&](const NamedPath& named) -> absl::StatusOr<std::string> {
    EXPECT_TRUE(named.is_files);
    uploaded.push_back(named.path);
    return named.path == "a.py" ? absl::InvalidArgumentError("no such file")
                                : absl::StatusOr<std::string>("datasets/x");
  };
  EXPECT_TRUE(ReplaceDatasetPaths(&file, &overrides, {}, upload).ok());
  EXPECT_THAT(uploaded, ElementsAre("train.py, ../lib.py"));
  EXPECT_EQ(file.spec.base().program().files(), "datasets/x");
  // The option replaces the file's value, which isn't read then.
  file.spec.mutable_base()->mutable_program()->set_files("b.py");
  overrides["program.files"].set_string_value("a.py");
  EXPECT_TRUE(ReplaceDatasetPaths(&file, &overrides, {}, upload).ok());
  EXPECT_THAT(uploaded, ElementsAre("train.py, ../lib.py", "a.py"));
  ASSERT_EQ(file.problems.size(), 1u);
  EXPECT_EQ(yaml::ToString(file.problems[0], "x"), "--set program.files: no such file");
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
