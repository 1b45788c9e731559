#include "server/launch/local.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log_file.h"
#include "base/process_id.h"
#include "base/status_macros.h"
#include "server/launch/worker_process.h"

// glibc 2.36 doesn't declare these with C linkage.
extern "C" {
#include <sys/pidfd.h>
}

namespace ablate::launch {

using process::FileDescriptor;

// The place of a worker's pid file. Holds the folder open, so that a removed folder isn't confused
// with another server's folder of the same name.
class PidFilePlace {
 public:
  explicit PidFilePlace(const std::string& file) : file_(file) {
    folder_ = std::filesystem::path(file).parent_path().string();
    held_ = FileDescriptor(open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  // Returns the file's path in the held folder, independent of its name. If the folder was removed,
  // nothing is found and nothing can be created in it.
  std::string file() const {
    if (!held_.open()) return file_;
    const std::string name = std::filesystem::path(file_).filename().string();
    return absl::StrCat("/proc/self/fd/", held_.get(), "/", name);
  }
  // Returns true if the name no longer refers to the held folder. A folder that never existed isn't
  // lost.
  bool lost() const {
    struct stat held {
    }, named{};
    if (!held_.open() || fstat(held_.get(), &held) != 0) return false;
    if (stat(folder_.c_str(), &named) != 0) return errno == ENOENT || errno == ENOTDIR;
    return held.st_dev != named.st_dev || held.st_ino != named.st_ino;
  }

 private:
  std::string file_;
  std::string folder_;
  FileDescriptor held_;
};

// The supervisor's view of a worker. Used by the supervisor's thread only, once that runs.
struct SupervisedWorker {
  explicit SupervisedWorker(WorkerCommand started_by)
      : command(std::move(started_by)), pid_file(command.pid_file) {}

  WorkerCommand command;
  PidFilePlace pid_file;
  pid_t pid = 0;
  FileDescriptor pidfd;  // open while the process runs
  uint64_t log_start = 0;
  absl::Duration started;
  absl::Duration delay;       // wait before the last start
  absl::Duration restart_at;  // valid while it doesn't run
  std::string killed_for;     // why we killed it; empty if we didn't
  int failures = 0;           // of its device in a row
};

namespace {

absl::Status Watch(SupervisedWorker& worker, pid_t pid) {
  FileDescriptor descriptor(pidfd_open(pid, 0));
  if (!descriptor.open()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch worker ", worker.command.name));
  }
  worker.pid = pid;
  worker.pidfd = std::move(descriptor);
  worker.started = MonotonicNow();
  worker.killed_for.clear();
  return absl::OkStatus();
}

absl::Status StartProcess(SupervisedWorker& worker) {
  process::BoundLog(worker.command.log_file);
  worker.log_start = process::FileSize(worker.command.log_file);
  ASSIGN_OR_RETURN(const process::ProcessId spawned, Spawn(worker.command));
  if (absl::Status watched = Watch(worker, spawned.pid); !watched.ok()) {
    // Its end would go unnoticed.
    kill(spawned.pid, SIGKILL);
    waitpid(spawned.pid, nullptr, 0);
    return watched;
  }
  // Without its file a restarted server wouldn't find the worker; the device's lock then keeps a
  // second one out until it ends.
  const absl::Status written =
      process::WritePidFile(worker.pid_file.file(), {spawned, CommandHash(worker.command)});
  if (!written.ok()) spdlog::warn("{}", std::string(written.message()));
  return absl::OkStatus();
}

// Replaces a process of another program, other options or another socket: it saves, exits, and is
// started again with the new command.
void Replace(const SupervisedWorker& worker) {
  spdlog::info("worker {} was started with another program or other options: replacing it",
               worker.command.name);
  pidfd_send_signal(worker.pidfd.get(), SIGTERM, nullptr, 0);
}

absl::Status StartOrAdopt(SupervisedWorker& worker) {
  if (const auto found = process::FindByPidFile(worker.pid_file.file())) {
    // Checks again once it is watched, because it may have ended and its number been reused in
    // between.
    const bool adopted = Watch(worker, found->process.pid).ok() &&
                         process::FindByPidFile(worker.pid_file.file()).has_value();
    if (adopted) {
      if (found->command != CommandHash(worker.command)) Replace(worker);
      return absl::OkStatus();
    }
    worker.pidfd = FileDescriptor();
  }
  return StartProcess(worker);
}

// Sets the delay for a worker that ran for `ran` and isn't running.
void DelayRestart(SupervisedWorker& worker, absl::Duration ran) {
  worker.delay = RestartDelay(worker.delay, ran);
  worker.restart_at = MonotonicNow() + worker.delay;
}

bool NoneRuns(const std::vector<SupervisedWorker>& workers) {
  return std::none_of(workers.begin(), workers.end(),
                      [](const SupervisedWorker& worker) { return worker.pidfd.open(); });
}

// Returns nullopt if the process never worked.
std::optional<ChildExit> Reap(const SupervisedWorker& worker) {
  const std::string tail = LastLine(worker.command.log_file, worker.log_start);
  siginfo_t ended{};
  const auto pidfd = static_cast<id_t>(worker.pidfd.get());
  if (waitid(P_PIDFD, pidfd, &ended, WEXITED | WNOHANG) == 0 && ended.si_pid != 0) {
    const bool taken = ended.si_code == CLD_EXITED && ended.si_status == kDeviceTakenExit;
    if (taken) return std::nullopt;
    ChildExit exit = DescribeExit(worker.command.name, ended, tail);
    if (!worker.killed_for.empty()) {
      exit.succeeded = false;
      exit.hung = true;
      exit.last_words = absl::StrCat(worker.killed_for, "; ", exit.last_words);
    }
    return exit;
  }
  // Only a parent learns the exit status; an unknown one must not count against runs.
  ChildExit exit;
  exit.worker = worker.command.name;
  exit.last_words =
      absl::StrCat(worker.killed_for.empty() ? "ended" : worker.killed_for,
                   "; it was started by an earlier server, so its exit status is unknown");
  if (!tail.empty()) absl::StrAppend(&exit.last_words, ": ", tail);
  return exit;
}

}  // namespace

void EndLeftovers(const std::string& folder, absl::string_view prefix,
                  const std::vector<WorkerCommand>& commands) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string file = entry.path().string();
    const bool wanted =
        std::any_of(commands.begin(), commands.end(),
                    [&file](const WorkerCommand& command) { return command.pid_file == file; });
    const std::string name = entry.path().stem().string();
    if (wanted || entry.path().extension() != ".pid" || !absl::StartsWith(name, prefix)) continue;
    const std::optional<process::PidFile> left = process::FindByPidFile(file);
    if (!left.has_value()) continue;
    spdlog::info("worker {} of an earlier server isn't wanted: ending it", name);
    kill(left->process.pid, SIGTERM);
  }
}

absl::StatusOr<std::unique_ptr<LocalWorkers>> LocalWorkers::Start(
    std::vector<WorkerCommand> commands, ChildEvents events) {
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.open()) return absl::ErrnoToStatus(errno, "cannot make an event descriptor");
  std::vector<SupervisedWorker> workers;
  for (WorkerCommand& command : commands) workers.emplace_back(std::move(command));
  absl::Status first_error;
  for (SupervisedWorker& worker : workers) {
    const absl::Status started = StartOrAdopt(worker);
    if (started.ok()) {
      events.on_start({worker.command.name, worker.pid});
      continue;
    }
    spdlog::error("{}", std::string(started.message()));
    DelayRestart(worker, absl::ZeroDuration());
    first_error.Update(started);
  }
  // If one works, the others are retried, as after any other end.
  if (NoneRuns(workers) && !first_error.ok()) return first_error;
  return std::unique_ptr<LocalWorkers>(
      new LocalWorkers(std::move(workers), std::move(wake), std::move(events)));
}

