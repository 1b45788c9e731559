// Tests that programs are stopped, and that nothing is left of them.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "server/program/processes.h"
#include "tests/program/run_fixture.h"

namespace ablate::program {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

int OpenDescriptors() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// Keeps a named pipe open in a process of this script: a reader sees its end when all are gone.
class Lifeline {
 public:
  explicit Lifeline(const std::string& path) {
    mkfifo(path.c_str(), 0600);
    end_ = process::FileDescriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  // Returns true if no process has it open for writing any more.
  bool Cut() const {
    char byte = 0;
    ssize_t size = 0;
    while ((size = read(end_.get(), &byte, 1)) > 0) {
    }
    return size == 0;
  }

 private:
  process::FileDescriptor end_;
};

TEST_F(RunTest, SendsSigtermToTheProgram) {
  const auto run =
      Start(Shell("trap 'echo saving; exit 0' TERM; echo ready; while true; do sleep 0.01; done"));
  AwaitLog(run.get(), "ready");
  run->Terminate(kTestDeadline);
  const Output output = AwaitEnd(run.get());
  EXPECT_THAT(output.log, HasSubstr("saving"));
  EXPECT_TRUE(output.ended->ok());
  EXPECT_TRUE(output.ended->stopped);
}

TEST_F(RunTest, SendsSigtermToTheCommandsOfAShell) {
  folder_.Script("work/inner.sh",
                 "trap 'echo saving; exit 0' TERM\necho ready\nwhile true; do sleep 0.01; done");
  const auto run = Start(Shell("trap : TERM; sh -c './inner.sh; true'; exit 5"));
  AwaitLog(run.get(), "ready");
  run->Terminate(kTestDeadline);
  const Output output = AwaitEnd(run.get());
  EXPECT_EQ(output.ended->exit_code, 5) << output.log;
}

TEST_F(RunTest, KillsAProgramThatIgnoresSigterm) {
  const auto run = Start(Shell("trap '' TERM; echo ready; while true; do sleep 0.01; done"));
  AwaitLog(run.get(), "ready");
  run->Terminate(absl::Milliseconds(50));
  const Output output = AwaitEnd(run.get());
  EXPECT_EQ(output.ended->signal, "SIGKILL");
  EXPECT_EQ(output.ended->reason, "killed 50ms after SIGTERM");
  EXPECT_TRUE(output.ended->stopped);
}

TEST_F(RunTest, TerminatesAProgramThatHasJustBeenStarted) {
  for (const bool sandboxed : {true, false}) {
    Request request = Command({"sleep", "1000"});
    request.sandboxed = sandboxed;
    const auto run = Start(request);
    run->Terminate(kTestDeadline);
    const Output output = AwaitEnd(run.get());
    EXPECT_TRUE(output.ended->stopped);
    EXPECT_THAT(output.ended->reason, ::testing::StartsWith("killed"));
    EXPECT_THAT(output.ended->reason, ::testing::Not(HasSubstr("after")));
  }
}

TEST_F(RunTest, KillsAtOnce) {
  const auto run = Start(Shell("trap '' TERM; echo ready; sleep 1000"));
  AwaitLog(run.get(), "ready");
  run->Kill();
  const Output output = AwaitEnd(run.get());
  EXPECT_EQ(output.ended->reason, "killed");
  EXPECT_TRUE(output.ended->stopped);
}

TEST_F(RunTest, EndsDaemonsWhenTheProgramEnds) {
  for (const bool sandboxed : {true, false}) {
    const Lifeline lifeline(work_ + "/lifeline");
    Request request = Shell(
        "exec 9>lifeline\n"
        "for one in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP; (sleep 1000 &); sleep 1000' & "
        "done\n"
        "sleep 0.01; exit 0");
    request.sandboxed = sandboxed;
    EXPECT_TRUE(RunToEnd(request).ended->ok());
    EXPECT_TRUE(lifeline.Cut()) << "a process is left; sandboxed: " << sandboxed;
    unlink((work_ + "/lifeline").c_str());
  }
}

TEST_F(RunTest, EndsEverythingWhenTheRunIsDestroyed) {
  for (const bool sandboxed : {true, false}) {
    const Lifeline lifeline(work_ + "/lifeline");
    Request request = Shell("exec 9>lifeline; setsid sleep 1000 & echo ready; sleep 1000");
    request.sandboxed = sandboxed;
    {
      const auto run = Start(request);
      AwaitLog(run.get(), "ready");
      EXPECT_FALSE(lifeline.Cut());
    }
    EXPECT_TRUE(lifeline.Cut()) << "a process is left; sandboxed: " << sandboxed;
    unlink((work_ + "/lifeline").c_str());
  }
}

TEST_F(RunTest, KillsTheProgramWhenItsThreadEnds) {
  const Lifeline lifeline(work_ + "/lifeline");
  std::unique_ptr<program::Run> run;
  std::thread([&] {
    run = Start(Shell("exec 9>lifeline; echo ready; sleep 1000"));
    AwaitLog(run.get(), "ready");
  }).join();
  EXPECT_THAT(AwaitEnd(run.get()).ended->reason, HasSubstr("from outside"));
  EXPECT_TRUE(lifeline.Cut());
}

TEST_F(RunTest, LeavesNoDescriptorsAndNoChildren) {
  RunToEnd(Command({"true"}));
  const int before = OpenDescriptors();
  for (const bool sandboxed : {true, false}) {
    Request request = Shell("sleep 1000 & exit 0");
    request.sandboxed = sandboxed;
    RunToEnd(request);
    request.command = {"no-such-command"};
    const absl::StatusOr<Output> failed = program::RunToEnd(request);
    EXPECT_FALSE(failed.ok() && failed->ended->ok());
    request.command = {"sleep", "1000"};
    Start(request);
  }
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_THAT(Children(getpid()), IsEmpty());
}

TEST_F(RunTest, GivesTheProgramOnlyItsDescriptors) {
  const process::FileDescriptor open_file(open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  ASSERT_TRUE(open_file.open());
  for (const bool sandboxed : {true, false}) {
    Request request = Command({"ls", "/proc/self/fd"});
    request.sandboxed = sandboxed;
    EXPECT_EQ(RunToEnd(request).log, "0\n1\n2\n3\n4\n5\n") << "5 is the folder that ls reads";
  }
}

}  // namespace
}  // namespace ablate::program
