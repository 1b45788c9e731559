// ablate-worker: trains on one device for a server.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/trainer.h"
#include "server/launch/local.h"
#include "server/worker/cores.h"
#include "server/worker/device_lock.h"
#include "server/worker/warm_up.h"
#include "server/worker/worker.h"

namespace ablate::worker {
namespace {

constexpr int kNoLockExit = 1;
constexpr int kDeviceLostExit = 4;

struct Flags {
  std::string server;
  std::string name = "cpu-train";
  int lanes = 0;
  std::string lock;
  double resume_every = 30;
  double flush_every = .25;
};

void Define(CLI::App& app, Flags& flags) {
  flags.lanes = UsableCores();
  app.set_version_flag("--version", absl::StrCat("ablate-worker ", ABLATE_VERSION, ", torch ",
                                                 std::string(engine::TorchVersion())));
  app.add_option("--server", flags.server, "the server's socket for workers, unix:PATH")
      ->required()
      ->check([](const std::string& server) {
        return absl::StartsWith(server, "unix:") ? "" : "must be unix:PATH, is " + server;
      });
  app.add_option("--name", flags.name, "name of this device's worker")->capture_default_str();
  app.add_option("--lanes", flags.lanes, "runs trained at the same time, a core each")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--lock", flags.lock, "file that the one worker of this device holds a lock on");
  app.add_option("--resume-every", flags.resume_every, "seconds between resume states of a run")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--flush-every", flags.flush_every, "seconds between reports of a run's points")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
}

std::string RandomHex() {
  char bytes[16];
  // At most 256 bytes come whole once the system's generator is ready.
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) std::abort();
  return absl::BytesToHexString(absl::string_view(bytes, sizeof bytes));
}

std::string CpuInWords(int lanes) {
  std::ifstream in("/proc/cpuinfo");
  std::string line, model = "CPU";
  while (std::getline(in, line)) {
    const size_t colon = line.find(':');
    if (!absl::StartsWith(line, "model name") || colon == std::string::npos) continue;
    model = std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    break;
  }
  return absl::StrCat(model, ", ", lanes, lanes == 1 ? " lane" : " lanes");
}

v1::Hello HelloOf(const Flags& flags) {
  v1::Hello hello;
  hello.set_worker(flags.name);
  hello.set_incarnation(RandomHex());
  hello.set_device(CpuInWords(flags.lanes));
  hello.set_device_kind("cpu");
  hello.set_lanes(static_cast<uint32_t>(flags.lanes));
  hello.set_build(absl::StrCat("ablate ", ABLATE_VERSION, ", torch ", engine::TorchVersion()));
  hello.set_trainer(std::string(engine::TorchTrainerName()));
  hello.set_numerics_version(engine::kNumericsVersion);
  return hello;
}

WorkerOptions OptionsOf(const Flags& flags) {
  WorkerOptions options;
  options.server = flags.server;
  options.attach.hello = HelloOf(flags);
  options.executor.flush_every = absl::Seconds(flags.flush_every);
  options.executor.resume_every = absl::Seconds(flags.resume_every);
  options.make_trainer = engine::MakeTorchTrainer;
  options.prepare_lane = [] {
    engine::PrepareLaneThread();
    return WarmUp(engine::MakeTorchTrainer);
  };
  return options;
}

// Before any thread is made, so that only the thread that waits for them gets them.
sigset_t BlockEndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// The log's last line is what the server tells people about a worker that ended.
int LastWords(int code, absl::string_view words) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(words.size()), words.data());
  return code;
}

int Work(const Flags& flags) {
  std::optional<DeviceLock> lock;
  if (!flags.lock.empty()) {
    absl::StatusOr<DeviceLock> taken = DeviceLock::Take(flags.lock);
    if (!taken.ok()) {
      const bool by_another = absl::IsFailedPrecondition(taken.status());
      return LastWords(by_another ? launch::kDeviceTakenExit : kNoLockExit,
                       taken.status().message());
    }
    lock.emplace(*std::move(taken));
  }
  const sigset_t signals = BlockEndSignals();
  Worker worker(OptionsOf(flags));
  std::thread([&worker, signals] {
    int signal = 0;
    while (sigwait(&signals, &signal) == 0) worker.Drain();
  }).detach();
  const absl::Status end = worker.Run();
  const int code = end.ok() ? 0 : LastWords(kDeviceLostExit, end.ToString());
  // Not by way of destructors: a lane of a lost device may never come back.
  std::_Exit(code);
}

}  // namespace
}  // namespace ablate::worker

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("ablate-worker"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  CLI::App app("Trains the runs that an ablate server grants, on this machine's cores.");
  ablate::worker::Flags flags;
  ablate::worker::Define(app, flags);
  CLI11_PARSE(app, argc, argv);
  return ablate::worker::Work(flags);
}
