// Tests that large logs are restarted, and are never opened through a link.
#include "base/log_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/test_folder.h"

namespace ablate::process {
namespace {

using ::testing::HasSubstr;

// Redirects standard error to a file until it is destroyed.
class RedirectedError {
 public:
  explicit RedirectedError(int file) : kept_(dup(STDERR_FILENO)) { dup2(file, STDERR_FILENO); }
  ~RedirectedError() {
    dup2(kept_, STDERR_FILENO);
    close(kept_);
  }

 private:
  const int kept_;
};

bool Say(const std::string& words) {
  return write(STDERR_FILENO, words.data(), words.size()) == static_cast<ssize_t>(words.size());
}

TEST(LogFileTest, KeepsALogOfTheLimitAndRenamesALongerOne) {
  const TestFolder folder;
  const std::string log = folder.Write("log", "12345");
  BoundLog(log, 5);
  EXPECT_EQ(FileSize(log), 5u);
  BoundLog(log, 4);
  EXPECT_FALSE(std::filesystem::exists(log));
  EXPECT_EQ(ReadText(log + ".old"), "12345");
  BoundLog(log, 4);
  EXPECT_EQ(FileSize(log), 0u);
}

TEST(LogFileTest, BoundsItsOwnLogWhileItWrites) {
  const TestFolder folder;
  const std::string log = folder / "log";
  const auto file = OpenLog(log);
  ASSERT_TRUE(file.ok()) << file.status();
  {
    const RedirectedError redirected(file->get());
    for (const char* words : {"first!", "second", "third"}) {
      ASSERT_TRUE(Say(words));
      BoundOwnLog(5);
    }
  }
  EXPECT_EQ(ReadText(log), "third");
  EXPECT_EQ(ReadText(log + ".old"), "second");
}

TEST(LogFileTest, LeavesALogAloneThatIsNotAtItsPlace) {
  const TestFolder folder;
  const auto file = OpenLog(folder / "log");
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::rename(folder / "log", folder / "moved");
  folder.Write("log", "another's");
  {
    const RedirectedError redirected(file->get());
    ASSERT_TRUE(Say("long enough"));
    std::filesystem::remove(folder / "moved");
    BoundOwnLog(5);
  }
  EXPECT_EQ(ReadText(folder / "log"), "another's");
}

TEST(LogFileTest, LeavesAlonePipes) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  {
    const RedirectedError redirected(ends[1]);
    close(ends[1]);
    BoundOwnLog(0);
    ASSERT_TRUE(Say("x"));
  }
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  close(ends[0]);
}

TEST(OpenLogTest, AppendsToAFileOfItsOwn) {
  const TestFolder folder;
  const std::string log = folder.Write("log", "one ");
  const auto file = OpenLog(log);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(write(file->get(), "two", 3), 3);
  EXPECT_EQ(ReadText(log), "one two");
}

TEST(OpenLogTest, MakesAFileThatOnlyItsOwnerReads) {
  const TestFolder folder;
  const auto file = OpenLog(folder / "log");
  ASSERT_TRUE(file.ok()) << file.status();
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

}  // namespace
}  // namespace ablate::process
