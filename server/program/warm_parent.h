// Starts Python programs fast: a process in a sandbox imports modules once, and forks each run.
#ifndef ABLATE_SERVER_PROGRAM_WARM_PARENT_H_
#define ABLATE_SERVER_PROGRAM_WARM_PARENT_H_

#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/mutex.h"
#include "server/program/environment.h"
#include "server/program/process.h"
#include "server/program/request.h"

namespace ablate::program {

// The program of the process, in the folder of helpers.
inline constexpr char kWarmStartFile[] = "warm_start.py";

// Returns true if a run may be forked: in the sandbox, of a command that begins with python or
// python3 and a script, -m or -c.
bool MayFork(const Request& request);

// Returns the modules worth importing once that Python files in the folder, and in folders below
// it, import: those of a short list of large ones, such as torch.
std::set<std::string> FindImports(const std::string& folder);

// The process of an environment and a set of modules. Thread-safe. It ends with the thread that
// started it. A run is apart from others as in a sandbox of its own: processes, files, /tmp and
// /dev/shm; it sees only its own folder.
class WarmParent {
 public:
  // Starts the process and waits until it has imported the modules, at most a minute. `folder` has
  // the runs' folders. A module that can't be imported is left to the runs, which then say why.
  static absl::StatusOr<std::unique_ptr<WarmParent>> Start(const Environment& environment,
                                                           const std::string& folder,
                                                           const std::string& helpers,
                                                           const std::set<std::string>& imports);
  // Kills the process and its runs.
  ~WarmParent();
  WarmParent(const WarmParent&) = delete;
  WarmParent& operator=(const WarmParent&) = delete;

  // Forks a run of a checked request that MayFork, whose folder is directly in the parent's.
  // UNAVAILABLE if the process has ended.
  absl::StatusOr<std::unique_ptr<Process>> StartRun(const Request& request);

 private:
  WarmParent(std::string folder, std::unique_ptr<Process> process, process::FileDescriptor channel)
      : folder_(std::move(folder)), process_(std::move(process)), channel_(std::move(channel)) {}

  const std::string folder_;
  const std::unique_ptr<Process> process_;
  Mutex mutex_;
  const process::FileDescriptor channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_WARM_PARENT_H_
