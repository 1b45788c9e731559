// Recognising processes, and what is said about their end.
#include "server/launch/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "process/log_file.h"
#include "server/launch/replace_file.h"
#include "tests/test_folder.h"

namespace ablate::launch {
namespace {

siginfo_t Ended(int code, int status) {
  siginfo_t info{};
  info.si_code = code;
  info.si_status = status;
  return info;
}

TEST(PidFileTest, FindsTheProcessItNames) {
  const TestFolder folder;
  const auto self = process::Identify(getpid());
  ASSERT_TRUE(self.has_value());
  ASSERT_TRUE(WritePidFile(folder / "pid", {*self, ""}).ok());
  const auto found = FindByPidFile(folder / "pid");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->pid, getpid());
}

TEST(PidFileTest, IgnoresAProcessThatReusesTheNumber) {
  const TestFolder folder;
  ProcessId other{*process::Identify(getpid()), ""};
  ++other.start_ticks;
  ASSERT_TRUE(WritePidFile(folder / "pid", other).ok());
  EXPECT_FALSE(FindByPidFile(folder / "pid").has_value());
}

TEST(PidFileTest, IgnoresAProcessOfAnotherBoot) {
  const TestFolder folder;
  ProcessId other{*process::Identify(getpid()), ""};
  other.boot = "0";
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

TEST(PidFileTest, SaysWhichFileCannotBeWritten) {
  const absl::Status status =
      WritePidFile("/nowhere/at/all/pid", {*process::Identify(getpid()), ""});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("/nowhere/at/all/pid"));
}

TEST(PidFileTest, KeepsTheCommandsHashBehindTheProcess) {
  const TestFolder folder;
  ProcessId self{*process::Identify(getpid()), ""};
  self.command = "abc";
  ASSERT_TRUE(WritePidFile(folder / "pid", self).ok());
  EXPECT_EQ(FindByPidFile(folder / "pid")->command, "abc");
  pid_t first = 0;
  std::ifstream(folder / "pid") >> first;
  EXPECT_EQ(first, getpid());
}

TEST(CommandHashTest, TellsProgramsAndArgumentsApart) {
  const TestFolder folder;
  WorkerCommand command;
  command.program = folder.Write("worker", "one");
  command.arguments = {"a", "b"};
  const std::string hash = CommandHash(command);
  EXPECT_EQ(CommandHash(command), hash);
  command.log_file = "another";
  EXPECT_EQ(CommandHash(command), hash);
  command.arguments = {"a b"};
  EXPECT_NE(CommandHash(command), hash);
  command.arguments = {"a", "b"};
  std::filesystem::rename(folder.Write("upgrade", "two"), command.program);
  EXPECT_NE(CommandHash(command), hash) << "another file at the same path";
}

TEST(ReplaceFileTest, SaysWhyAFileCannotBeWritten) {
  EXPECT_FALSE(ReplaceFile("/dev/full/file", "x").ok());
  const TestFolder folder;
  std::filesystem::create_directory(folder / "file");
  EXPECT_FALSE(ReplaceFile(folder / "file", "x").ok());
}

TEST(DescribeExitTest, CountsCrashesAndExitCodesAsItsOwn) {
  const ChildExit code = DescribeExit("w", Ended(CLD_EXITED, 4), "out of luck");
  EXPECT_EQ(code.worker, "w");
  EXPECT_TRUE(code.by_itself);
  EXPECT_EQ(code.last_words, "exit code 4: out of luck");
  const ChildExit crash = DescribeExit("w", Ended(CLD_DUMPED, SIGSEGV), "");
  EXPECT_TRUE(crash.by_itself);
  EXPECT_EQ(crash.last_words, "killed by SIGSEGV");
}

TEST(DescribeExitTest, BlamesNobodyForBeingKilledOrLeaving) {
  EXPECT_FALSE(DescribeExit("w", Ended(CLD_EXITED, 0), "").by_itself);
  EXPECT_FALSE(DescribeExit("w", Ended(CLD_KILLED, SIGKILL), "").by_itself);
  EXPECT_FALSE(DescribeExit("w", Ended(CLD_KILLED, SIGTERM), "").by_itself);
}

TEST(LastLineTest, TakesTheLastLineThatSaysSomething) {
  const TestFolder folder;
  EXPECT_EQ(LastLine(folder.Write("log", "first\nsecond\n\n  \n"), 0), "second");
  EXPECT_EQ(LastLine(folder.Write("unfinished", "first\nsecond"), 0), "second");
}

TEST(LastLineTest, LeavesOutWhatAnEarlierProcessWrote) {
  const TestFolder folder;
  const std::string log = folder.Write("log", "old\n");
  EXPECT_EQ(LastLine(log, process::FileSize(log)), "");
  EXPECT_EQ(LastLine(folder / "missing", 0), "");
}

TEST(LastLineTest, CutsALongLine) {
  const TestFolder folder;
  EXPECT_EQ(LastLine(folder.Write("log", std::string(100'000, 'x')), 0), std::string(500, 'x'));
}

}  // namespace
}  // namespace ablate::launch