LocalWorkers::LocalWorkers(std::vector<SupervisedWorker> workers, FileDescriptor wake,
                           ChildEvents events)
    : workers_(std::move(workers)),
      wake_(std::move(wake)),
      events_(std::move(events)),
      thread_([this] { Supervise(); }) {}

LocalWorkers::~LocalWorkers() {
  {
    MutexLock lock(&mutex_);
    quit_ = true;
  }
  Wake();
  thread_.join();
}

void LocalWorkers::Kill(const std::string& worker, int64_t pid, absl::string_view why) {
  MutexLock lock(&mutex_);
  kills_.push_back({worker, pid, std::string(why)});
  Wake();
}

void LocalWorkers::Stop(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  if (!stop_by_) stop_by_ = MonotonicNow() + timeout;
  Wake();
  while (!stopped_) changed_.Wait(&mutex_);
}

void LocalWorkers::Supervise() {
  Phase phase = Phase::kKeepAlive;
  while (true) {
    const std::optional<absl::Duration> stop_by = StopTime();
    if (!stop_by && quitting()) return;
    KillHung();
    phase = Signal(phase, stop_by);
    if (phase == Phase::kKeepAlive) RestartDue();
    if (phase != Phase::kKeepAlive && NoneRuns(workers_)) return NoteStopped();
    WaitForEvent(phase, stop_by);
    ReapEnded();
  }
}

