// Nothing is written where others may have put a link.
#include "process/private_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/test_folder.h"

namespace ablate::process {
namespace {

using ::testing::HasSubstr;

TEST(OpenLogTest, AppendsToAFileOfItsOwn) {
  const TestFolder folder;
  const std::string log = folder.Write("log", "one ");
  const auto file = OpenLog(log);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(write(*file, "two", 3), 3);
  close(*file);
  EXPECT_EQ(ReadText(log), "one two");
}

TEST(OpenLogTest, MakesAFileThatOnlyItsOwnerReads) {
  const TestFolder folder;
  const auto file = OpenLog(folder / "log");
  ASSERT_TRUE(file.ok()) << file.status();
  close(*file);
  struct stat info;
  ASSERT_EQ(stat((folder / "log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(OpenLogTest, RefusesALinkAndLeavesItsTargetAlone) {
  const TestFolder folder;
  const std::string target = folder.Write("target", "precious");
  std::filesystem::create_symlink(target, folder / "log");
  const auto file = OpenLog(folder / "log");
  ASSERT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("is a link"));
  EXPECT_EQ(ReadText(target), "precious");
}

TEST(OpenLogTest, RefusesWhatIsNoFile) {
  const TestFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "folder");
  EXPECT_FALSE(OpenLog(folder / "pipe").ok());
  EXPECT_FALSE(OpenLog(folder / "folder").ok());
}

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
