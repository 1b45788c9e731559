// ablate-worker: trains or computes analyses on one device for a server.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/log_file.h"
#include "base/machine.h"
#include "base/random.h"
#include "proto/join/channel.h"
#include "proto/join/join_file.h"
#include "proto/join/tls_trouble.h"
#include "server/engine/names.h"
#include "server/engine/samples.h"
#include "server/engine/task.h"
#include "server/engine/trainer.h"
#include "server/launch/local.h"
#include "server/worker/device_lock.h"
#include "server/worker/worker.h"

namespace ablate::worker {
namespace {

constexpr int kNoLockExit = 1;
constexpr int kDeviceLostExit = 4;
constexpr int kRefusedExit = 5;
constexpr int kNoServerExit = 6;  // the join file can't be used
// Warn this long before the token expires, so that the operator has time to replace it.
constexpr absl::Duration kWarnOfExpiry = absl::Hours(14 * 24);

struct Flags {
  std::string server;
  std::string join;
  std::string role = "train";
  std::string name;  // empty: cpu- and the role
  int lanes = 0;
  std::string lock;
  double resume_every = 30;
  double flush_every = .25;
};

constexpr size_t kHelpColumn = 27;  // lines of the help have at most 80 columns

void Define(CLI::App& app, Flags& flags) {
  flags.lanes = process::UsableCores();
  app.set_version_flag("--version", absl::StrCat("ablate-worker ", ABLATE_VERSION, ", torch ",
                                                 std::string(engine::TorchVersion())));
  app.get_formatter()->column_width(kHelpColumn);
  app.add_option("--server", flags.server,
                 "Work for the server on this machine with this\nsocket for workers")
      ->check([](const std::string& server) {
        return absl::StartsWith(server, "unix:") ? "" : "must be unix:PATH, is " + server;
      })
      ->type_name("unix:PATH");
  app.add_option("--join", flags.join,
                 "Work for a server on another machine: join file of\na user of role worker there")
      ->type_name("FILE");
  app.add_option(
         "--role", flags.role,
         "Role: train, or analysis to compute analyses and\nsamples of trained models [train]")
      ->check(CLI::IsMember({"train", "analysis"}).description(""))
      ->type_name("ROLE");
  app.add_option("--name", flags.name, "Name of this device's worker of the role\n[cpu-ROLE]")
      ->type_name("NAME");
  app.add_option(
         "--lanes", flags.lanes,
         absl::StrCat("Train N runs at the same time, one per core,\n1–4096 [", flags.lanes, "]"))
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("N");
  app.add_option("--lock", flags.lock,
                 "Hold a lock on FILE: a device has only one worker\nof a role")
      ->type_name("FILE");
  app.add_option("--resume-every", flags.resume_every,
                 "Save the training state of each run, or the state\n"
                 "of each analysis, every SECONDS, 0–86400 [30]")
      ->check(CLI::Range(0.0, 86400.0).description(""))
      ->type_name("SECONDS");
  app.add_option("--flush-every", flags.flush_every,
                 "Report the points of a run every SECONDS, 0–3600\n[0.25]")
      ->check(CLI::Range(0.0, 3600.0).description(""))
      ->type_name("SECONDS");
}

// Returns an option of training that is given to a worker for analyses, or "".
std::string Misplaced(const CLI::App& app, const Flags& flags) {
  if (flags.role == "train") return "";
  for (const char* option : {"--lanes", "--flush-every"}) {
    if (app.count(option) > 0) return option;
  }
  return "";
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
  const bool trains = flags.role == "train";
  const int lanes = trains ? flags.lanes : worker::AnalysisLanes(process::UsableCores());
  v1::Hello hello;
  hello.set_worker(flags.name.empty() ? absl::StrCat("cpu-", flags.role) : flags.name);
  hello.set_role(trains ? v1::TRAIN : v1::ANALYSIS);
  hello.set_incarnation(process::RandomId());
  hello.set_device(CpuInWords(lanes));
  hello.set_device_kind("cpu");
  hello.set_lanes(static_cast<uint32_t>(lanes));
  hello.set_memory_bytes(process::UsableMemory());
  hello.set_build(absl::StrCat("ablate ", ABLATE_VERSION, ", torch ", engine::TorchVersion()));
  for (const auto& trainer : engine::kNames<engine::TrainerKind>) {
    v1::TrainerInfo* info = hello.add_trainers();
    info->set_name(std::string(trainer.name));
    info->set_environment(engine::Environment(trainer.value));
  }
  hello.set_numerics_version(engine::kNumericsVersion);
  hello.set_config_version(engine::kConfigVersion);
  return hello;
}

constexpr char kTinyText[] = "a warm start\nis half\nthe race\nfor everyone\nelse\n";

// Returns a tiny run that goes through every stage of a real one.
absl::StatusOr<engine::RunConfig> TinyRun() {
  engine::RunConfig config;
  absl::StatusOr<engine::DocumentsTask> task = engine::ReadDocumentsTask(kTinyText, 2);
  if (!task.ok()) return task.status();
  config.task = *std::move(task);
  const absl::StatusOr<engine::TaskShape> shape = engine::KindOf(config.task).shape(config.task);
  if (!shape.ok()) return shape.status();
  config.model.vocabulary = shape->vocabulary;
  config.model.loss = shape->loss;
  config.model.layers = 1;
  config.model.width = 16;
  config.model.heads = 2;
  config.model.hidden = 32;
  config.model.context = 16;
  config.training.steps = 3;
  config.training.batch = 2;
  config.training.clip = 1;
  return config;
}

// Does slow one-time initialisation before the first grant: trains a tiny model for a few steps on
// the calling thread, and exports its state.
absl::Status WarmUpTrainer(engine::TrainerKind kind) {
  absl::StatusOr<engine::RunConfig> config = TinyRun();
  if (!config.ok()) return config.status();
  config->training.trainer = kind;
  const uint32_t steps = config->training.steps;
  const auto trainer = engine::MakeTrainer(*config);
  if (!trainer.ok()) return trainer.status();
  if (const auto advanced = (*trainer)->Advance(steps, [] { return false; }); !advanced.ok()) {
    return advanced.status();
  }
  return (*trainer)->ExportState().status();
}

// Warms up every trainer that the worker declares. An error means that this device can't train.
absl::Status WarmUp() {
  for (const auto& trainer : engine::kNames<engine::TrainerKind>) {
    if (absl::Status status = WarmUpTrainer(trainer.value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Warms up analyses: exports a checkpoint of the untrained tiny model and draws samples from it.
absl::Status WarmUpAnalyses() {
  const absl::StatusOr<engine::RunConfig> config = TinyRun();
  if (!config.ok()) return config.status();
  const auto trainer = engine::MakeTrainer(*config);
  if (!trainer.ok()) return trainer.status();
  const absl::StatusOr<std::string> checkpoint = (*trainer)->ExportCheckpoint();
  if (!checkpoint.ok()) return checkpoint.status();
  const std::atomic<bool> never{false};
  return engine::GenerateSamples(*config, *checkpoint, {}, never, [](const auto&) {}).status();
}

absl::StatusOr<join::ServerAddress> ServerOf(const Flags& flags) {
  if (flags.join.empty()) return join::ServerAddress{flags.server};
  const absl::StatusOr<ablate::v1::JoinFile> file = join::ReadJoinFile(flags.join);
  if (!file.ok()) return file.status();
  const absl::Time expires = absl::FromUnixSeconds(file->expire_time().seconds());
  const absl::string_view day = "%Y-%m-%d";
  const std::string until = absl::FormatTime(day, expires, absl::UTCTimeZone());
  if (expires - absl::Now() < kWarnOfExpiry) {
    spdlog::warn("the token of {} is good until {}: it needs a new join file by then", flags.join,
                 until);
  }
  spdlog::info("joining {} as {}", file->address(), file->user());
  return join::AddressOf(*file, file->user());
}

WorkerOptions OptionsOf(const Flags& flags, join::ServerAddress server) {
  WorkerOptions options;
  options.server = std::move(server);
  options.attach.hello = HelloOf(flags);
  // A remote server returns eventually; a server on this machine starts its own workers.
  if (!flags.join.empty()) {
    options.attach.orphan_timeout = absl::InfiniteDuration();
    options.attach.diagnose = [server = options.server] { return join::DiagnoseTls(server); };
  }
  options.executor.flush_every = absl::Seconds(flags.flush_every);
  options.executor.resume_every = absl::Seconds(flags.resume_every);
  options.make_trainer = engine::MakeTrainer;
  options.analysis = {engine::GenerateSamples, engine::MakeAnalysis, {}};
  options.analysis.pace.save_every = absl::Seconds(flags.resume_every);
  const bool trains = options.attach.hello.role() == v1::TRAIN;
  options.prepare_lane = [trains] {
    engine::PrepareLaneThread();
    return trains ? WarmUp() : WarmUpAnalyses();
  };
  return options;
}

// Blocks the signals before any thread is created, so that only the thread that waits for them gets
// them.
sigset_t BlockEndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Prints the log's last line, which the server shows for a worker that ended.
int LastWords(int code, absl::string_view words) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(words.size()), words.data());
  return code;
}

// Returns the exit code after printing the reason. A server replaces its own workers on purpose;
// for a worker that joined from elsewhere, losing its name is an error.
int ExitOf(const absl::Status& end, bool joined) {
  if (end.ok() || (absl::IsAlreadyExists(end) && !joined)) return 0;
  if (absl::IsAlreadyExists(end)) {
    return LastWords(launch::kDeviceTakenExit,
                     absl::StrCat(end.message(), ": give each its own --name, or its own user"));
  }
  if (absl::IsUnauthenticated(end) || absl::IsPermissionDenied(end)) {
    return LastWords(kRefusedExit, absl::StrCat("the server refuses this worker: ", end.message()));
  }
  return LastWords(kDeviceLostExit, end.ToString());
}

// Works until it is drained or its device is lost.
[[noreturn]] void RunToTheEnd(WorkerOptions options, bool joined) {
  const sigset_t signals = BlockEndSignals();
  Worker worker(std::move(options));
  std::thread([&worker, signals] {
    while (process::AwaitSignal(signals) > 0) worker.Drain();
  }).detach();
  const absl::Status end = worker.Run();
  const int code = ExitOf(end, joined);
  // Skips destructors, because a thread of a lost device may never return.
  std::_Exit(code);
}

int Work(const Flags& flags) {
  absl::StatusOr<join::ServerAddress> server = ServerOf(flags);
  if (!server.ok()) return LastWords(kNoServerExit, server.status().message());
  process::FileDescriptor lock;
  if (!flags.lock.empty()) {
    absl::StatusOr<process::FileDescriptor> taken = LockDevice(flags.lock);
    if (!taken.ok()) {
      const bool by_another = absl::IsFailedPrecondition(taken.status());
      return LastWords(by_another ? launch::kDeviceTakenExit : kNoLockExit,
                       taken.status().message());
    }
    lock = *std::move(taken);
  }
  RunToTheEnd(OptionsOf(flags, *std::move(server)), !flags.join.empty());
}

}  // namespace
}  // namespace ablate::worker

int main(int argc, char** argv) {
  constexpr int kUsageExit = 64;
  // Silences gRPC, which prints handshake failures at every attempt; the log reports them in words.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("ablate-worker"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  CLI::App app(
      "Trains runs of an ablate server, by LibTorch or native kernels, or computes\n"
      "analyses, on the cores of this machine.");
  app.footer(
      "Exit codes:\n"
      "  0   drained\n"
      "  3   another worker has the device or the name\n"
      "  4   the device is lost\n"
      "  5   the server refuses this worker\n"
      "  6   the join file can't be used\n"
      "  64  invalid options");
  ablate::worker::Flags flags;
  ablate::worker::Define(app, flags);
  const auto usage = [&app](const CLI::Error& error) {
    return app.exit(error) == 0 ? 0 : kUsageExit;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return usage(error);
  }
  if (flags.server.empty() == flags.join.empty()) {
    return usage(CLI::ValidationError("exactly one of --server and --join must be given"));
  }
  if (const std::string option = ablate::worker::Misplaced(app, flags); !option.empty()) {
    return usage(CLI::ValidationError(option, "is for --role train"));
  }
  return ablate::worker::Work(flags);
}
