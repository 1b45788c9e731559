// Tests `ablate up` and `down` with programs that only pretend to be the server.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/log_file.h"
#include "base/private_folder.h"
#include "base/process_id.h"
#include "client/context.h"
#include "client/personal_server.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

extern char** environ;

namespace ablate::client {
namespace {

using ::testing::HasSubstr;

class UpDownTest : public ClientTest {
 protected:
  UpDownTest() {
    real_clock_ = true;
    home_ = environment_["ABLATE_HOME"];
    for (const char* folder : {"", "/log", "/run"}) {
      EXPECT_TRUE(process::MakePrivateFolder(home_ + folder).ok());
    }
    answers_.workers = [](const v1::ListWorkersRequest&, v1::ListWorkersResponse* response) {
      response->add_workers()->set_name("workers/cpu-train");
      return absl::OkStatus();
    };
  }

  ~UpDownTest() override {
    for (const pid_t pid : started_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  // A program called `ablated` on the PATH that does what a shell script says.
  void PretendServer(const std::string& script) {
    const std::string path = Write("bin/ablated", "#!/bin/sh\n" + script);
    chmod(path.c_str(), 0755);
    environment_["PATH"] = folder_ + "/bin";
  }

  void WritePid(const process::ProcessId& server) {
    Write("home/run/ablated.pid", "");
    EXPECT_TRUE(process::WritePidFile(home_ + "/run/ablated.pid", {server, ""}).ok());
  }

  // A process that sleeps, named by the home's pid file.
  pid_t StartSleeper(std::string seconds = "1000") {
    const std::string program = folder_ + "/ablated";
    std::filesystem::copy_file("/bin/sleep", program);
    char* arguments[] = {const_cast<char*>(program.c_str()), seconds.data(), nullptr};
    pid_t pid = 0;
    EXPECT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environ), 0);
    started_.push_back(pid);
    const auto started = process::Identify(pid);
    if (started) WritePid(*started);
    return pid;
  }

