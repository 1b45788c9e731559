// Keeps warm parents, by environment and modules.
#ifndef ABLATE_SERVER_PROGRAM_WARM_POOL_H_
#define ABLATE_SERVER_PROGRAM_WARM_POOL_H_

#include <list>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/program/process.h"
#include "server/program/request.h"
#include "server/program/warm_parent.h"

namespace ablate::program {

// Starts runs by warm parents, which it starts when they are first needed. Keeps the most recently
// used ones, kMostParents at most, because each holds its modules in memory. Thread-safe; a parent
// must not outlive the thread that starts it, so threads that call StartRun live as long as the
// pool.
class WarmPool {
 public:
  static constexpr size_t kMostParents = 4;

  // Forks a run; see WarmParent. A parent that has ended is replaced. Errors as of
  // WarmParent::Start and StartRun.
  absl::StatusOr<std::unique_ptr<Process>> StartRun(const Request& request);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<WarmParent> parent;
  };

  // Returns the parent of these modules, started if there is none. A failed start is the caller's.
  absl::StatusOr<std::shared_ptr<WarmParent>> Find(const Request& request, const std::string& key,
                                                   const std::set<std::string>& imports)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const std::shared_ptr<WarmParent>& parent) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  std::list<Entry> recent_ ABSL_GUARDED_BY(mutex_);  // newest first
};

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_WARM_POOL_H_
