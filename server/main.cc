// Runs the server: reads the flags of ablated, opens its folder, and connects store, scheduler,
// services and local workers.
#include <pwd.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log_file.h"
#include "base/mutex.h"
#include "base/private_folder.h"
#include "base/random.h"
#include "base/socket_path.h"
#include "base/status_macros.h"
#include "server/access/sharing.h"
#include "server/engine/accelerator.h"
#include "server/launch/devices.h"
#include "server/launch/home.h"
#include "server/launch/local.h"
#include "server/launch/presence.h"
#include "server/launch/program_options.h"
#include "server/schedule/scheduler_thread.h"
#include "server/service/alerts.h"
#include "server/service/server.h"
#include "server/sql/child.h"
#include "storage/store.h"

namespace ablate {
namespace {

// Log space that deletes of large experiments, or the start of a server, need: a few MB.
constexpr uint64_t kBallastBytes = 16 << 20;
// A worker saves its runs' states before it leaves.
constexpr absl::Duration kWorkerTimeout = absl::Seconds(20);
constexpr uint64_t kMaxLastStates = 1'000'000'000'000'000;

struct Flags {
  std::string home;
  int lanes = 0;      // on the cores; 0: the worker's own choice
  int gpu_lanes = 0;  // on each GPU, likewise
  int gpu_programs = 1;
  std::string devices = "all";
  std::string worker;
  bool no_workers = false;
  bool sweep_leftovers = false;
  uint64_t last_states = storage::kLastStatesBytes;
  double resume_every = 30;
  double worker_silence = 30;
  std::string listen;
  int metrics = 0;       // 0: no port
  std::string alerts;    // empty: none
  std::string programs;  // empty: sandboxed unless it listens
  std::vector<std::string> environments;
};

constexpr size_t kHelpColumn = 27;  // lines of the help have at most 80 columns

void Define(CLI::App& app, Flags& flags) {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  flags.home = process::DefaultHome(process::EnvironmentVariable);
  flags.worker = (self.parent_path() / "ablate-worker").string();
  app.set_version_flag("--version", absl::StrCat("ablated ", ABLATE_VERSION));
  app.get_formatter()->column_width(kHelpColumn);
  app.add_option("--home", flags.home,
                 absl::StrCat("Folder of everything that the server stores\n[", flags.home, "]"))
      ->type_name("FOLDER");
  app.add_option("--lanes", flags.lanes,
                 "Train N runs at the same time on the cores, 1–4096\n[one per core]")
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("N");
  app.add_option("--devices", flags.devices,
                 "GPUs to use besides the cores: all, none, or a list\n"
                 "such as cuda:0,cuda:1, as nvidia-smi numbers them\n[all]")
      ->check([](const std::string& devices) {
        return std::string(launch::ReadDeviceChoice(devices).status().message());
      })
      ->type_name("DEVICES");
  app.add_option("--gpu-lanes", flags.gpu_lanes,
                 absl::StrCat("Train N runs at the same time on each GPU, 1–",
                              engine::kMostDeviceLanes, "\n[found by measuring]"))
      ->check(CLI::Range(1, engine::kMostDeviceLanes).description(""))
      ->type_name("N");
  app.add_option(
         "--gpu-programs", flags.gpu_programs,
         "Run N users' programs at the same time on each GPU,\n0–16, in addition to models [1]")
      ->check(CLI::Range(0, engine::kMostDeviceLanes).description(""))
      ->type_name("N");
  app.add_option("--worker", flags.worker,
                 absl::StrCat("Program of the local workers\n[", flags.worker, "]"))
      ->type_name("PROGRAM");
  app.add_flag("--no-workers", flags.no_workers, "Start no local worker");
  app.add_flag("--sweep-leftovers", flags.sweep_leftovers,
               "Move blobs that the database doesn't list to the\n"
               "trash, also if these are most of all blobs");
  app.add_option("--last-states", flags.last_states,
                 "Keep saved training states of ended runs, at most\n"
                 "SIZE in all, such as 500MB, so that the same runs\n"
                 "with more steps continue from them; the oldest are\n"
                 "deleted first, 0 keeps none [2GB]")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true).description(""))
      ->check(CLI::Range(uint64_t{0}, kMaxLastStates).description(""))
      ->type_name("SIZE");
  app.add_option("--programs", flags.programs,
                 "Run users' programs: sandboxed,\n"
                 "unsandboxed, or off [sandboxed; off with --listen]")
      ->check(
          CLI::IsMember({launch::kSandboxed, launch::kUnsandboxed, launch::kOff}).description(""))
      ->type_name("MODE");
  app.add_option("--environment", flags.environments,
                 "Offer programs the Python interpreter PATH, absolute,\n"
                 "as environment NAME, with FOLDERs of data to read;\n"
                 "may be repeated")
      ->check(launch::EnvironmentProblem)
      ->type_name("NAME=PATH[:FOLDER…]");
  app.add_option("--resume-every", flags.resume_every,
                 "Save the training state of each run, and the state\n"
                 "of each analysis, every SECONDS, 0–86400 [30]")
      ->check(CLI::Range(0.0, 86400.0).description(""))
      ->type_name("SECONDS");
  app.add_option("--worker-silence", flags.worker_silence,
                 "Give up a worker that has been silent for SECONDS,\n"
                 "and restart a local one, 1–50 [30]")
      ->check(CLI::Range(1.0, 50.0).description(""))
      ->type_name("SECONDS");
  app.add_option("--metrics", flags.metrics,
                 "Serve the state to Prometheus at\nhttp://127.0.0.1:PORT/metrics, 1–65535")
      ->check(CLI::Range(1, 65535).description(""))
      ->type_name("PORT");
  app.add_option("--alerts", flags.alerts,
                 "Command that /bin/sh runs when a run fails, an\n"
                 "experiment ends, the disk fills or pilots fail;\n"
                 "it reads a line of JSON")
      ->type_name("COMMAND");
  app.add_option("--listen", flags.listen,
                 "Serve other machines at HOST:PORT by TLS and\n"
                 "tokens; run `ablate admin init` first")
      ->type_name("HOST:PORT");
}

