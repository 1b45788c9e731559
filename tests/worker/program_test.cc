// Tests the program itself, with the reference trainer, attached to a fake server.
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/host.h"
#include "base/tcp.h"
#include "server/engine/config.h"
#include "server/launch/worker_process.h"
#include "tests/test_folder.h"
#include "tests/worker/worker_fixture.h"

namespace ablate::worker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ProgramTest : public WorkerTest {
 protected:
  ~ProgramTest() override {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t Spawn(std::vector<std::string> more = {}) {
    launch::WorkerCommand command;
    const char* program = getenv("ABLATE_WORKER");
    command.name = "cpu-train";
    command.program = program != nullptr ? program : "ABLATE_WORKER is not set";
    command.arguments = {"--server", server_->address(), "--lock", folder_ + "/lock"};
    command.arguments.insert(command.arguments.end(), more.begin(), more.end());
    command.log_file = folder_ + "/log";
    const auto process = launch::Spawn(command);
    EXPECT_TRUE(process.ok()) << process.status();
    return process.ok() ? process->pid : 0;
  }
  void StartProgram(std::vector<std::string> more = {}) { pid_ = Spawn(std::move(more)); }

  static int ExitCode(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
  }
  int EndProgram() {
    kill(pid_, SIGTERM);
    const int code = ExitCode(pid_);
    pid_ = 0;
    // The server learns of it a moment later; an earlier grant would be sent to the old worker.
    server_->WaitUntil([](const ServerState& state) { return !state.attached; });
    return code;
  }

  pid_t pid_ = 0;
};

TEST_F(ProgramTest, TrainsWithTheTrainerOfEachRun) {
  StartProgram({"--lanes", "2"});
  v1::GrantedRun native = RecallRun(2, 20);
  native.mutable_spec()->mutable_spec()->mutable_training()->set_trainer(
      ablate::v1::Trainer::native);
  server_->Grant({RecallRun(1, 20), native});
  WaitForRun(1);
  const ServerState state = WaitForRun(2);
  ASSERT_EQ(state.hellos.size(), 1u);
  EXPECT_EQ(state.hellos[0].worker(), "cpu-train");
  EXPECT_EQ(state.hellos[0].device_kind(), "cpu");
  EXPECT_EQ(state.hellos[0].lanes(), 2u);
  ASSERT_EQ(state.hellos[0].trainers_size(), 2);
  EXPECT_EQ(state.hellos[0].trainers(0).name(), "torch");
  EXPECT_THAT(state.hellos[0].trainers(0).environment(), HasSubstr("torch "));
  EXPECT_EQ(state.hellos[0].trainers(1).name(), "native");
  EXPECT_THAT(state.hellos[0].trainers(1).environment(), HasSubstr("native, "));
  EXPECT_EQ(state.hellos[0].config_version(), engine::kConfigVersion);
  EXPECT_THAT(state.hellos[0].build(), HasSubstr("torch 2."));
  EXPECT_EQ(state.hellos[0].incarnation().size(), 32u);
  for (const uint32_t seed : {1, 2}) {
    EXPECT_EQ(Series(state, NameOf(seed), "train/loss").size(), 20u);
    EXPECT_GE(Series(state, NameOf(seed), "eval/loss").size(), 2u);
    EXPECT_TRUE(Has(state, NameOf(seed), v1::Event::kCheckpoint));
    EXPECT_TRUE(EventsOf(state, NameOf(seed)).back().has_finished());
  }
  EXPECT_EQ(EndProgram(), 0);
}

TEST_F(ProgramTest, ContinuesAfterTerminationAsIfNothingHadHappened) {
  constexpr uint32_t kSteps = 800;
  StartProgram({"--resume-every", "0.01", "--flush-every", "0"});
  server_->Grant({RecallRun(1, kSteps)});
  const ServerState whole = WaitForRun(1);
  EXPECT_EQ(EndProgram(), 0);

  // A run with another name and the same spec, interrupted.
  v1::GrantedRun run = RecallRun(1, kSteps);
  run.set_run("interrupted");
  StartProgram({"--resume-every", "0.01", "--flush-every", "0"});
  server_->Grant({run});
  server_->WaitUntil(
      [](const ServerState& state) { return Has(state, "interrupted", v1::Event::kResumeState); });
  EXPECT_EQ(EndProgram(), 0);
  const ServerState saved = server_->state();
  const auto events = EventsOf(saved, "interrupted");
  ASSERT_GE(events.size(), 2u);
  ASSERT_TRUE(events.back().has_released() && events[events.size() - 2].has_resume_state());
  const v1::ResumeState& state = events[events.size() - 2].resume_state();
  ASSERT_LT(state.step(), kSteps);
  run.set_resume_blob(state.blob());
  run.set_resume_step(state.step());
  StartProgram();
  server_->Change([](ServerState& fresh) { fresh.applied.erase("interrupted"); });
  server_->Grant({run});
  const ServerState end = server_->WaitUntil(
      [](const ServerState& s) { return Has(s, "interrupted", v1::Event::kFinished); });
  for (const char* key : {"train/loss", "eval/loss"}) {
    EXPECT_EQ(Series(end, "interrupted", key), Series(whole, NameOf(1), key)) << key;
  }
  EXPECT_EQ(EndProgram(), 0);
}

TEST_F(ProgramTest, MakesSamplesWithTheReferenceModel) {
  // A trained checkpoint of the same program.
  StartProgram();
  server_->Grant({DocumentsRun(1, 5, AddBlob("abc\nbca\ncab\n"))});
  std::string checkpoint;
  for (const v1::Event& event : EventsOf(WaitForRun(1), NameOf(1))) {
    if (event.has_checkpoint()) checkpoint = event.checkpoint().blob();
  }
  EXPECT_EQ(EndProgram(), 0);
  StartProgram({"--role", "analysis"});
  v1::ToWorker message;
  v1::Analyze& analyze = *message.mutable_analyze();
  const v1::GrantedRun run = DocumentsRun(1, 5, AddBlob("abc\nbca\ncab\n"));
  analyze.set_id("id");
  analyze.set_checkpoint_blob(checkpoint);
  analyze.set_dataset_blob(run.dataset_blob());
  *analyze.mutable_spec() = run.spec();
  analyze.mutable_samples()->set_count(9);
  analyze.mutable_samples()->set_temperature(1);
  analyze.mutable_samples()->set_top_p(1);
  server_->WaitUntil([](const ServerState& state) { return state.hellos.size() == 2; });
  server_->Send(message);
  const ServerState state = server_->WaitUntil([](const ServerState& s) {
    return !s.analyses.empty() && !s.analyses.back().has_analysis_part();
  });
  EXPECT_EQ(state.hellos[1].worker(), "cpu-analysis");
  EXPECT_EQ(state.hellos[1].role(), v1::ANALYSIS);
  ASSERT_TRUE(state.analyses.back().has_analysis_result())
      << state.analyses.back().analysis_failed().message();
  ASSERT_EQ(state.analyses.size(), 2u);
  EXPECT_EQ(state.analyses[0].analysis_part().samples_size(), 9);
  EXPECT_EQ(EndProgram(), 0);
}

TEST_F(ProgramTest, LeavesADeviceThatIsTakenAlone) {
  StartProgram();
  server_->WaitUntil([](const ServerState& state) { return state.attached; });
  EXPECT_EQ(ExitCode(Spawn()), launch::kDeviceTakenExit);
  EXPECT_THAT(launch::LastLine(folder_ + "/log", 0),
              HasSubstr(absl::StrCat("the device is taken: process ", pid_, " holds ")));
  EXPECT_EQ(EndProgram(), 0);
}

TEST_F(ProgramTest, SaysWhenItsLockIsNone) {
  std::filesystem::create_directory(folder_ + "/lock");
  const int code = ExitCode(Spawn());
  EXPECT_NE(code, 0);
  EXPECT_NE(code, launch::kDeviceTakenExit) << "which nobody reports";
  EXPECT_THAT(launch::LastLine(folder_ + "/log", 0), HasSubstr("cannot open lock file"));
}

// Counts the threads that the transport didn't name: ours, and an OpenMP team's if there were one.
int OwnThreads(pid_t pid) {
  int count = 0;
  for (const auto& task :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name == "ablate-worker";
  }
  return count;
}

// A thread of the transport has its creator's name at first.
int SettledThreads(pid_t pid, int expected) {
  const absl::Duration deadline = MonotonicNow() + absl::Seconds(10);
  while (OwnThreads(pid) != expected && MonotonicNow() < deadline) std::this_thread::yield();
  return OwnThreads(pid);
}

TEST_F(ProgramTest, UsesOneThreadALane) {
  setenv("OMP_NUM_THREADS", "4", 1);
  setenv("MKL_NUM_THREADS", "4", 1);
  StartProgram({"--lanes", "2"});
  server_->WaitUntil([](const ServerState& state) { return state.attached; });
  // Two lanes, a completion thread for each, the attach loop, the one that waits for signals, main.
  constexpr int kThreads = 7;
  EXPECT_EQ(SettledThreads(pid_, kThreads), kThreads);
  v1::GrantedRun wide = RecallRun(1, 30);
  auto& spec = *wide.mutable_spec()->mutable_spec();
  // Large enough that LibTorch would split its work among threads.
  spec.mutable_model()->set_width(256);
  spec.mutable_model()->mutable_feed_forward()->set_hidden(1024);
  spec.mutable_training()->set_batch(64);
  server_->Grant({wide});
  server_->WaitUntil(
      [](const ServerState& state) { return Has(state, NameOf(1), v1::Event::kPoints); });
  EXPECT_EQ(SettledThreads(pid_, kThreads), kThreads);
  WaitForRun(1);
  EXPECT_EQ(EndProgram(), 0);
}

struct Printed {
  int code = 0;
  std::string text;
};

// Returns what a shell command prints.
Printed Shell(const std::string& command) {
  FILE* const run = popen((command + " 2>&1").c_str(), "r");
  Printed printed;
  printed.text.resize(1 << 12);
  printed.text.resize(fread(printed.text.data(), 1, printed.text.size(), run));
  printed.code = WEXITSTATUS(pclose(run));
  return printed;
}

// A copy of the program in a folder of its own.
class ProgramDevicesTest : public testing::Test {
 protected:
  ProgramDevicesTest() {
    std::filesystem::copy_file(getenv("ABLATE_WORKER"), program_);
    unsetenv("CUDA_VISIBLE_DEVICES");
  }
  // On a machine with two GPUs, as far as the management library says.
  Printed List(const std::string& visible = "") {
    return Shell(absl::StrCat(visible, " LD_LIBRARY_PATH=", ABLATE_FAKE_NVML, " ", program_,
                              " --list-devices"));
  }

