// Tests recognising commands, descriptions of a process's end, and waits between restarts.
#include "server/launch/worker_process.h"

#include <gtest/gtest.h>

#include "base/log_file.h"
#include "tests/test_folder.h"

namespace ablate::launch {
namespace {

siginfo_t Ended(int code, int status) {
  siginfo_t info{};
  info.si_code = code;
  info.si_status = status;
  return info;
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
  command.arguments = {"a"};
  command.environment = {"b"};
  EXPECT_NE(CommandHash(command), hash) << "b belongs to another list";
  command.arguments = {"a", "b"};
  command.environment = {"c"};
  EXPECT_NE(CommandHash(command), hash) << "another environment";
  command.environment.clear();
  std::filesystem::rename(folder.Write("upgrade", "two"), command.program);
  EXPECT_NE(CommandHash(command), hash) << "another file at the same path";
}

TEST(DescribeExitTest, TakesCrashesAndExitCodesAsFailuresOfTheWorker) {
  const ChildExit code = DescribeExit("w", Ended(CLD_EXITED, 4), "out of luck");
  EXPECT_EQ(code.worker, "w");
  EXPECT_TRUE(code.by_itself);
  EXPECT_EQ(code.last_words, "exit code 4: out of luck");
  EXPECT_FALSE(code.succeeded);
  const ChildExit crash = DescribeExit("w", Ended(CLD_DUMPED, SIGSEGV), "");
  EXPECT_TRUE(crash.by_itself);
  EXPECT_EQ(crash.last_words, "killed by SIGSEGV");
}

TEST(DescribeExitTest, TellsADeviceThatCannotBeUsed) {
  const ChildExit exit = DescribeExit("w", Ended(CLD_EXITED, kDeviceUnusableExit), "no driver");
  EXPECT_TRUE(exit.device_unusable);
  EXPECT_FALSE(exit.drained);
  EXPECT_EQ(exit.last_words, "exit code 7: no driver");
  EXPECT_FALSE(exit.device_lost);
  const ChildExit lost = DescribeExit("w", Ended(CLD_EXITED, kDeviceLostExit), "");
  EXPECT_TRUE(lost.device_lost);
  EXPECT_FALSE(lost.device_unusable);
  EXPECT_FALSE(DescribeExit("w", Ended(CLD_KILLED, kDeviceUnusableExit), "").device_unusable)
      << "a signal of that number";
}

TEST(DescribeExitTest, DoesNotTakeKillsAndNormalExitsAsFailures) {
  EXPECT_FALSE(DescribeExit("w", Ended(CLD_EXITED, 0), "").by_itself);
  EXPECT_TRUE(DescribeExit("w", Ended(CLD_EXITED, 0), "").succeeded);
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

TEST(RestartDelayTest, BeginsShortAndDoubles) {
  absl::Duration delay = RestartDelay(absl::ZeroDuration(), absl::ZeroDuration());
  EXPECT_EQ(delay, absl::Milliseconds(100));
  delay = RestartDelay(delay, absl::Seconds(1));
  EXPECT_EQ(delay, absl::Milliseconds(200));
  delay = RestartDelay(delay, absl::Seconds(59));
  EXPECT_EQ(delay, absl::Milliseconds(400));
}

TEST(RestartDelayTest, StopsGrowingAtHalfAMinute) {
  EXPECT_EQ(RestartDelay(absl::Seconds(20), absl::ZeroDuration()), absl::Seconds(30));
  EXPECT_EQ(RestartDelay(absl::Seconds(30), absl::ZeroDuration()), absl::Seconds(30));
}

TEST(RestartDelayTest, StartsOverAfterAHealthyMinute) {
  EXPECT_EQ(RestartDelay(absl::Seconds(30), absl::Minutes(1)), absl::Milliseconds(100));
}

class DeviceFailuresTest : public testing::Test {
 protected:
  // Returns the count after a process has ended with this code.
  int End(int code, absl::Duration lived = absl::Seconds(30)) {
    const ChildExit exit = DescribeExit("w", Ended(CLD_EXITED, code), "");
    failures_ = CountDeviceFailures(failures_, exit, on_gpu_, lived);
    drained_ = IsDrained(failures_, exit);
    return failures_;
  }

  bool on_gpu_ = true;
  int failures_ = 0;
  bool drained_ = false;
};

TEST_F(DeviceFailuresTest, CountsLossesAndFailedProbesTogether) {
  EXPECT_EQ(End(kDeviceLostExit), 1);
  EXPECT_EQ(End(kDeviceUnusableExit), 2);
  EXPECT_EQ(End(kDeviceLostExit, kProvenLife - absl::Seconds(1)), 3);
  EXPECT_FALSE(drained_) << "it may be a run that ends each worker";
  EXPECT_EQ(End(kDeviceLostExit), 4);
  EXPECT_TRUE(drained_);
  EXPECT_EQ(End(kDeviceUnusableExit), 5);
  EXPECT_TRUE(drained_) << "the first start after ten minutes";
}

TEST_F(DeviceFailuresTest, CountsHangsOfAGpu) {
  const auto hang = [&](absl::Duration lived) {
    ChildExit exit;
    exit.hung = true;
    failures_ = CountDeviceFailures(failures_, exit, on_gpu_, lived);
    return failures_;
  };
  EXPECT_EQ(hang(absl::Hours(1)), 1);
  EXPECT_EQ(hang(absl::Minutes(11)), 2) << "ten of them were the hang";
  EXPECT_EQ(End(kDeviceLostExit), 3);
  EXPECT_EQ(hang(absl::Minutes(19)), 4);
  on_gpu_ = false;
  EXPECT_EQ(hang(absl::Minutes(11)), 0);
}

TEST_F(DeviceFailuresTest, AFailedProbeDrainsADeviceSooner) {
  End(kDeviceLostExit);
  End(kDeviceLostExit);
  End(kDeviceUnusableExit);
  EXPECT_TRUE(drained_);
}

TEST_F(DeviceFailuresTest, StartsOverIfTheDeviceWorkedInBetween) {
  End(kDeviceLostExit);
  End(kDeviceLostExit);
  EXPECT_EQ(End(kDeviceLostExit, kProvenLife), 1) << "one loss in a long time";
  End(kDeviceLostExit);
  EXPECT_EQ(End(0), 0);
  End(kDeviceLostExit);
  EXPECT_EQ(End(5), 0) << "the server refused a worker whose probe succeeded";
}

TEST_F(DeviceFailuresTest, CountsNoLossOfTheCores) {
  on_gpu_ = false;
  EXPECT_EQ(End(kDeviceLostExit), 0);
  EXPECT_EQ(End(kDeviceUnusableExit), 1);
}

}  // namespace
}  // namespace ablate::launch
