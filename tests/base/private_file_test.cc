// Tests secrets on disk: who may read them, and that nothing is overwritten.
#include "base/private_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_format.h"
#include "tests/status_message.h"
#include "tests/test_folder.h"

namespace ablate::process {
namespace {

using testing::HasSubstr;

mode_t Mode(const std::string& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(PrivateFileTest, WritesWhatItReads) {
  const TestFolder folder;
  const std::string content = std::string("a\0b\n", 4);
  ASSERT_TRUE(CreateFile(folder / "secret", content, Readers::kOwner).ok());
  ASSERT_TRUE(CreateFile(folder / "public", "", Readers::kAll).ok());
  EXPECT_EQ(Mode(folder / "secret"), 0600u);
  EXPECT_EQ(Mode(folder / "public") & 0700, 0600u);
  const auto read = ReadBoundedFile(folder / "secret", 4, Readers::kOwner);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, content);
  EXPECT_TRUE(SyncFolder(folder.path()).ok());
}

TEST(PrivateFileTest, NeverOverwrites) {
  const TestFolder folder;
  folder.Write("file", "old");
  EXPECT_EQ(CreateFile(folder / "file", "new", Readers::kOwner).code(),
            absl::StatusCode::kAlreadyExists);
  std::filesystem::create_symlink(folder / "target", folder / "link");
  EXPECT_EQ(CreateFile(folder / "link", "new", Readers::kOwner).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadText(folder / "file"), "old");
}

TEST(PrivateFileTest, RefusesWhatOthersMayReadAndNamesTheMode) {
  const TestFolder folder;
  const std::string file = folder.Write("secret", "x");
  for (const mode_t mode : {0640, 0604, 0620, 0610, 0644, 0666}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    const auto read = ReadBoundedFile(file, 10, Readers::kOwner);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(read.status()), HasSubstr(absl::StrFormat("mode %04o", mode)));
    EXPECT_THAT(Message(read.status()), HasSubstr("chmod 600 " + file));
  }
  EXPECT_TRUE(ReadBoundedFile(file, 10, Readers::kAll).ok());
  ASSERT_EQ(chmod(file.c_str(), 0400), 0);
  EXPECT_TRUE(ReadBoundedFile(file, 10, Readers::kOwner).ok());
}

TEST(PrivateFileTest, RefusesWhatIsNoSmallRegularFile) {
  const TestFolder folder;
  const std::string file = folder.Write("big", "12345");
  EXPECT_THAT(Message(ReadBoundedFile(file, 4, Readers::kAll).status()),
              HasSubstr("5 bytes, at most 4"));
  EXPECT_THAT(Message(ReadBoundedFile(folder.path(), 4, Readers::kAll).status()),
              HasSubstr("not a regular file"));
  // Nobody ever writes into it.
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(Message(ReadBoundedFile(folder / "pipe", 4, Readers::kAll).status()),
              HasSubstr("not a regular file"));
  EXPECT_EQ(ReadBoundedFile(folder / "none", 4, Readers::kAll).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ablate::process
