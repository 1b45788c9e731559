// Tests supervision of processes, with small shell scripts as workers.
#include "server/launch/local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/log_file.h"
#include "base/mutex.h"
#include "base/process_id.h"
#include "server/launch/worker_process.h"
#include "tests/test_folder.h"

namespace ablate::launch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Polls other processes until the condition holds; returns false after far too long.
template <typename Condition>
bool Eventually(Condition holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    // Other processes can only be polled; sleep to leave the core to them.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

int Lines(const std::string& file) {
  const std::string text = ReadText(file);
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

class LocalWorkersTest : public testing::Test {
 protected:
  WorkerCommand Command(const std::string& body) {
    WorkerCommand command;
    command.name = "w";
    command.program = folder_.Script("worker", body);
    command.log_file = folder_ / "log";
    command.pid_file = folder_ / "pid";
    return command;
  }

  // Returns a second command.
  WorkerCommand Second(const std::string& body) {
    WorkerCommand command;
    command.name = "second";
    command.program = folder_.Script("second", body);
    command.log_file = folder_ / "log2";
    command.pid_file = folder_ / "pid2";
    return command;
  }

  std::unique_ptr<LocalWorkers> Start(const WorkerCommand& command) { return StartAll({command}); }
  std::unique_ptr<LocalWorkers> StartAll(std::vector<WorkerCommand> commands) {
    ChildEvents events;
    events.on_start = [this](const ChildStart& start) {
      MutexLock lock(&mutex_);
      starts_.push_back(start);
      changed_.SignalAll();
    };
    events.on_exit = [this](const ChildExit& exit) {
      MutexLock lock(&mutex_);
      exits_.push_back(exit);
      changed_.SignalAll();
    };
    auto workers = LocalWorkers::Start(std::move(commands), std::move(events));
    EXPECT_TRUE(workers.ok()) << workers.status();
    return workers.ok() ? *std::move(workers) : nullptr;
  }

  std::vector<ChildExit> WaitForExits(size_t count) {
    MutexLock lock(&mutex_);
    while (exits_.size() < count && changed_.WaitFor(&mutex_, std::chrono::seconds(30))) {
    }
    return exits_;
  }

  std::vector<ChildStart> WaitForStarts(size_t count) {
    MutexLock lock(&mutex_);
    while (starts_.size() < count && changed_.WaitFor(&mutex_, std::chrono::seconds(30))) {
    }
    return starts_;
  }

  pid_t Pid() {
    const auto found = process::FindByPidFile(folder_ / "pid");
    return found ? found->process.pid : 0;
  }

  TestFolder folder_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<ChildStart> starts_;
  std::vector<ChildExit> exits_;
};

constexpr char kRunUntilTold[] = "echo up\nexec sleep 1000\n";

TEST_F(LocalWorkersTest, StartsAProgramDetachedFromTheServer) {
  WorkerCommand command = Command("echo \"$1 $OMP_NUM_THREADS\"\nexec sleep 1000\n");
  command.arguments = {"--flag"};
  unsetenv("OMP_NUM_THREADS");
  const auto workers = Start(command);
  ASSERT_TRUE(Eventually([&] { return Lines(folder_ / "log") == 1; }));
  EXPECT_EQ(ReadText(folder_ / "log"), "--flag 1\n");
  ASSERT_GT(Pid(), 0);
  EXPECT_EQ(getsid(Pid()), Pid());
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, ReportsAndRestartsAProgramThatEnds) {
  const auto workers = Start(Command("echo ' the reason '\nexit 5\n"));
  const auto exits = WaitForExits(3);
  ASSERT_GE(exits.size(), 3u);
  for (const ChildExit& exit : exits) {
    EXPECT_EQ(exit.worker, "w");
    EXPECT_TRUE(exit.by_itself);
    EXPECT_EQ(exit.last_words, "exit code 5: the reason");
  }
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, RestartsTheOneThatCrashesAndLeavesTheOtherAlone) {
  const WorkerCommand steady = Command(kRunUntilTold);
  const auto workers = StartAll({steady, Second("kill -SEGV $$\n")});
  ASSERT_TRUE(Eventually([&] { return Lines(folder_ / "log") == 1; }));
  const pid_t pid = Pid();
  for (const ChildExit& exit : WaitForExits(3)) EXPECT_EQ(exit.worker, "second");
  EXPECT_EQ(Pid(), pid);
  EXPECT_EQ(Lines(folder_ / "log"), 1) << "it was started once";
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, SaysNothingOfAProgramWhoseDeviceIsTaken) {
  const auto workers =
      Start(Command("echo once >> \"$0.starts\"\n"
                    "[ $(wc -l < \"$0.starts\") -lt 3 ] && exit 3\nexit 1\n"));
  const auto exits = WaitForExits(1);
  ASSERT_GE(exits.size(), 1u);
  EXPECT_EQ(exits[0].last_words, "exit code 1") << "the third start";
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, GivesAProgramItsEnvironment) {
  WorkerCommand command = Command("echo \"$CUDA_VISIBLE_DEVICES\"\nexec sleep 1000\n");
  command.environment = {"CUDA_VISIBLE_DEVICES=GPU-a"};
  setenv("CUDA_VISIBLE_DEVICES", "1,2", 1);
  const auto workers = Start(command);
  ASSERT_TRUE(Eventually([&] { return Lines(folder_ / "log") == 1; }));
  EXPECT_EQ(ReadText(folder_ / "log"), "GPU-a\n");
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, DrainsADeviceThatFailsThreeTimesInARow) {
  const auto workers = StartAll({Command("echo 'no driver'\nexit 7\n"), Second("exit 5\n")});
  // The second goes on being restarted, and the first does not.
  std::vector<ChildExit> first;
  for (const ChildExit& exit : WaitForExits(8)) {
    if (exit.worker == "w") first.push_back(exit);
  }
  ASSERT_EQ(first.size(), 3u);
  EXPECT_FALSE(first[0].drained || first[1].drained);
  EXPECT_TRUE(first[2].drained);
  EXPECT_EQ(first[2].last_words, "exit code 7: no driver");
  workers->Stop(absl::Seconds(10));
}

// As if the training of its runs ended it, and then its probe.
TEST_F(LocalWorkersTest, DrainsAGpuThatIsLostAgainAndAgain) {
  WorkerCommand gpu = Command(
      "echo once >> \"$0.starts\"\necho 'the device is lost'\n"
      "[ $(wc -l < \"$0.starts\") -eq 2 ] && exit 7\nexit 4\n");
  gpu.on_gpu = true;
  const auto workers = StartAll({gpu, Second("exit 4\n")});
  std::vector<ChildExit> first;
  for (const ChildExit& exit : WaitForExits(9)) {
    if (exit.worker == "w") {
      first.push_back(exit);
    } else {
      EXPECT_FALSE(exit.drained) << "it is on the cores";
    }
  }
  ASSERT_EQ(first.size(), 4u);
  EXPECT_FALSE(first[1].drained || first[2].drained);
  EXPECT_TRUE(first[3].drained);
  EXPECT_EQ(first[3].last_words, "exit code 4: the device is lost");
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, DoesNotDrainADeviceThatWorkedInBetween) {
  const auto workers =
      Start(Command("echo once >> \"$0.starts\"\n"
                    "[ $(wc -l < \"$0.starts\") -eq 3 ] && exit 5\nexit 7\n"));
  for (const ChildExit& exit : WaitForExits(5)) EXPECT_FALSE(exit.drained);
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, TellsACrashFromBeingKilled) {
  const auto workers =
      Start(Command("echo went\nif [ -e \"$0.second\" ]; then kill -KILL $$; fi\n"
                    "touch \"$0.second\"\nkill -SEGV $$\n"));
  const auto exits = WaitForExits(2);
  ASSERT_GE(exits.size(), 2u);
  EXPECT_TRUE(exits[0].by_itself);
  EXPECT_EQ(exits[0].last_words, "killed by SIGSEGV: went");
  EXPECT_FALSE(exits[1].by_itself);
  EXPECT_EQ(exits[1].last_words, "killed by SIGKILL");
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, KillsAndReplacesAProcessThatHangs) {
  const auto workers = Start(Command(kRunUntilTold));
  const ChildStart first = WaitForStarts(1).at(0);
  EXPECT_EQ(first.worker, "w");
  EXPECT_EQ(first.pid, Pid());
  ASSERT_EQ(kill(Pid(), SIGSTOP), 0);
  workers->Kill("w", first.pid, "it hung");
  const auto exits = WaitForExits(1);
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_FALSE(exits[0].by_itself);
  EXPECT_THAT(exits[0].last_words, StartsWith("it hung; killed by SIGKILL"));
  const auto starts = WaitForStarts(2);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_NE(starts[1].pid, first.pid);
  // Too late, and about another process.
  workers->Kill("w", first.pid, "it hung");
  workers->Kill("second", starts[1].pid, "it hung");
  workers->Stop(absl::Seconds(30));
  ASSERT_EQ(WaitForExits(2).size(), 2u);
  EXPECT_THAT(WaitForExits(2)[1].last_words, StartsWith("killed by SIGTERM"));
}

TEST_F(LocalWorkersTest, AnotherServerAdoptsWhatWasLeftRunning) {
  const WorkerCommand command = Command(kRunUntilTold);
  Start(command).reset();
  const pid_t pid = Pid();
  ASSERT_GT(pid, 0);
  const auto workers = Start(command);
  EXPECT_EQ(Pid(), pid);
  EXPECT_EQ(WaitForStarts(2).at(1).pid, pid);
  ASSERT_TRUE(Eventually([&] { return Lines(folder_ / "log") >= 1; }));
  EXPECT_EQ(Lines(folder_ / "log"), 1) << "a second process was started";
  workers->Stop(absl::Seconds(10));
  EXPECT_FALSE(process::Identify(pid).has_value());
}

TEST_F(LocalWorkersTest, ReplacesWhatWasStartedWithOtherArguments) {
  WorkerCommand command =
      Command("trap 'echo saved; exit 0' TERM\necho \"up $1\"\nwhile true; do sleep .01; done\n");
  command.arguments = {"--lanes=2"};
  Start(command).reset();
  ASSERT_TRUE(Eventually([&] { return Lines(folder_ / "log") == 1; }));
  command.arguments = {"--lanes=8"};
  const auto workers = Start(command);
  ASSERT_TRUE(Eventually([&] { return Lines(folder_ / "log") == 3; }));
  EXPECT_EQ(ReadText(folder_ / "log"), "up --lanes=2\nsaved\nup --lanes=8\n");
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, SupervisesAProgramWhosePidFileCannotBeWritten) {
  WorkerCommand command = Command("exit 5\n");
  command.pid_file = folder_ / "missing/pid";
  const auto workers = Start(command);
  ASSERT_NE(workers, nullptr);
  EXPECT_EQ(WaitForExits(2).size(), 2u);
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, EndsWhatNoCommandWouldAdopt) {
  WorkerCommand kept = Command(kRunUntilTold), left = Second(kRunUntilTold);
  kept.pid_file = folder_ / "cuda-0-train.pid";
  left.pid_file = folder_ / "cuda-1-train.pid";
  WorkerCommand other = Second(kRunUntilTold);
  other.pid_file = folder_ / "cpu-train.pid";
  StartAll({kept, left, other});  // leaves them running
  EndLeftovers(folder_.path(), "cuda-", {kept});
  ASSERT_TRUE(Eventually([&] { return !process::FindByPidFile(left.pid_file).has_value(); }));
  for (const WorkerCommand& running : {kept, other}) {
    const auto found = process::FindByPidFile(running.pid_file);
    ASSERT_TRUE(found.has_value());
    kill(found->process.pid, SIGKILL);
  }
  for (const ChildStart& start : starts_) waitpid(static_cast<pid_t>(start.pid), nullptr, 0);
}

TEST_F(LocalWorkersTest, LeavesAFolderAloneThatAnotherTook) {
  const std::string run = folder_ / "run";
  const std::string other = folder_ / "other";
  std::filesystem::create_directories(run);
  std::filesystem::create_directories(other);
  WorkerCommand command = Command("echo up\nexec sleep 1000\n");
  command.pid_file = run + "/pid";
  WorkerCommand second = Second("echo up\nexec sleep 1000\n");
  second.pid_file = other + "/pid";
  const auto workers = StartAll({command, second});
  const std::vector<ChildStart> first = WaitForStarts(2);
  ASSERT_EQ(first.size(), 2u);
  std::filesystem::remove_all(run);
  std::filesystem::create_directories(run);
  const process::PidFile theirs{*process::Identify(getpid()), "theirs"};
  ASSERT_TRUE(process::WritePidFile(command.pid_file, theirs).ok());
  ASSERT_EQ(kill(static_cast<pid_t>(first[0].pid), SIGKILL), 0);
  WaitForExits(1);
  ASSERT_EQ(kill(static_cast<pid_t>(first[1].pid), SIGKILL), 0);
  // The second is started again after the first would have been.
  const std::vector<ChildStart> starts = WaitForStarts(3);
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[2].worker, "second");
  EXPECT_EQ(process::FindByPidFile(command.pid_file)->command, "theirs");
  workers->Stop(absl::Seconds(10));
  EXPECT_EQ(process::FindByPidFile(command.pid_file)->command, "theirs");
}

TEST_F(LocalWorkersTest, StartsALogThatGrewLargeAnew) {
  const WorkerCommand command = Command(kRunUntilTold);
  folder_.Write("log", "");
  std::filesystem::resize_file(folder_ / "log", process::kMaxLogBytes + 1);
  const auto workers = Start(command);
  ASSERT_TRUE(Eventually([&] { return Lines(folder_ / "log") == 1; }));
  EXPECT_EQ(process::FileSize(folder_ / "log.old"), process::kMaxLogBytes + 1);
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, DoesNotTouchAProcessThatReusesTheNumber) {
  process::PidFile self{*process::Identify(getpid()), ""};
  ++self.process.start_ticks;
  ASSERT_TRUE(process::WritePidFile(folder_ / "pid", self).ok());
  const auto workers = Start(Command(kRunUntilTold));
  EXPECT_GT(Pid(), 0);
  EXPECT_NE(Pid(), getpid());
  workers->Stop(absl::Seconds(10));
}

// The process of an earlier server isn't our child: its parent has ended.
TEST_F(LocalWorkersTest, ReplacesAnAdoptedProgramWhoseExitStatusIsUnknown) {
  const WorkerCommand command = Command(kRunUntilTold);
  FILE* const shell = popen((command.program + " > /dev/null & echo $!").c_str(), "r");
  ASSERT_NE(shell, nullptr);
  pid_t pid = 0;
  ASSERT_EQ(fscanf(shell, "%d", &pid), 1);
  pclose(shell);
  const process::PidFile orphan{*process::Identify(pid), CommandHash(command)};
  ASSERT_TRUE(process::WritePidFile(folder_ / "pid", orphan).ok());
  const auto workers = Start(command);
  ASSERT_EQ(Pid(), pid);
  kill(pid, SIGSEGV);
  const auto exits = WaitForExits(1);
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_FALSE(exits[0].by_itself);
  EXPECT_THAT(exits[0].last_words, HasSubstr("exit status is unknown"));
  EXPECT_TRUE(Eventually([&] { return Pid() > 0 && Pid() != pid; }));
  workers->Stop(absl::Seconds(10));
}

TEST_F(LocalWorkersTest, StopLetsAProgramEndInItsOwnWay) {
  const auto workers =
      Start(Command("trap 'echo saved; exit 0' TERM\necho up\nwhile true; do sleep .01; done\n"));
  ASSERT_TRUE(Eventually([&] { return Lines(folder_ / "log") == 1; }));
  workers->Stop(absl::Seconds(30));
  EXPECT_EQ(ReadText(folder_ / "log"), "up\nsaved\n");
  EXPECT_EQ(WaitForExits(1).size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "pid"));
}