  const TestFolder folder_;
  const std::string program_ = folder_ / "ablate-worker";
  const std::string plugin_ = folder_ / "libablate_cuda.so";
};

TEST_F(ProgramDevicesTest, ListsTheVisibleDevices) {
  folder_.Write("libablate_cuda.so", "");
  constexpr char kFirst[] =
      R"({"index":0,"uuid":"GPU-11aa","name":"NVIDIA Fake","memory_bytes":25769803776})";
  constexpr char kSecond[] =
      R"({"index":1,"uuid":"GPU-22bb","name":"NVIDIA Fake","memory_bytes":25769803776})";
  const Printed all = List();
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(all.text, absl::StrCat(kFirst, "\n", kSecond, "\n"));
  EXPECT_EQ(List("CUDA_VISIBLE_DEVICES=GPU-22").text, absl::StrCat(kSecond, "\n"));
  const Printed none = List("CUDA_VISIBLE_DEVICES=");
  EXPECT_EQ(none.code, launch::kDeviceUnusableExit);
  EXPECT_EQ(none.text, "CUDA_VISIBLE_DEVICES shows none of 2 GPUs\n");
}

TEST_F(ProgramDevicesTest, RefusesADriverThatIsTooOldForItsCuda) {
  folder_.Write("libablate_cuda.so", "not a library");
  constexpr char kReason[] = "the NVIDIA driver is 535.54, CUDA 13 needs 580 or newer: update it\n";
  const Printed listed = List("FAKE_DRIVER=535.54");
  EXPECT_EQ(listed.code, launch::kDeviceUnusableExit);
  EXPECT_EQ(listed.text, kReason);
  const std::string worker = absl::StrCat(" LD_LIBRARY_PATH=", ABLATE_FAKE_NVML, " ", program_,
                                          " --device cuda --server unix:/there/is/none");
  const Printed refused = Shell("FAKE_DRIVER=535.54" + worker);
  EXPECT_EQ(refused.code, launch::kDeviceUnusableExit);
  EXPECT_EQ(refused.text, absl::StrCat("no GPU can be used: ", kReason));
  EXPECT_THAT(Shell(worker).text, HasSubstr(plugin_)) << "a new one gets as far as the plugin";
}

TEST_F(ProgramDevicesTest, SaysThatTheBuildCannotUseThem) {
  const Printed printed = List();
  EXPECT_EQ(printed.code, launch::kDeviceUnusableExit);
  EXPECT_EQ(printed.text, absl::StrCat("this build can't use NVIDIA Fake: there is no ", plugin_,
                                       "; run deploy/setup.sh on this machine\n"));
}

TEST_F(ProgramDevicesTest, EndsBeforeItAttachesIfItsPluginCannotBeLoaded) {
  folder_.Write("libablate_cuda.so", "not a library");
  for (const char* role : {"train", "analysis"}) {
    const Printed printed =
        Shell(absl::StrCat(program_, " --device cuda --server unix:/there/is/none --role ", role));
    EXPECT_EQ(printed.code, launch::kDeviceUnusableExit);
    EXPECT_THAT(printed.text, StartsWith("no GPU can be used: "));
    EXPECT_THAT(printed.text, HasSubstr(plugin_));
  }
}

// A program that can't use its GPU would compute on the cores.
TEST_F(ProgramTest, TakesNoProgramsWithoutAccessToItsGpu) {
  setenv("LD_LIBRARY_PATH", ABLATE_FAKE_NVML, 1);
  StartProgram({"--role", "programs", "--device", "cuda", "--programs", "sandboxed",
                "--program-folder", folder_ + "/programs"});
  unsetenv("LD_LIBRARY_PATH");
  const ServerState state =
      server_->WaitUntil([](const ServerState& server) { return !server.hellos.empty(); });
  const v1::Hello& hello = state.hellos[0];
  EXPECT_EQ(hello.role(), v1::TRAIN);
  EXPECT_EQ(hello.device_kind(), "cuda");
  EXPECT_EQ(hello.device(), "NVIDIA Fake, 24 GiB, 1 lane");
  EXPECT_EQ(hello.lanes(), 1u);
  EXPECT_EQ(hello.trainers_size(), 0);
  EXPECT_THAT(hello.no_programs(), HasSubstr("no minor number of GPU-11aa"));
  EXPECT_EQ(EndProgram(), 0);
}

TEST(ProgramFlagsTest, SaysWhichFlagIsWrong) {
  const std::string program = getenv("ABLATE_WORKER") != nullptr ? getenv("ABLATE_WORKER") : "";
  for (const auto& [flags, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "exactly one of --server and --join must be given"},
           {"--server unix:x --join y", "exactly one of --server and --join must be given"},
           {"--join /there/is/none", "cannot read /there/is/none"},
           {"--server example.org:1", "must be unix:PATH, is example.org:1"},
           {"--server unix:x --lanes 0", "--lanes"},
           {"--server unix:x --flush-every -1", "--flush-every"},
           {"--server unix:x --role cook", "--role"},
           {"--server unix:x --device tpu", "--device"},
           {"--server unix:x --device cuda --lanes 17", "must be 1–16 with --device cuda, is 17"},
           {"--server unix:x --role analysis --lanes 2", "--lanes: is for --role train"},
           {"--server unix:x --role programs", "--role: programs needs --device cuda"},
           {"--server unix:x --colour blue", "--colour"},
           {"--server unix:x --through a:1", "--through: needs --join"},
           {"--join y --through a", "--through: must be HOST:PORT, is a: without a port"},
           {"relay --to a:1", "--listen is required"},
           {"relay --listen a --to a:1", "--listen: must be HOST:PORT, is a: without a port"},
           {"relay --listen a:0 --to a:0", "--to: must be HOST:PORT, is a:0: the port is"},
           {"relay --listen a:0", "exactly one of --to and --join must be given"},
           {"relay --listen a:0 --to a:1 --join y", "exactly one of --to and --join must be given"},
           {"relay --listen a:0 --join /there/is/none", "--join: cannot read /there/is/none"},
           {"relay --listen a:0 --to a:1 --lanes 2", "--lanes"},
           {"--lanes 2 relay --listen a:0 --to a:1", "--lanes: is for workers"}}) {
    const auto [code, said] = Shell(program + " " + flags);
    const bool unread = absl::StrContains(flags, "/there/is/none");
    EXPECT_EQ(code, unread ? 6 : 64) << flags << said;
    EXPECT_THAT(said, HasSubstr(part)) << flags;
  }
}

