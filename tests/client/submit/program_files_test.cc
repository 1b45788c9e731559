// Tests which files of a folder are sent with a program.
#include "client/submit/program_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/test_folder.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProgramFilesTest : public ::testing::Test {
 protected:
  ProgramFilesTest() {
    for (const char* path : {"train.py", "my.yaml", "lib/a.py", "lib/b.txt", "lib/deep/c.py",
                             ".env", "lib/.key", "__pycache__/x.pyc"}) {
      Write(path, absl::StrCat("content of ", path));
    }
  }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }

  void Git(const std::string& command) {
    const std::string line = absl::StrCat("git -C ", folder_.string(), " -c user.email=a@b -c ",
                                          "user.name=a ", command, " >/dev/null 2>&1");
    ASSERT_EQ(std::system(line.c_str()), 0) << command;
  }

  // Returns the paths of the packed files, or the error's message.
  std::vector<std::string> Pack(const std::string& patterns) {
    const auto packed = PackProgramFiles(folder_.string(), patterns, (folder_ / "my.yaml").string(),
                                         {}, &left_out_);
    if (!packed.ok()) return {std::string(packed.status().message())};
    std::vector<std::string> paths;
    const auto files = ReadFileSet(*packed);
    for (const PackedFile& file : *files) {
      paths.push_back(file.path);
      EXPECT_EQ(file.bytes, absl::StrCat("content of ", file.path));
    }
    return paths;
  }

  std::vector<std::string> left_out_;  // by the last Pack
  const TestFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(ProgramFilesTest, TakesAFolderOutsideOfARepository) {
  EXPECT_THAT(Pack("."), ElementsAre("lib/a.py", "lib/b.txt", "lib/deep/c.py", "train.py"));
  EXPECT_THAT(Pack("lib"), ElementsAre("lib/a.py", "lib/b.txt", "lib/deep/c.py"));
  EXPECT_THAT(Pack("./lib/"), ElementsAre("lib/a.py", "lib/b.txt", "lib/deep/c.py"));
}

TEST_F(ProgramFilesTest, TakesTheFilesThatGitTracks) {
  Git("init -q");
  EXPECT_THAT(Pack("."), ElementsAre("lib/a.py", "lib/b.txt", "lib/deep/c.py", "train.py"))
      << "git tracks none yet";
  EXPECT_THAT(left_out_, IsEmpty());
  Git("add train.py lib/a.py .env");
  EXPECT_THAT(Pack("."), ElementsAre("lib/a.py", "train.py"));
  EXPECT_THAT(left_out_, ElementsAre("lib/b.txt", "lib/deep/c.py"));
  Write(".gitignore", "deep\n");
  EXPECT_THAT(Pack("., lib/b.txt"), ElementsAre("lib/a.py", "lib/b.txt", "train.py"));
  EXPECT_THAT(left_out_, IsEmpty()) << "one is named, and one is ignored";
  EXPECT_THAT(Pack("lib"), ElementsAre("lib/a.py"));
  EXPECT_THAT(Pack("., lib/b.txt"), ElementsAre("lib/a.py", "lib/b.txt", "train.py"))
      << "a file that is named needn't be tracked";
  fs::remove(folder_ / "lib/a.py");
  EXPECT_THAT(Pack("."), ElementsAre("train.py")) << "deleted, though tracked";
  Write("train.py", "content of train.py");
  EXPECT_THAT(Pack("."), ElementsAre("train.py")) << "as it is now, not as it was committed";
}

TEST_F(ProgramFilesTest, TakesPatterns) {
  EXPECT_THAT(Pack("*.py"), ElementsAre("train.py")) << "* doesn't match /";
  EXPECT_THAT(Pack("*/*.py"), ElementsAre("lib/a.py"));
  EXPECT_THAT(Pack("lib/[ab].*, train.py ,train.py"),
              ElementsAre("lib/a.py", "lib/b.txt", "train.py"));
  EXPECT_THAT(Pack("*.cc"), ElementsAre(HasSubstr("\"*.cc\" names no file; expected paths")));
}

TEST_F(ProgramFilesTest, PacksEqualFilesEqually) {
  const auto packed = PackProgramFiles(folder_.string(), "lib, train.py", "");
  const auto again = PackProgramFiles(folder_.string(), "train.py, lib/*, lib/deep/c.py", "");
  ASSERT_TRUE(packed.ok() && again.ok());
  EXPECT_TRUE(*packed == *again);
  fs::permissions(folder_ / "train.py", fs::perms::owner_exec, fs::perm_options::add);
  const auto executable = PackProgramFiles(folder_.string(), "train.py, lib", "");
  EXPECT_FALSE(*packed == *executable);
}

TEST_F(ProgramFilesTest, RefusesPathsThatLeadOut) {
  for (const char* path : {"..", "../other", "/etc/hostname", "lib/../../x"}) {
    EXPECT_THAT(Pack(path), ElementsAre(HasSubstr("leads out of the experiment file's folder")))
        << path;
  }
  EXPECT_THAT(Pack("lib/../train.py"), ElementsAre("train.py"));
}

TEST_F(ProgramFilesTest, RefusesHiddenFilesAndLinksThatLeadOut) {
  EXPECT_THAT(Pack(".env"), ElementsAre(HasSubstr("hidden")));
  EXPECT_THAT(Pack("lib/.key"), ElementsAre(HasSubstr("hidden")));
  fs::create_symlink("/etc/hostname", folder_ / "host.txt");
  EXPECT_THAT(Pack("host.txt"), ElementsAre(HasSubstr("outside")));
  EXPECT_TRUE(PackProgramFiles(folder_.string(), "host.txt", "", {"/etc/hostname"}).ok());
  EXPECT_THAT(Pack("."), ElementsAre(HasSubstr("outside"))) << "not left out in silence";
  fs::remove(folder_ / "host.txt");
  fs::create_symlink("/etc", folder_ / "etc");
  EXPECT_THAT(Pack("etc/hostname"), ElementsAre(HasSubstr("outside")));
  EXPECT_THAT(Pack("."), ElementsAre("lib/a.py", "lib/b.txt", "lib/deep/c.py", "train.py"))
      << "links to folders aren't followed";
}

TEST_F(ProgramFilesTest, LeavesOutTheExperimentFile) {
  EXPECT_THAT(Pack("my.yaml, train.py"), ElementsAre("train.py"));
  Write("other.yaml", "content of other.yaml");
  EXPECT_THAT(Pack("*.yaml"), ElementsAre("other.yaml"));
}

TEST_F(ProgramFilesTest, NamesItsLimits) {
  for (int i = 0; i <= static_cast<int>(kMaxPackedFiles); ++i) {
    Write(absl::StrCat("many/", i), "");
  }
  EXPECT_THAT(Pack("many"), ElementsAre(HasSubstr("more than 10,000 files; expected fewer")));
  Write("large", "");
  fs::resize_file(folder_ / "large", kMaxPackedBytes + 1);
  EXPECT_THAT(Pack("large"), ElementsAre(HasSubstr("more than 250,000,000 bytes")));
}

}  // namespace
}  // namespace ablate::client
