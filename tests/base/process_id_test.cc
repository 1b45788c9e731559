// Tests that processes with one pid are distinguished, also by their pid files.
#include "base/process_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "tests/test_folder.h"

namespace ablate::process {
namespace {

TEST(ProcessIdTest, ReadsBackTheLineItWrites) {
  const auto self = Identify(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_EQ(FromLine(ToLine(*self)), self);
  EXPECT_EQ(FromLine(ToLine(*self) + "\nmore\n"), self);
  EXPECT_EQ(self->boot, BootId());
}

TEST(ProcessIdTest, DiffersByStartAndBoot) {
  const ProcessId self = *Identify(getpid());
  ProcessId earlier = self;
  --earlier.start_ticks;
  ProcessId before_boot = self;
  before_boot.boot = "another";
  EXPECT_NE(earlier, self);
  EXPECT_NE(before_boot, self);
}

TEST(ProcessIdTest, KnowsNoProcessThatHasEnded) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_GT(child, 0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(Identify(child).has_value()) << "a zombie";
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(Identify(child).has_value());
  EXPECT_FALSE(Identify(0).has_value());
  EXPECT_FALSE(Identify(-1).has_value());
}

TEST(ProcessIdTest, RefusesLinesThatNameNoProcess) {
  for (const char* line : {"", "0", "17", "17 5", "17 5 ", "0 5 boot", "-1 5 boot", "x 5 boot",
                           "17 y boot", "17 5 boot more", "99999999999 5 boot", "\n17 5 boot"}) {
    EXPECT_FALSE(FromLine(line).has_value()) << line;
  }
}

TEST(PidFileTest, FindsTheProcessItNames) {
  const TestFolder folder;
  const auto self = Identify(getpid());
  ASSERT_TRUE(self.has_value());
  ASSERT_TRUE(WritePidFile(folder / "pid", {*self, ""}).ok());
  const auto found = FindByPidFile(folder / "pid");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->process.pid, getpid());
}

TEST(PidFileTest, IgnoresAProcessThatReusesTheNumber) {
  const TestFolder folder;
  PidFile other{*Identify(getpid()), ""};
  ++other.process.start_ticks;
  ASSERT_TRUE(WritePidFile(folder / "pid", other).ok());
  EXPECT_FALSE(FindByPidFile(folder / "pid").has_value());
}

TEST(PidFileTest, IgnoresAProcessOfAnotherBoot) {
  const TestFolder folder;
  PidFile other{*Identify(getpid()), ""};
  other.process.boot = "0";
  ASSERT_TRUE(WritePidFile(folder / "pid", other).ok());
  EXPECT_FALSE(FindByPidFile(folder / "pid").has_value());
}

TEST(PidFileTest, IgnoresAFileWithoutAProcess) {
  const TestFolder folder;
  EXPECT_FALSE(FindByPidFile(folder / "missing").has_value());
  EXPECT_FALSE(FindByPidFile(folder.Write("empty", "")).has_value());
  EXPECT_FALSE(FindByPidFile(folder.Write("words", "not a number")).has_value());
  EXPECT_FALSE(FindByPidFile(folder.Write("negative", "-1 5 boot")).has_value());
}

TEST(PidFileTest, NamesNoProcessOnceItsFolderWasCopied) {
  const TestFolder folder;
  const std::string home = folder / "home", moved = folder / "moved";
  std::filesystem::create_directory(home);
  ASSERT_TRUE(WritePidFile(home + "/pid", {*Identify(getpid()), "abc"}).ok());
  std::filesystem::copy(home, folder / "copy");
  EXPECT_FALSE(FindByPidFile(folder / "copy/pid").has_value());
  std::filesystem::rename(home, moved);
  const auto found = FindByPidFile(moved + "/pid");
  ASSERT_TRUE(found.has_value()) << "the process still has the folder that it had";
  EXPECT_EQ(found->command, "abc");
}

TEST(PidFileTest, IsRemovedOnlyWithItsProcess) {
  const TestFolder folder;
  ASSERT_TRUE(WritePidFile(folder / "pid", {*Identify(getpid()), ""}).ok());
  RemovePidFile(folder / "pid", getpid() + 1);
  EXPECT_TRUE(FindByPidFile(folder / "pid").has_value());
  RemovePidFile(folder / "pid", getpid());
  EXPECT_EQ(ReadWholeFile(folder / "pid"), "");
}

TEST(PidFileTest, SaysWhichFileCannotBeWritten) {
  const absl::Status status = WritePidFile("/nowhere/at/all/pid", {*Identify(getpid()), ""});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("/nowhere/at/all/pid"));
}

TEST(PidFileTest, KeepsTheCommandsHashBehindTheProcess) {
  const TestFolder folder;
  PidFile self{*Identify(getpid()), ""};
  self.command = "abc";
  ASSERT_TRUE(WritePidFile(folder / "pid", self).ok());
  EXPECT_EQ(FindByPidFile(folder / "pid")->command, "abc");
  pid_t first = 0;
  std::ifstream(folder / "pid") >> first;
  EXPECT_EQ(first, getpid());
}

TEST(ReplaceFileTest, SaysWhyAFileCannotBeWritten) {
  EXPECT_FALSE(ReplaceFile("/dev/full/file", "x").ok());
  const TestFolder folder;
  std::filesystem::create_directory(folder / "file");
  EXPECT_FALSE(ReplaceFile(folder / "file", "x").ok());
}

}  // namespace
}  // namespace ablate::process