TEST_F(LocalWorkersTest, StopKillsAProgramThatDoesNotListen) {
  const auto workers = Start(Command("trap '' TERM\necho up\nwhile true; do sleep .01; done\n"));
  ASSERT_TRUE(Eventually([&] { return Lines(folder_ / "log") == 1; }));
  const pid_t pid = Pid();
  workers->Stop(absl::Milliseconds(50));
  EXPECT_FALSE(process::Identify(pid).has_value());
  const auto exits = WaitForExits(1);
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_THAT(exits[0].last_words, StartsWith("killed by SIGKILL"));
}

TEST_F(LocalWorkersTest, SaysWhichProgramCannotBeStarted) {
  WorkerCommand command = Command("");
  command.program = folder_ / "missing";
  const auto workers =
      LocalWorkers::Start({command}, {[](const ChildStart&) {}, [](const ChildExit&) {}});
  EXPECT_EQ(workers.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(workers.status().message()), HasSubstr(folder_ / "missing"));
}

TEST_F(LocalWorkersTest, TriesAgainWhatCannotBeStartedBesideOneThatWorks) {
  WorkerCommand missing = Second("");
  missing.program = folder_ / "missing";
  const auto workers = StartAll({Command(kRunUntilTold), missing});
  ASSERT_NE(workers, nullptr);
  const std::vector<ChildExit> exits = WaitForExits(1);
  ASSERT_GE(exits.size(), 1u);
  EXPECT_EQ(exits[0].worker, "second");
  EXPECT_FALSE(exits[0].by_itself);
  EXPECT_THAT(exits[0].last_words, HasSubstr(folder_ / "missing"));
  workers->Stop(absl::Seconds(30));
}

}  // namespace
}  // namespace ablate::launch