std::string UserName() {
  const passwd* user = getpwuid(geteuid());
  return user == nullptr ? absl::StrCat("uid ", geteuid()) : user->pw_name;
}

// Passes the store's commits to the server while it exists.
class Commits {
 public:
  void PassTo(service::Server* server) {
    MutexLock lock(&mutex_);
    server_ = server;
  }
  void operator()(uint64_t change) {
    MutexLock lock(&mutex_);
    if (server_ != nullptr) server_->Notify(change);
  }

 private:
  Mutex mutex_;
  service::Server* server_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// Passes the scheduler's reports of hung processes to the supervisor, which kills them, while it
// exists.
class HungProcesses {
 public:
  void PassTo(launch::LocalWorkers* workers) {
    MutexLock lock(&mutex_);
    workers_ = workers;
  }
  void operator()(const schedule::LocalProcess& process, absl::string_view why) {
    MutexLock lock(&mutex_);
    if (workers_ == nullptr) return;
    spdlog::warn("worker {} hangs: {}; killing its process {}", process.worker, std::string(why),
                 process.pid);
    workers_->Kill(process.worker, process.pid, absl::StrCat("it hung: ", why));
  }

 private:
  Mutex mutex_;
  launch::LocalWorkers* workers_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

constexpr char kTrainer[] = "cpu-train";
constexpr char kAnalyst[] = "cpu-analysis";
constexpr char kGpuPrefix[] = "cuda-";           // of the names of workers on GPUs
constexpr char kAnalysisSuffix[] = "-analysis";  // of the names of workers for analyses

// Returns the command that all workers of this machine share.
launch::WorkerCommand LocalWorker(const std::string& name, const std::string& role,
                                  const std::string& lock, const Flags& flags,
                                  const launch::Home& home, const std::string& blobs) {
  launch::WorkerCommand command;
  command.name = name;
  command.program = std::filesystem::absolute(flags.worker).string();
  command.arguments = {absl::StrCat("--server=", process::SocketAddress(home.worker_socket)),
                       absl::StrCat("--role=", role),
                       absl::StrCat("--name=", name),
                       absl::StrCat("--lock=", home.run_folder, "/", lock, ".lock"),
                       absl::StrCat("--blobs=", blobs),
                       absl::StrCat("--resume-every=", flags.resume_every)};
  command.log_file = absl::StrCat(home.log_folder, "/", name, ".log");
  command.pid_file = absl::StrCat(home.run_folder, "/", name, ".pid");
  return command;
}

// A shared server's owner decides it, because users aren't the owner.
std::string ProgramMode(const Flags& flags) {
  if (!flags.programs.empty()) return flags.programs;
  return flags.listen.empty() ? launch::kSandboxed : launch::kOff;
}

// Lets a worker run programs.
void AddPrograms(const Flags& flags, const launch::Home& home, launch::WorkerCommand* command) {
  const std::string mode = ProgramMode(flags);
  command->arguments.push_back(absl::StrCat("--programs=", mode));
  if (mode == launch::kOff) return;
  command->arguments.push_back(
      absl::StrCat("--program-folder=", home.folder, "/programs/", command->name));
  for (const std::string& environment : flags.environments) {
    command->arguments.push_back(absl::StrCat("--environment=", environment));
  }
}

void AddLanes(int lanes, launch::WorkerCommand* command) {
  if (lanes > 0) command->arguments.push_back(absl::StrCat("--lanes=", lanes));
}

// Returns the command of a GPU's worker of a role, which sees no other GPU.
launch::WorkerCommand GpuWorker(const launch::ListedDevice& device, const std::string& role,
                                const Flags& flags, const launch::Home& home,
                                const std::string& blobs) {
  const std::string name = absl::StrCat(kGpuPrefix, device.index, "-", role);
  const std::string lock = role == "train" ? device.uuid : absl::StrCat(device.uuid, "-", role);
  launch::WorkerCommand command = LocalWorker(name, role, lock, flags, home, blobs);
  command.arguments.push_back("--device=cuda");
  command.environment = {absl::StrCat("CUDA_VISIBLE_DEVICES=", device.uuid)};
  command.on_gpu = true;
  if (role == "train") AddLanes(flags.gpu_lanes, &command);
  if (role == "programs") {
    AddLanes(flags.gpu_programs, &command);
    AddPrograms(flags, home, &command);
  }
  return command;
}

absl::StatusOr<std::vector<launch::ListedDevice>> ChosenDevices(const Flags& flags) {
  return launch::FindDevices(*launch::ReadDeviceChoice(flags.devices),
                             std::filesystem::absolute(flags.worker).string());
}

// `blobs` is the folder of the server's blobs.
std::vector<launch::WorkerCommand> LocalCommands(const Flags& flags,
                                                 const std::vector<launch::ListedDevice>& devices,
                                                 const launch::Home& home,
                                                 const std::string& blobs) {
  if (flags.no_workers) return {};
  std::vector<launch::WorkerCommand> commands = {
      LocalWorker(kTrainer, "train", kTrainer, flags, home, blobs),
      LocalWorker(kAnalyst, "analysis", kAnalyst, flags, home, blobs)};
  AddLanes(flags.lanes, &commands[0]);
  AddPrograms(flags, home, &commands[0]);
  for (const launch::ListedDevice& device : devices) {
    commands.push_back(GpuWorker(device, "train", flags, home, blobs));
    commands.push_back(GpuWorker(device, "analysis", flags, home, blobs));
    if (flags.gpu_programs > 0 && ProgramMode(flags) != launch::kOff) {
      commands.push_back(GpuWorker(device, "programs", flags, home, blobs));
    }
  }
  return commands;
}

// Owns everything that serves. Destroyed in reverse: workers and server first, then the scheduler,
// then the store, then the pid file. Without the pid file `ablate up` starts a server, which would
// find the folder locked if the store still existed.
class Program {
 public:
  Program() = default;
  ~Program() {
    commits_.PassTo(nullptr);
    hung_.PassTo(nullptr);
    if (presence_ != nullptr) {
      presence_->LeaveClients();
      presence_->LeaveWorkers();
    }
  }
  absl::Status Start(const Flags& flags, const launch::Home& home);
  // Ends clients' calls, lets local workers save and leave.
  void Stop(const Flags& flags);
  // Null until Start has succeeded.
  launch::Presence* presence() { return presence_.get(); }
  int public_port() const { return server_->public_port(); }

