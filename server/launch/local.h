// Starts and supervises the worker processes of this machine: posix_spawn, a lock per device,
// restarts with back-off. A device that fails several times in a row is left alone longer.
#ifndef ABLATE_SERVER_LAUNCH_LOCAL_H_
#define ABLATE_SERVER_LAUNCH_LOCAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/mutex.h"

namespace ablate::launch {

// The command line and the files of a worker process.
struct WorkerCommand {
  std::string name;     // of the worker, such as cpu-train
  std::string program;  // absolute path of ablate-worker
  std::vector<std::string> arguments;
  std::vector<std::string> environment = {};  // NAME=VALUE, besides the server's own
  std::string log_file;                       // appended to; stdout and stderr
  std::string pid_file;  // by which a restarted server finds a worker that is still running
  bool on_gpu = false;   // its device fails if it ends with kDeviceLostExit or hangs, too
};

// Exit code of a worker whose device is locked by another process of that name, which continues: it
// is restarted later, and not reported.
inline constexpr int kDeviceTakenExit = 3;
// Exit code of a worker that has lost its device at work: only a new process can use it again.
inline constexpr int kDeviceLostExit = 4;
// Exit code of a worker that can't use its device, as its probe at the start found.
inline constexpr int kDeviceUnusableExit = 7;

struct ChildStart {
  std::string worker;
  int64_t pid = 0;
};

struct ChildExit {
  std::string worker;
  bool by_itself = false;  // exit code other than 0, or SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL
  std::string last_words;  // "exit code 1: <last line of its log>", "killed by SIGSEGV"
  bool succeeded = false;  // exit code 0, without being killed by us
  bool device_unusable = false;  // it could not use its device
  bool device_lost = false;      // it lost its device
  bool hung = false;             // it was killed because it hung
  bool drained = false;          // the device has failed several times in a row: it is left alone
                                 // for a while
};

// Called on the thread of Start, then on the supervisor's; must not block.
struct ChildEvents {
  std::function<void(const ChildStart&)> on_start;  // also for an adopted process
  std::function<void(const ChildExit&)> on_exit;
};

// Asks workers that an earlier server left, and that no command would adopt, to save and end: those
// with pid files in `folder` whose names begin with `prefix`.
void EndLeftovers(const std::string& folder, absl::string_view prefix,
                  const std::vector<WorkerCommand>& commands);

struct SupervisedWorker;

// Keeps one process per command alive. Thread-safe.
class LocalWorkers {
 public:
  // Adopts processes that the pid files name; starts the others. A process started by another
  // command (see CommandHash) is asked to end, and replaced when it has. Workers that can't be
  // started are retried later; returns an error only if none runs. If the folder of a pid file is
  // removed or replaced, it may belong to another server: nothing in it is written or removed any
  // more, and no process is started.
  static absl::StatusOr<std::unique_ptr<LocalWorkers>> Start(std::vector<WorkerCommand> commands,
                                                             ChildEvents events);
  // Leaves the processes running, to be adopted by a restarted server.
  ~LocalWorkers();
  // Kills a process at once, if it still belongs to this worker. It is replaced like any that
  // ended; `why` begins its last words.
  void Kill(const std::string& worker, int64_t pid, absl::string_view why);
  // Sends SIGTERM, then SIGKILL after `timeout`. Waits until all are gone; none is restarted.
  void Stop(absl::Duration timeout);

 private:
  enum class Phase { kKeepAlive, kTerminate, kKill };
  struct KillRequest {
    std::string worker;
    int64_t pid = 0;
    std::string why;
  };

  LocalWorkers(std::vector<SupervisedWorker> workers, process::FileDescriptor wake,
               ChildEvents events);

  // The functions below run on the supervisor's thread.
  void Supervise();
  std::optional<absl::Duration> StopTime();
  bool quitting();
  void NoteStopped();
  void KillHung();
  // Sends each signal of a stop once.
  Phase Signal(Phase phase, std::optional<absl::Duration> stop_by);
  void SignalAll(int signal);
  void RestartDue();
  // Waits until a process ends, a restart or the end of a stop's timeout is due, or there is a
  // request.
  void WaitForEvent(Phase phase, std::optional<absl::Duration> stop_by);
  void ReapEnded();

  void Wake();

  std::vector<SupervisedWorker> workers_;  // used by the supervisor's thread only
  const process::FileDescriptor wake_;
  const ChildEvents events_;
  Mutex mutex_;
  CondVar changed_;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Duration> stop_by_ ABSL_GUARDED_BY(mutex_);
  std::vector<KillRequest> kills_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last member: it uses the others
};

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_LOCAL_H_
