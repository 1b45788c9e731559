// ablate-worker: trains or computes analyses on one device for a server.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log_file.h"
#include "base/machine.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "proto/join/channel.h"
#include "proto/join/join_file.h"
#include "proto/join/tls_trouble.h"
#include "server/engine/accelerator.h"
#include "server/engine/analysis.h"
#include "server/engine/names.h"
#include "server/engine/samples.h"
#include "server/engine/trainer.h"
#include "server/launch/local.h"
#include "server/launch/program_options.h"
#include "server/worker/analyst.h"
#include "server/worker/device.h"
#include "server/worker/device_lock.h"
#include "server/worker/nvml.h"
#include "server/worker/pilot.h"
#include "server/worker/program_host.h"
#include "server/worker/relay_command.h"
#include "server/worker/warm_up.h"
#include "server/worker/worker.h"

namespace ablate::worker {
namespace {

constexpr int kNoLockExit = 1;
constexpr int kRefusedExit = 5;
constexpr int kNotReachedExit = 8;  // before --exit-when-idle
constexpr char kCuda[] = "cuda";
constexpr char kTrain[] = "train", kPrograms[] = "programs";  // roles
// Opened where a GPU is, so that one program runs everywhere.
constexpr char kCudaPlugin[] = "libablate_cuda.so";
// The CUDA of the plugin's LibTorch, and the oldest driver for it: NVIDIA's guide "CUDA
// Compatibility", table of minor version compatibility. With an older driver CUDA finds no device,
// and gives no reason.
constexpr int kCudaVersion = 13;
constexpr int kLeastDriver = 580;
// Share of a GPU's memory that analyses take at most, because runs train there, too.
constexpr double kAnalysisMemoryShare = 0.25;
constexpr char kVisibleDevices[] = "CUDA_VISIBLE_DEVICES";
// Warn this long before the token expires, so that the operator has time to replace it.
constexpr absl::Duration kWarnOfExpiry = absl::Hours(14 * 24);

struct Flags {
  std::string server;
  std::string join;
  std::string through;
  std::string role = "train";
  std::string name;  // empty: the device, - and the role
  int lanes = 0;     // 0: the device's default
  std::string lock;
  std::string blobs;
  double resume_every = 30;
  double flush_every = .25;
  std::string exit_when_idle;
  std::string time_left;
  std::string programs = launch::kOff;
  std::string program_folder;
  std::vector<std::string> environments;
  std::string device = "cpu";
  bool list_devices = false;
};

constexpr size_t kHelpColumn = 27;  // lines of the help have at most 80 columns

std::string Problem(const absl::Status& status) { return std::string(status.message()); }

std::string IdleProblem(const std::string& text) {
  absl::Duration time;
  if (absl::ParseDuration(text, &time) && time >= absl::Seconds(1)) return "";
  return "must be a time of at least a second, such as 5m, is " + text;
}

void Define(CLI::App& app, Flags& flags) {
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
  app.add_option("--through", flags.through,
                 "Reach the server of the join file through a relay\nthere, `ablate-worker relay`")
      ->check(AddressProblem)
      ->type_name("HOST:PORT");
  app.add_option("--role", flags.role,
                 "Role: train, analysis to compute analyses and\nsamples of trained models, or "
                 "programs to run users'\n"
                 "programs with the GPU of --device cuda [train]")
      ->check(CLI::IsMember({kTrain, "analysis", kPrograms}).description(""))
      ->type_name("ROLE");
  app.add_option("--device", flags.device,
                 "Device: cpu, all cores together, or cuda, the first\n"
                 "GPU that CUDA_VISIBLE_DEVICES shows [cpu]")
      ->check(CLI::IsMember({"cpu", kCuda}).description(""))
      ->type_name("DEVICE");
  app.add_flag("--list-devices", flags.list_devices,
               "Print the GPUs that a worker can use, one line of\nJSON each, and exit");
  app.add_option("--name", flags.name, "Name of this device's worker of the role\n[DEVICE-ROLE]")
      ->type_name("NAME");
  app.add_option("--lanes", flags.lanes,
                 absl::StrCat("Train N runs at the same time, 1–4096, 1–", engine::kMostDeviceLanes,
                              " with cuda\n[", process::UsableCores(),
                              ", one per core; with cuda by measuring]"))
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("N");
  app.add_option("--lock", flags.lock,
                 "Hold a lock on FILE: a device has only one worker\nof a role")
      ->type_name("FILE");
  app.add_option("--blobs", flags.blobs,
                 "Read blobs from FOLDER, the server's own, instead of\nby the connection")
      ->type_name("FOLDER");
  app.add_option("--programs", flags.programs,
                 "Run users' programs: sandboxed, unsandboxed, or off\n[off]")
      ->check(
          CLI::IsMember({launch::kSandboxed, launch::kUnsandboxed, launch::kOff}).description(""))
      ->type_name("MODE");
  app.add_option("--environment", flags.environments,
                 "Offer programs the Python interpreter PATH, absolute,\n"
                 "as environment NAME, with FOLDERs of data to read;\n"
                 "may be repeated [default: the\n"
                 "Python whose torch this program uses]")
      ->check(launch::EnvironmentProblem)
      ->type_name("NAME=PATH[:FOLDER…]");
  app.add_option("--program-folder", flags.program_folder,
                 "Run programs in folders below FOLDER, whose content\n"
                 "is deleted at the start")
      ->type_name("FOLDER");
  app.add_option("--resume-every", flags.resume_every,
                 "Save the training state of each run, or the state\n"
                 "of each analysis, every SECONDS, 0–86400 [30]")
      ->check(CLI::Range(0.0, 86400.0).description(""))
      ->type_name("SECONDS");
  app.add_option("--flush-every", flags.flush_every,
                 "Report the points of a run every SECONDS, 0–3600\n[0.25]")
      ->check(CLI::Range(0.0, 3600.0).description(""))
      ->type_name("SECONDS");
  app.add_option("--exit-when-idle", flags.exit_when_idle,
                 "End after TIME without a run, such as 5m [never]")
      ->check(IdleProblem)
      ->type_name("TIME");
  app.add_option("--time-left", flags.time_left,
                 "Another scheduler ends this worker after TIME, as\n"
                 "Slurm's `squeue -o %L` prints it; a program without\n"
                 "checkpoints is run only if it ends before")
      ->check([](const std::string& text) { return Problem(ParseTimeLeft(text).status()); })
      ->type_name("[D-]HH:MM:SS");
}

// Returns an option of training that is given to a worker for analyses, or "".
std::string Misplaced(const CLI::App& app, const Flags& flags) {
  if (flags.role == kTrain || flags.role == kPrograms) return "";
  for (const char* option : {"--lanes", "--flush-every", "--programs", "--environment",
                             "--exit-when-idle", "--time-left"}) {
    if (app.count(option) > 0) return option;
  }
  return "";
}

// Returns the lanes of a worker: as many as it is told, or its device's default or most.
int LanesOf(const Flags& flags) {
  if (flags.role == kPrograms) return std::max(flags.lanes, 1);
  if (flags.role != kTrain) {
    return flags.device == kCuda ? kCudaAnalysisLanes : AnalysisLanes(process::UsableCores());
  }
  if (flags.lanes > 0) return flags.lanes;
  return flags.device == kCuda ? engine::kMostDeviceLanes : process::UsableCores();
}

// Returns true if a GPU's lanes are found by measuring.
bool MeasuresLanes(const Flags& flags) { return flags.role == kTrain && flags.lanes == 0; }

// Returns a Hello without its device and trainers.
v1::Hello HelloOf(const Flags& flags) {
  v1::Hello hello;
  hello.set_worker(flags.name.empty() ? absl::StrCat(flags.device, "-", flags.role) : flags.name);
  hello.set_role(flags.role == "analysis" ? v1::ANALYSIS : v1::TRAIN);
  hello.set_incarnation(process::RandomId());
  hello.set_build(absl::StrCat("ablate ", ABLATE_VERSION, ", torch ", engine::TorchVersion()));
  hello.set_numerics_version(engine::kNumericsVersion);
  hello.set_config_version(engine::kConfigVersion);
  return hello;
}

// `accelerator` is null for a worker on the cores.
v1::Hello HelloOf(const Flags& flags, const engine::Accelerator* accelerator) {
  v1::Hello hello = HelloOf(flags);
  if (accelerator != nullptr) {
    DescribeAccelerator(engine::InfoOf(*accelerator), LanesOf(flags), MeasuresLanes(flags), &hello);
  } else {
    DescribeCores(LanesOf(flags), &hello);
  }
  const auto device = accelerator != nullptr ? engine::Device::kCuda : engine::Device::kCpu;
  for (const engine::TrainerKind trainer : TrainersOn(device)) {
    v1::TrainerInfo* info = hello.add_trainers();
    info->set_name(std::string(engine::NameOf(trainer)));
    info->set_environment(engine::Environment(trainer, accelerator));
  }
  return hello;
}

absl::StatusOr<join::ServerAddress> ServerOf(const Flags& flags) {
  if (flags.join.empty()) return join::ServerAddress{flags.server};
  ASSIGN_OR_RETURN(const ablate::v1::JoinFile file, join::ReadJoinFile(flags.join));
  const absl::Time expires = absl::FromUnixSeconds(file.expire_time().seconds());
  const absl::string_view day = "%Y-%m-%d";
  const std::string until = absl::FormatTime(day, expires, absl::UTCTimeZone());
  if (expires - absl::Now() < kWarnOfExpiry) {
    spdlog::warn("the token of {} is good until {}: it needs a new join file by then", flags.join,
                 until);
  }
  join::ServerAddress server = join::AddressOf(file, file.user());
  // The certificate must still be for the server's own name.
  if (!flags.through.empty()) server.address = flags.through;
  spdlog::info("joining {} as {}{}", file.address(), file.user(),
               flags.through.empty() ? "" : absl::StrCat(" through ", flags.through));
  return server;
}

// Initialises a lane. FAILED_PRECONDITION if its accelerator can't train, which the first lane
// finds out: a later one may be added while runs fill the memory. Runs fill it for analyses, too,
// which then begin again on the cores.
absl::Status PrepareLane(const std::shared_ptr<engine::Accelerator>& accelerator, bool trains) {
  static std::atomic<bool> later = false;
  engine::PrepareLaneThread();
  if (accelerator == nullptr) return trains ? WarmUpTraining(nullptr) : WarmUpAnalyses();
  if (later.exchange(true)) return absl::OkStatus();
  const absl::Status warm = WarmUpTraining(accelerator);
  if (warm.ok() || (!trains && absl::IsResourceExhausted(warm))) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(engine::InfoOf(*accelerator).name, " can't train: ", warm.message()));
}

// Returns the engine's functions, which compute on the accelerator; on the cores without one.
AnalysisTools ToolsOf(const std::shared_ptr<engine::Accelerator>& accelerator) {
  AnalysisTools tools;
  tools.generate = [accelerator](const auto&... arguments) {
    return engine::GenerateSamples(arguments..., accelerator);
  };
  tools.make = [accelerator](engine::AnalysisRequest request) {
    return engine::MakeAnalysis(std::move(request), accelerator);
  };
  if (accelerator != nullptr) {
    tools.release = [accelerator] { engine::ReleaseMemory(*accelerator); };
  }
  return tools;
}

// Lets the worker run programs, if its flags say so, with this GPU.
void AddPrograms(const Flags& flags, const absl::StatusOr<GpuAccess>& gpu, WorkerOptions* options) {
  const absl::StatusOr<ProgramHost> host =
      gpu.ok() ? OpenProgramHost({.mode = flags.programs,
                                  .folder = flags.program_folder,
                                  .environments = flags.environments,
                                  .python = engine::TorchPython(),
                                  .gpu = *gpu})
               : gpu.status();
  if (!host.ok() && flags.programs != launch::kOff) {
    spdlog::warn("takes no programs: {}", std::string(host.status().message()));
  }
  DescribeHost(host, &options->attach.hello);
  if (host.ok()) options->executor.programs = *host;
}

// Returns the options that don't depend on what the worker computes, with its Hello.
WorkerOptions OptionsOf(const Flags& flags, join::ServerAddress server, v1::Hello hello) {
  WorkerOptions options;
  options.server = std::move(server);
  options.blob_folder = flags.blobs;
  options.attach.hello = std::move(hello);
  // A remote server returns eventually; a server on this machine starts its own workers.
  if (!flags.join.empty()) {
    options.attach.orphan_timeout = absl::InfiniteDuration();
    options.attach.diagnose = [server = options.server, relayed = !flags.through.empty()] {
      const absl::Status found = join::DiagnoseTls(server);
      if (found.ok() || !relayed) return found;
      return absl::Status(found.code(),
                          absl::StrCat(found.message(), ". ", server.address,
                                       " is a relay (--through): its log may have the reason"));
    };
  }
  if (const auto left = ParseTimeLeft(flags.time_left); left.ok() && left->has_value()) {
    options.attach.ends_at = MonotonicNow() + **left;
  }
  absl::Duration idle;
  if (absl::ParseDuration(flags.exit_when_idle, &idle)) options.exit_when_idle = idle;
  options.executor.flush_every = absl::Seconds(flags.flush_every);
  options.executor.resume_every = absl::Seconds(flags.resume_every);
  return options;
}

// Returns the options of a worker that trains or analyses models.
WorkerOptions OptionsOfModels(const Flags& flags, join::ServerAddress server,
                              const std::shared_ptr<engine::Accelerator>& accelerator) {
  WorkerOptions options = OptionsOf(flags, std::move(server), HelloOf(flags, accelerator.get()));
  if (flags.role == kTrain && accelerator == nullptr) {
    AddPrograms(flags, GpuAccess(), &options);
  } else if (flags.role == kTrain) {
    options.attach.hello.set_no_programs("the GPU has no worker for them (--gpu-programs)");
  }
  options.make_trainer = [accelerator](const engine::RunConfig& run) {
    return engine::MakeTrainer(run, accelerator);
  };
  options.analysis = ToolsOf(accelerator);
  options.analysis.pace.save_every = absl::Seconds(flags.resume_every);
  if (accelerator != nullptr) {
    options.device_use = AskForUse(Nvml::Load(), engine::InfoOf(*accelerator).uuid);
    options.measure_lanes = MeasuresLanes(flags);
    options.memory = {[accelerator] { return engine::MemoryOf(*accelerator); },
                      [accelerator] { engine::ReleaseMemory(*accelerator); }};
  }
  options.prepare_lane = [accelerator, trains = flags.role == kTrain] {
    return PrepareLane(accelerator, trains);
  };
  return options;
}

// Returns the options of a worker that runs programs with a GPU. It opens no device itself.
WorkerOptions OptionsOfPrograms(const Flags& flags, join::ServerAddress server, const Nvml& nvml,
                                const DeviceInfo& device) {
  v1::Hello hello = HelloOf(flags);
  DescribeAccelerator({device.uuid, device.name, "", device.memory_bytes}, LanesOf(flags),
                      /*measured=*/false, &hello);
  WorkerOptions options = OptionsOf(flags, std::move(server), std::move(hello));
  AddPrograms(flags, AccessTo(device), &options);
  options.device_use = AskForUse(nvml, device.uuid);
  options.prepare_lane = [] { return absl::OkStatus(); };
  return options;
}

// Prints the log's last line, which the server shows for a worker that ended.
int LastWords(int code, absl::string_view words) {
  // Errors of CUDA have several lines.
  std::fprintf(stderr, "%s\n", absl::StrReplaceAll(words, {{"\n", " "}}).c_str());
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
  if (absl::IsDeadlineExceeded(end)) return LastWords(kNotReachedExit, end.message());
  if (absl::IsFailedPrecondition(end)) {
    return LastWords(launch::kDeviceUnusableExit, end.message());
  }
  return LastWords(launch::kDeviceLostExit, end.ToString());
}

// Works until it is drained or its device is lost.
[[noreturn]] void RunToTheEnd(WorkerOptions options, bool joined, const sigset_t& signals) {
  Worker worker(std::move(options));
  std::thread([&worker, signals] {
    while (process::AwaitSignal(signals) > 0) worker.Drain();
  }).detach();
  const absl::Status end = worker.Run();
  const int code = ExitOf(end, joined);
  // Skips destructors, because a thread of a lost device may never return.
  std::_Exit(code);
}

// Returns the path of the plugin, beside this program.
std::string PluginFile() {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (self.parent_path() / kCudaPlugin).string();
}

// Opens the first visible GPU. Its tensors take at most a share of its memory.
// FAILED_PRECONDITION, which says why it can't be used.
absl::StatusOr<std::shared_ptr<engine::Accelerator>> OpenGpu(double memory_share) {
  using Opened = absl::StatusOr<std::shared_ptr<engine::Accelerator>>;
  const absl::StatusOr<Nvml> nvml = Nvml::Load();
  // Without NVML the plugin finds the reason.
  const absl::Status usable =
      nvml.ok() ? nvml->CheckDriver(kLeastDriver, kCudaVersion) : absl::OkStatus();
  Opened opened =
      usable.ok() ? engine::OpenAccelerator(PluginFile(), memory_share) : Opened(usable);
  if (opened.ok()) return opened;
  return absl::FailedPreconditionError(
      absl::StrCat("no GPU can be used: ", opened.status().message()));
}

// Returns the devices that CUDA_VISIBLE_DEVICES shows, at least one; FAILED_PRECONDITION with the
// reason if it shows none, or if the driver is too old.
absl::StatusOr<std::vector<DeviceInfo>> FindDevices(const Nvml& nvml) {
  RETURN_IF_ERROR(nvml.CheckDriver(kLeastDriver, kCudaVersion));
  ASSIGN_OR_RETURN(const std::vector<DeviceInfo> all, nvml.List());
  std::optional<std::string> visible;  // empty hides all, and is not the same as absent
  if (const char* set = getenv(kVisibleDevices); set != nullptr) visible = set;
  std::vector<DeviceInfo> devices = VisibleDevices(all, visible);
  if (!devices.empty()) return devices;
  return absl::FailedPreconditionError(
      all.empty() ? "the NVIDIA driver shows no GPU to this user"
                  : absl::StrCat(kVisibleDevices, " shows none of ", all.size(),
                                 all.size() == 1 ? " GPU" : " GPUs"));
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
  const sigset_t signals = process::BlockEndSignals();
  if (flags.role == kPrograms) {
    const absl::StatusOr<Nvml> nvml = Nvml::Load();
    const auto devices = nvml.ok() ? FindDevices(*nvml) : nvml.status();
    if (!devices.ok()) return LastWords(launch::kDeviceUnusableExit, devices.status().message());
    RunToTheEnd(OptionsOfPrograms(flags, *std::move(server), *nvml, devices->front()),
                !flags.join.empty(), signals);
  }
  std::shared_ptr<engine::Accelerator> accelerator;
  if (flags.device == kCuda) {
    auto opened = OpenGpu(flags.role == kTrain ? 1 : kAnalysisMemoryShare);
    if (!opened.ok()) return LastWords(launch::kDeviceUnusableExit, opened.status().message());
    accelerator = *std::move(opened);
  }
  RunToTheEnd(OptionsOfModels(flags, *std::move(server), accelerator), !flags.join.empty(),
              signals);
}

// Prints the devices that CUDA_VISIBLE_DEVICES shows; without one, the reason.
int ListDevices() {
  const absl::StatusOr<Nvml> nvml = Nvml::Load();
  const auto devices = nvml.ok() ? FindDevices(*nvml) : nvml.status();
  if (!devices.ok()) return LastWords(launch::kDeviceUnusableExit, devices.status().message());
  if (!std::filesystem::exists(PluginFile())) {
    return LastWords(launch::kDeviceUnusableExit,
                     absl::StrCat("this build can't use ", devices->front().name, ": there is no ",
                                  PluginFile(), "; run deploy/setup.sh on this machine"));
  }
  for (const DeviceInfo& device : *devices) std::printf("%s\n", ToJson(device).c_str());
  return 0;
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
      "Trains runs of an ablate server, by LibTorch or native kernels, on the cores\n"
      "or a GPU of this machine, or computes analyses there.");
  app.footer(
      "Exit codes:\n"
      "  0   drained\n"
      "  3   another worker has the device or the name\n"
      "  4   the device is lost\n"
      "  5   the server refuses this worker\n"
      "  6   the join file can't be used\n"
      "  7   no GPU can be used\n"
      "  8   no server was reached within the time of --exit-when-idle\n"
      "  64  invalid options");
  ablate::worker::Flags flags;
  ablate::worker::Define(app, flags);
  ablate::worker::RelayFlags relay_flags;
  const CLI::App* const relay = ablate::worker::DefineRelay(app, relay_flags);
  const auto usage = [&app](const CLI::Error& error) {
    return app.exit(error) == 0 ? 0 : kUsageExit;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return usage(error);
  }
  if (relay->parsed()) return ablate::worker::RunRelay(relay_flags);
  if (flags.list_devices) return ablate::worker::ListDevices();
  if (flags.server.empty() == flags.join.empty()) {
    return usage(CLI::ValidationError("exactly one of --server and --join must be given"));
  }
  if (!flags.through.empty() && flags.join.empty()) {
    return usage(CLI::ValidationError("--through", "needs --join"));
  }
  if (const std::string option = ablate::worker::Misplaced(app, flags); !option.empty()) {
    return usage(CLI::ValidationError(option, "is for --role train"));
  }
  if (flags.role == ablate::worker::kPrograms && flags.device != ablate::worker::kCuda) {
    return usage(CLI::ValidationError(
        "--role", "programs needs --device cuda: on the cores, --role train runs programs, too"));
  }
  if (flags.programs != ablate::launch::kOff && flags.program_folder.empty()) {
    return usage(CLI::ValidationError("--programs", "needs --program-folder"));
  }
  if (flags.device == ablate::worker::kCuda && flags.lanes > ablate::engine::kMostDeviceLanes) {
    return usage(
        CLI::ValidationError("--lanes", absl::StrCat("must be 1–", ablate::engine::kMostDeviceLanes,
                                                     " with --device cuda, is ", flags.lanes)));
  }
  return ablate::worker::Work(flags);
}