TEST(RelayProgramTest, RelaysUntilASignalEndsIt) {
  const TestFolder folder;
  const auto server = net::ListenTcp("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string to = absl::StrCat("127.0.0.1:", net::PortOf(server->get()));
  for (const int signal : {SIGTERM, SIGINT}) {
    launch::WorkerCommand command;
    command.name = "relay";
    command.program = getenv("ABLATE_WORKER");
    command.arguments = {"relay", "--listen", "127.0.0.1:0", "--to", to};
    command.log_file = absl::StrCat(folder.path(), "/", signal);
    const auto process = launch::Spawn(command);
    ASSERT_TRUE(process.ok()) << process.status();
    std::string log;
    while (!absl::EndsWith(log, absl::StrCat(" to ", to, "\n"))) {
      std::this_thread::yield();
      log = process::ReadWholeFile(command.log_file);
    }
    const std::string before = "relaying 127.0.0.1:";
    const std::string address =
        absl::StrCat("127.0.0.1:", std::stoi(log.substr(log.find(before) + before.size())));
    const auto endpoints = net::Resolve(*text::ParseHostPort(address));
    ASSERT_TRUE(endpoints.ok());
    const process::FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto& endpoint = endpoints->front();
    EXPECT_EQ(
        connect(client.get(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size),
        0);
    pollfd reached = {server->get(), POLLIN, 0};
    EXPECT_EQ(poll(&reached, 1, /*timeout=*/-1), 1);
    EXPECT_TRUE(process::FileDescriptor(accept(server->get(), nullptr, nullptr)).open());
    kill(process->pid, signal);
    int status = 0;
    EXPECT_EQ(waitpid(process->pid, &status, 0), process->pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

}  // namespace
}  // namespace ablate::worker