std::optional<absl::Duration> LocalWorkers::StopTime() {
  MutexLock lock(&mutex_);
  return stop_by_;
}

bool LocalWorkers::quitting() {
  MutexLock lock(&mutex_);
  return quit_;
}

void LocalWorkers::NoteStopped() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

void LocalWorkers::KillHung() {
  std::vector<KillRequest> kills;
  {
    MutexLock lock(&mutex_);
    kills.swap(kills_);
  }
  for (KillRequest& request : kills) {
    for (SupervisedWorker& worker : workers_) {
      const bool meant =
          worker.command.name == request.worker && worker.pidfd.open() && worker.pid == request.pid;
      if (!meant) continue;
      worker.killed_for = request.why;
      pidfd_send_signal(worker.pidfd.get(), SIGKILL, nullptr, 0);
    }
  }
}

LocalWorkers::Phase LocalWorkers::Signal(Phase phase, std::optional<absl::Duration> stop_by) {
  if (!stop_by) return Phase::kKeepAlive;
  if (phase == Phase::kKeepAlive) {
    SignalAll(SIGTERM);
    phase = Phase::kTerminate;
  }
  if (phase == Phase::kTerminate && MonotonicNow() >= *stop_by) {
    SignalAll(SIGKILL);
    phase = Phase::kKill;
  }
  return phase;
}

void LocalWorkers::SignalAll(int signal) {
  for (const SupervisedWorker& worker : workers_) {
    if (worker.pidfd.open()) pidfd_send_signal(worker.pidfd.get(), signal, nullptr, 0);
  }
}

void LocalWorkers::RestartDue() {
  for (SupervisedWorker& worker : workers_) {
    if (worker.pidfd.open() || MonotonicNow() < worker.restart_at) continue;
    if (worker.pid_file.lost()) {
      // A process started now would take another server's device and socket.
      DelayRestart(worker, absl::ZeroDuration());
      continue;
    }
    const absl::Status started = StartProcess(worker);
    if (started.ok()) {
      events_.on_start({worker.command.name, worker.pid});
      continue;
    }
    DelayRestart(worker, absl::ZeroDuration());
    events_.on_exit(ChildExit{worker.command.name, false, std::string(started.message())});
  }
}

void LocalWorkers::WaitForEvent(Phase phase, std::optional<absl::Duration> stop_by) {
  std::vector<pollfd> events = {{wake_.get(), POLLIN, 0}};
  std::optional<absl::Duration> due;
  if (phase == Phase::kTerminate) due = stop_by;
  for (const SupervisedWorker& worker : workers_) {
    if (worker.pidfd.open()) {
      events.push_back({worker.pidfd.get(), POLLIN, 0});
    } else if (phase == Phase::kKeepAlive) {
      due = due ? std::min(*due, worker.restart_at) : worker.restart_at;
    }
  }
  int timeout = -1;
  if (due) {
    const absl::Duration left = std::max(*due - MonotonicNow(), absl::ZeroDuration());
    timeout = static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
  }
  poll(events.data(), events.size(), timeout);
  uint64_t wakes = 0;
  if (events[0].revents != 0 && read(wake_.get(), &wakes, sizeof wakes) < 0) return;
}

void LocalWorkers::ReapEnded() {
  for (SupervisedWorker& worker : workers_) {
    if (!worker.pidfd.open()) continue;
    pollfd event{worker.pidfd.get(), POLLIN, 0};
    if (poll(&event, 1, 0) != 1) continue;
    std::optional<ChildExit> exit = Reap(worker);
    worker.pidfd = FileDescriptor();
    process::RemovePidFile(worker.pid_file.file(), worker.pid);
    const absl::Duration lived = MonotonicNow() - worker.started;
    DelayRestart(worker, lived);
    worker.failures =
        exit ? CountDeviceFailures(worker.failures, *exit, worker.command.on_gpu, lived) : 0;
    if (exit && IsDrained(worker.failures, *exit)) {
      exit->drained = true;
      worker.restart_at = MonotonicNow() + kDrainedDelay;
    }
    if (exit) events_.on_exit(*exit);
  }
}

void LocalWorkers::Wake() {
  const uint64_t one = 1;
  // Fails only if the counter is full, and then the thread wakes anyway.
  if (write(wake_.get(), &one, sizeof one) < 0) return;
}

}  // namespace ablate::launch
