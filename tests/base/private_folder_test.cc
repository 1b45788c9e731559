// Tests that nothing is written through links.
#include "base/private_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/test_folder.h"

namespace ablate::process {
namespace {

using ::testing::HasSubstr;

TEST(PrivateFolderTest, RefusesALinkToAFolder) {
  const TestFolder folder;
  ASSERT_TRUE(MakePrivateFolder(folder / "real").ok());
  std::filesystem::create_directory_symlink(folder / "real", folder / "link");
  EXPECT_EQ(MakePrivateFolder(folder / "link").code(), absl::StatusCode::kFailedPrecondition);
}

TEST(PrivateFolderTest, RefusesAFolderOfAnotherUser) {
  if (geteuid() == 0) {
    const TestFolder folder;
    ASSERT_TRUE(MakePrivateFolder(folder / "theirs").ok());
    ASSERT_EQ(chown((folder / "theirs").c_str(), 12345, 12345), 0);
    EXPECT_THAT(std::string(MakePrivateHome(folder / "theirs").status().message()),
                HasSubstr("belongs to user 12345"));
  } else {
    EXPECT_THAT(std::string(CheckPrivateFolder("/").message()), HasSubstr("belongs to user 0"));
  }
}

}  // namespace
}  // namespace ablate::process