 private:
  absl::Status StartScheduler(const Flags& flags, const launch::Home& home);
  absl::Status StartWorkers(const Flags& flags, const launch::Home& home);

  std::vector<launch::ListedDevice> devices_;  // GPUs to use
  Commits commits_;
  HungProcesses hung_;
  std::unique_ptr<launch::Presence> presence_;
  std::unique_ptr<access::Sharing> sharing_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<schedule::Scheduler> scheduler_;
  std::unique_ptr<schedule::SchedulerThread> thread_;
  std::unique_ptr<service::Server> server_;
  std::unique_ptr<service::Alerts> alerts_;  // null unless asked for
  std::unique_ptr<launch::LocalWorkers> workers_;
};

absl::Status Program::Start(const Flags& flags, const launch::Home& home) {
  RETURN_IF_ERROR(StartScheduler(flags, home));
  // GPUs that the caller names must be there before clients can connect; others are found
  // afterwards, because that takes seconds.
  if (!flags.no_workers && !launch::ReadDeviceChoice(flags.devices)->all) {
    ASSIGN_OR_RETURN(devices_, ChosenDevices(flags));
  }
  // The store has locked the folder.
  presence_ = std::make_unique<launch::Presence>(home);
  service::ServerOptions options;
  options.client_address = process::SocketAddress(presence_->client_draft());
  options.worker_address = process::SocketAddress(presence_->worker_draft());
  options.owner = UserName();
  options.sharing = sharing_.get();
  options.public_address = flags.listen;
  if (flags.metrics > 0) options.metrics_port = flags.metrics;
  ASSIGN_OR_RETURN(server_, service::Server::Start(options, store_.get(), thread_.get()));
  commits_.PassTo(server_.get());
  RETURN_IF_ERROR(presence_->TakeSocketNames());
  if (!flags.alerts.empty()) {
    alerts_ = std::make_unique<service::Alerts>(flags.alerts, store_.get(), thread_.get());
  }
  // Last: a server that can't listen leaves the workers of an earlier one alone.
  return StartWorkers(flags, home);
}

absl::Status Program::StartScheduler(const Flags& flags, const launch::Home& home) {
  storage::StoreOptions options;
  options.folder = home.folder;
  options.log = [](const std::string& line) { spdlog::info("{}", line); };
  options.sweep_leftovers = flags.sweep_leftovers;
  options.last_states_bytes = flags.last_states;
  options.ballast_bytes = kBallastBytes;
  options.on_commit = [this](uint64_t change) { commits_(change); };
  ASSIGN_OR_RETURN(store_, storage::Store::Open(std::move(options)));
  // Before the scheduler, which reads quotas.
  ASSIGN_OR_RETURN(sharing_, access::Sharing::Open(home.folder));
  schedule::SchedulerOptions waits = schedule::WithSilence(absl::Seconds(flags.worker_silence));
  waits.on_hung = [this](const schedule::LocalProcess& process, absl::string_view why) {
    hung_(process, why);
  };
  waits.max_lanes = [this](const std::string& user) {
    const auto known = sharing_->store().GetUser(user);
    return known.ok() ? known->quota.lanes : std::optional<int64_t>();
  };
  scheduler_ = std::make_unique<schedule::Scheduler>(store_.get(), &SteadyClock(), std::move(waits),
                                                     process::RandomId);
  RETURN_IF_ERROR(scheduler_->Start());
  thread_ = std::make_unique<schedule::SchedulerThread>(scheduler_.get());
  return absl::OkStatus();
}

absl::Status Program::StartWorkers(const Flags& flags, const launch::Home& home) {
  launch::ChildEvents events;
  events.on_start = [this](const launch::ChildStart& start) {
    thread_->Post([start](schedule::Scheduler& inside) {
      inside.Started({start.worker, start.pid});
    });
  };
  events.on_exit = [this](const launch::ChildExit& exit) {
    if (exit.succeeded) {
      spdlog::info("worker {} ended", exit.worker);
    } else {
      spdlog::warn("worker {} ended: {}{}", exit.worker, exit.last_words,
                   exit.drained ? "; its device is left alone for 10 minutes" : "");
    }
    thread_->Post([exit](schedule::Scheduler& inside) {
      inside.Exited({exit.worker, exit.by_itself, exit.last_words,
                     absl::EndsWith(exit.worker, kAnalysisSuffix), exit.drained});
    });
  };
  if (!flags.no_workers && launch::ReadDeviceChoice(flags.devices)->all) {
    devices_ = *ChosenDevices(flags);
  }
  std::vector<launch::WorkerCommand> commands =
      LocalCommands(flags, devices_, home, store_->blobs()->folder());
  if (!flags.no_workers) launch::EndLeftovers(home.run_folder, kGpuPrefix, commands);
  ASSIGN_OR_RETURN(workers_, launch::LocalWorkers::Start(std::move(commands), std::move(events)));
  hung_.PassTo(workers_.get());
  return absl::OkStatus();
}

void Program::Stop(const Flags& flags) {
  presence_->LeaveClients();
  // Without its folder the store can't write, and must end the process; the workers must be told to
  // leave before that.
  const bool stores = presence_->OwnsFolder();
  if (stores) server_->StopClients();
  if (flags.no_workers) return;
  if (stores) thread_->Run([](schedule::Scheduler& inside) { inside.DrainAll(); });
  workers_->Stop(kWorkerTimeout);
}

// Waits for a signal, which isn't an error, or until clients can't find the server any more. In the
// latter case it would hold the folder forever, and a supervisor must start another.
absl::Status WaitForEnd(launch::Presence* presence, const launch::Home& home,
                        const sigset_t& signals) {
  const int signal = process::AwaitSignal(signals, [&] { return presence->Keep(); });
  if (signal > 0) {
    spdlog::info("{}: shutting down", signal == SIGTERM ? "SIGTERM" : "SIGINT");
    return absl::OkStatus();
  }
  spdlog::error(
      "the sockets in {} were removed or replaced, so that nobody reaches this server: shutting "
      "down",
      home.run_folder);
  const absl::Status announced = presence->AnnounceEnd();
  if (!announced.ok()) spdlog::warn("{}", std::string(announced.message()));
  return absl::UnavailableError(
      "clients can't reach this server any more: its sockets were removed or replaced");
}

absl::Status Serve(const Flags& flags, const sigset_t& signals) {
  if (flags.home.empty()) {
    return absl::FailedPreconditionError(
        "no folder for the server: give --home, or set ABLATE_HOME or HOME");
  }
  // A socket that once had no descriptor for a client accepts none after it.
  process::RaiseFileLimit();
  ASSIGN_OR_RETURN(const auto home, launch::PrepareHome(flags.home));
  Program program;
  RETURN_IF_ERROR(program.Start(flags, home));
  absl::Status end = program.presence()->Announce();
  if (end.ok()) {
    spdlog::info("serving {} on {}", home.folder, process::SocketAddress(home.client_socket));
    if (!flags.listen.empty()) {
      spdlog::info("serving others on {}, port {}", flags.listen, program.public_port());
    }
    end = WaitForEnd(program.presence(), home, signals);
  }
  program.Stop(flags);
  return end;
}

int Main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("ablated"));
  CLI::App app("The server of ablate: stores experiments and schedules their runs.");
  Flags flags;
  Define(app, flags);
  CLI11_PARSE(app, argc, argv);
  const absl::Status served = Serve(flags, process::BlockEndSignals());
  if (!served.ok()) spdlog::error("{}", std::string(served.message()));
  return served.ok() ? 0 : 1;
}

}  // namespace
}  // namespace ablate

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == ablate::sql::kSqlChild)
    return ablate::sql::RunSqlChild();
  return ablate::Main(argc, argv);
}
