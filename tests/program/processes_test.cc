// Tests reading /proc, and measuring a folder.
#include "server/program/processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "server/program/limit_watch.h"
#include "tests/test_folder.h"

namespace ablate::program {
namespace {

TEST(ProcessesTest, MeasuresTheMemoryOfAProcess) {
  const std::vector<pid_t> self = {getpid()};
  EXPECT_GT(ResidentBytes(self), 1u << 20);
  const Memory memory = ProportionalMemory(self);
  EXPECT_GT(memory.bytes, 1u << 18);
  EXPECT_LE(memory.bytes, ResidentBytes(self) + (1 << 22));
  EXPECT_EQ(ResidentBytes({0}), 0u) << "no process has this number";
}

TEST(MeasureFolderTest, MeasuresAFolderWithoutFollowingLinks) {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "inner");
  folder.Write("inner/file", std::string(100'000, 'x'));
  const uint64_t before = MeasureFolder(folder.path(), 100).value();
  EXPECT_GE(before, 100'000u);
  EXPECT_LT(before, 200'000u);
  const TestFolder other;
  other.Write("large", std::string(500'000, 'x'));
  std::filesystem::create_directory_symlink(other.path(), folder / "link");
  std::filesystem::create_directory_symlink(folder.path(), folder / "loop");
  EXPECT_LT(MeasureFolder(folder.path(), 100).value(), before + 50'000);
}

TEST(MeasureFolderTest, BoundsTheFilesAndFoldersThatItVisits) {
  const TestFolder folder;
  for (int file = 0; file < 10; ++file) folder.Write(absl::StrCat(file), "");
  EXPECT_TRUE(MeasureFolder(folder.path(), 10).ok());
  EXPECT_EQ(MeasureFolder(folder.path(), 9).status().message(), "more than 9 files");
  std::string deep;
  for (int depth = 0; depth < 100; ++depth) deep += "/d";
  std::filesystem::create_directories(folder.path() + deep);
  EXPECT_EQ(MeasureFolder(folder.path(), 1000).status().message(),
            "folders are nested more than 64 deep");
}

TEST(ProcessesTest, FindsProcessesByAVariable) {
  EXPECT_TRUE(ProcessesWithVariable("ABLATE_NO_SUCH_VARIABLE=1").empty());
}

}  // namespace
}  // namespace ablate::program
