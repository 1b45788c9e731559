// Tests the measures of memory and disk.
#include "server/program/usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "server/program/process_tree.h"
#include "tests/test_folder.h"

namespace ablate::program {
namespace {

TEST(UsageTest, MeasuresTheMemoryOfAProcess) {
  const std::vector<pid_t> self = {getpid()};
  EXPECT_GT(ResidentBytes(self), 1u << 20);
  const Memory memory = ProportionalMemory(self);
  EXPECT_GT(memory.bytes, 1u << 18);
  EXPECT_LE(memory.bytes, ResidentBytes(self) + (1 << 22));
  EXPECT_EQ(ResidentBytes({0}), 0u) << "no process has this number";
}

TEST(UsageTest, MeasuresAFolderWithoutFollowingLinks) {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "inner");
  folder.Write("inner/file", std::string(100'000, 'x'));
  const FolderSize before = MeasureFolder(folder.path(), 100);
  EXPECT_GE(before.bytes, 100'000u);
  EXPECT_LT(before.bytes, 200'000u);
  EXPECT_TRUE(before.complete);
  const TestFolder other;
  other.Write("large", std::string(500'000, 'x'));
  std::filesystem::create_directory_symlink(other.path(), folder / "link");
  std::filesystem::create_directory_symlink(folder.path(), folder / "loop");
  EXPECT_LT(MeasureFolder(folder.path(), 100).bytes, before.bytes + 50'000);
}

TEST(UsageTest, BoundsTheFilesAndFoldersThatItVisits) {
  const TestFolder folder;
  for (int file = 0; file < 10; ++file) folder.Write(absl::StrCat(file), "");
  EXPECT_TRUE(MeasureFolder(folder.path(), 10).complete);
  EXPECT_FALSE(MeasureFolder(folder.path(), 9).complete);
  std::string deep;
  for (int depth = 0; depth < 100; ++depth) deep += "/d";
  std::filesystem::create_directories(folder.path() + deep);
  EXPECT_FALSE(MeasureFolder(folder.path(), 1000).complete);
}

TEST(ProcessTreeTest, FindsProcessesByAVariable) {
  EXPECT_TRUE(ProcessesWithVariable("ABLATE_NO_SUCH_VARIABLE=1").empty());
}

}  // namespace
}  // namespace ablate::program
