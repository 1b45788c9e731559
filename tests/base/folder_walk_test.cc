// Tests the removal of folders whose rights a program has changed.
#include "base/folder_walk.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/test_folder.h"

namespace ablate {
namespace {

namespace fs = std::filesystem;

TEST(RemoveFolderTest, RemovesFoldersWithoutRights) {
  const TestFolder folder;
  const fs::path top = folder / "top";
  fs::create_directories(top / "middle" / "bottom");
  std::ofstream(top / "middle" / "bottom" / "file") << "text";
  for (const fs::path& at : {top / "middle" / "bottom", top / "middle", top}) {
    fs::permissions(at, fs::perms::none);
  }
  EXPECT_FALSE(RemoveFolder(top.string()));
  EXPECT_FALSE(fs::exists(top));
}

TEST(RemoveFolderTest, KeepsWhatALinkNames) {
  const TestFolder folder;
  fs::create_directories(fs::path(folder / "top"));
  std::ofstream(folder / "kept") << "text";
  fs::create_symlink(folder / "kept", fs::path(folder / "top") / "link");
  EXPECT_FALSE(RemoveFolder(folder / "top"));
  EXPECT_TRUE(fs::exists(folder / "kept"));
}

TEST(RemoveFolderTest, TakesAMissingFolderAsRemoved) {
  const TestFolder folder;
  EXPECT_FALSE(RemoveFolder(folder / "missing"));
}

}  // namespace
}  // namespace ablate