  std::string home_;
  std::vector<pid_t> started_;
};

TEST_F(UpDownTest, StartsAServerAndWaitsUntilItAnswers) {
  server_ = std::make_unique<FakeServer>(home_ + "/run/ablate.sock", &answers_);
  PretendServer(absl::StrCat("echo \"$@\" > ", folder_, "/arguments\n", "echo $$ > ", folder_,
                             "/pid\n", "/bin/mkdir -p $2/run; echo hello; echo ",
                             server_->address(), " > $2/run/address\n", "exec /bin/sleep 1000\n"));
  const Outcome outcome = Run({"up", "--lanes", "2", "--devices", "cuda:0", "--gpu-lanes", "8",
                               "--resume-every", "5", "--programs", "sandboxed", "--environment",
                               "a=/bin/sleep", "--environment", "b=/bin/sh:/tmp"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.err, "up: " + home_ + "\n");
  EXPECT_EQ(Read(folder_ + "/arguments"),
            "--home " + home_ +
                " --lanes 2 --devices cuda:0 --gpu-lanes 8 --resume-every 5 "
                "--programs sandboxed --environment a=/bin/sleep --environment b=/bin/sh:/tmp\n");
  EXPECT_EQ(Read(home_ + "/log/ablated.log"), "hello\n");
  const pid_t pid = std::stoi(Read(folder_ + "/pid"));
  started_.push_back(pid);
  EXPECT_EQ(getsid(pid), pid);
  struct stat status {};
  ASSERT_EQ(stat(home_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(UpDownTest, StartsNothingWhenAnEnvironmentsPathIsWrong) {
  EXPECT_EQ(
      Run({"up", "--environment", "a=/no/python"}).err,
      "error: --environment a=/no/python: /no/python isn't a program that can be run; expected "
      "the path of a Python interpreter on this machine\n");
  EXPECT_EQ(Run({"up", "--environment", "a=/bin/sh:/no/data"}).err,
            "error: --environment a=/bin/sh:/no/data: /no/data isn't a folder that can be read; "
            "expected one of data on this machine\n");
  EXPECT_FALSE(std::filesystem::exists(home_ + "/log/ablated.log"));
}

TEST_F(UpDownTest, StartsNothingIfAServerAnswers) {
  server_ = std::make_unique<FakeServer>(home_ + "/run/ablate.sock", &answers_);
  Write("home/run/address", server_->address() + "\n");
  PretendServer(absl::StrCat("echo started > ", folder_, "/started\n"));
  environment_["ABLATE_SERVER"] = "unix:/elsewhere";
  const Outcome outcome = Run({"up", "--lanes", "2", "--json"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(
      outcome.err,
      "already up: " + home_ +
          "\nnote: the running server keeps its options; run `ablate down` first to change them\n"
          "note: ABLATE_SERVER or --server is set; other commands use unix:/elsewhere\n");
  EXPECT_THAT(outcome.out, HasSubstr("\"name\": \"workers/cpu-train\""));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/started"));
}

TEST_F(UpDownTest, StartsAServerOnceTheOneBeforeHasEnded) {
  server_ = std::make_unique<FakeServer>(home_ + "/run/ablate.sock", &answers_);
  PretendServer(absl::StrCat("echo $$ > ", folder_, "/pid\n", "echo ", server_->address(),
                             " > $2/run/address\n", "exec /bin/sleep 1000\n"));
  StartSleeper("0.3");
  const Outcome outcome = Run({"up"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.err, "up: " + home_ + "\n");
  started_.push_back(std::stoi(Read(folder_ + "/pid")));
}

TEST_F(UpDownTest, ShowsTheLogOfAServerThatDies) {
  Write("home/log/ablated.log", "from an earlier time\n");
  PretendServer("echo first; echo the folder is locked >&2; exit 3\n");
  const Outcome outcome = Run({"up"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err,
            "error: ablated ended with exit code 3\n  first\n  the folder is locked\nits log: " +
                home_ + "/log/ablated.log\n");
}

TEST_F(UpDownTest, StartsALogThatGrewLargeAnew) {
  const std::string log = Write("home/log/ablated.log", "from an earlier time\n");
  std::filesystem::resize_file(log, process::kMaxLogBytes + 1);
  PretendServer("echo the folder is locked; exit 3\n");
  EXPECT_EQ(
      Run({"up"}).err,
      "error: ablated ended with exit code 3\n  the folder is locked\nits log: " + log + "\n");
  EXPECT_EQ(Read(log), "the folder is locked\n");
  EXPECT_EQ(process::FileSize(log + ".old"), process::kMaxLogBytes + 1);
}

TEST_F(UpDownTest, SaysWhereItLookedForTheServer) {
  environment_["PATH"] = folder_;
  const Outcome outcome = Run({"up"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, ::testing::MatchesRegex(
                               "error: program ablated not found at .*/ablated or on PATH\n"));
}

TEST_F(UpDownTest, UsesTheFolderThatIsGiven) {
  PretendServer("exit 1\n");
  Run({"up", "--home", folder_ + "/other"});
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/other/log/ablated.log"));
  EXPECT_FALSE(std::filesystem::exists(home_ + "/log/ablated.log"));
}

TEST_F(UpDownTest, WritesNoLogIntoAFolderThatOthersCanEnter) {
  chmod(home_.c_str(), 0755);
  PretendServer("echo started\n");
  const Outcome outcome = Run({"up"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("has mode 755, must be 700"));
  EXPECT_FALSE(std::filesystem::exists(home_ + "/log/ablated.log"));
}

TEST_F(UpDownTest, WritesNoLogThroughALink) {
  const std::string target = Write("target", "precious");
  std::filesystem::create_symlink(target, home_ + "/log/ablated.log");
  PretendServer("echo started\n");
  const Outcome outcome = Run({"up"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("is a link"));
  EXPECT_EQ(Read(target), "precious");
}

TEST_F(UpDownTest, EndsTheServerAndWaitsUntilItIsGone) {
  const pid_t pid = StartSleeper();
  const Outcome outcome = Run({"down", "--json"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.err, "down: " + home_ + "\n");
  EXPECT_THAT(outcome.out, HasSubstr("\"was_up\": true"));
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, WNOHANG), pid);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  started_.clear();
}

TEST_F(UpDownTest, EndsNoProcessThatHasTheServersNumberByNow) {
  const pid_t pid = StartSleeper();
  process::ProcessId ended = *process::Identify(pid);
  ended.start_ticks -= 1;
  WritePid(ended);
  const Outcome outcome = Run({"down"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.err, "no server runs in " + home_ + "\n");
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), 0);
}

TEST_F(UpDownTest, IsContentWhenNoServerRuns) {
  for (const char* pid : {"", "0", "-5", "x", "999999999 1 boot"}) {
    Write("home/run/ablated.pid", pid);
    EXPECT_EQ(Run({"down"}).code, kSuccess) << pid;
  }
  EXPECT_THAT(Run({"down", "--json"}).out, HasSubstr("\"was_up\": false"));
}

}  // namespace
}  // namespace ablate::client
