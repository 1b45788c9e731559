// Threads that do what a gRPC reaction must not: wait for the store.
#ifndef ABLATE_SERVER_RPC_WORK_POOL_H_
#define ABLATE_SERVER_RPC_WORK_POOL_H_

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "sync/mutex.h"

namespace ablate::rpc {

// Thread-safe. Tasks start in the order posted and must not throw.
class WorkPool {
 public:
  using Task = std::function<void()>;

  // `max_waiting` bounds what TryPost accepts.
  WorkPool(int threads, size_t max_waiting);
  // Runs what was posted for now, drops what was posted for later.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // For new calls: false, and nothing is kept, if too many tasks wait already.
  [[nodiscard]] bool TryPost(Task task);
  // For calls in progress, of which each has at most one task: always accepted.
  void Post(Task task);
  void PostAfter(absl::Duration delay, Task task);
  // Waits until nothing runs and nothing waits to run now, at most until `deadline`.
  void WaitUntilIdle(std::chrono::steady_clock::time_point deadline);

 private:
  using Time = std::chrono::steady_clock::time_point;

  void Work();
  void KeepTime();

  const size_t max_waiting_;
  Mutex mutex_;
  CondVar ready_changed_;
  CondVar later_changed_;
  CondVar idle_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Task> ready_ ABSL_GUARDED_BY(mutex_);
  std::multimap<Time, Task> later_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
  std::thread timer_;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_WORK_POOL_H_
