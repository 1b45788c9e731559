// Starts Python programs fast: a process in a sandbox imports modules once, and forks each run.
#ifndef ABLATE_SERVER_PROGRAM_WARM_START_H_
#define ABLATE_SERVER_PROGRAM_WARM_START_H_

#include <cstddef>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
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

struct WarmParent;  // a process that forks runs

// Forks runs from processes, one per environment and set of modules, which it starts when they are
// first needed. Keeps the most recently used ones, kMostParents at most, because each holds its
// modules in memory. A run is apart from others as in a sandbox of its own: processes, files, /tmp
// and /dev/shm; it sees only its own folder. Thread-safe; a process ends with the thread that
// started it, so threads that call StartRun live as long as the pool.
class WarmPool {
 public:
  static constexpr size_t kMostParents = 4;

  // Forks a run of a checked request that MayFork. The folders of all runs are in one folder. A new
  // process has a minute to import; a module that it can't import is left to the runs, which then
  // say why. A process that has ended is replaced. UNAVAILABLE if that fails, too.
  absl::StatusOr<std::unique_ptr<Process>> StartRun(const Request& request)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Holds a process that is started when it is first needed.
  struct Place {
    Mutex mutex;  // held while it starts, so that threads which need the same one wait
    std::shared_ptr<WarmParent> parent ABSL_GUARDED_BY(mutex);
  };

  std::shared_ptr<Place> Find(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  // Newest first.
  std::list<std::pair<std::string, std::shared_ptr<Place>>> recent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_WARM_START_H_
