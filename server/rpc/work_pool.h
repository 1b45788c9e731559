// Runs work on threads that a gRPC reaction must not do, such as waiting for the store.
#ifndef ABLATE_SERVER_RPC_WORK_POOL_H_
#define ABLATE_SERVER_RPC_WORK_POOL_H_

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "grpcpp/server_context.h"
#include "server/lookup/limits.h"

namespace ablate::rpc {

// Runs tasks on threads. Tasks of one user start in the order posted, and users take turns: one
// with a thousand tasks delays another by at most one of them. An empty user means none: a server
// that isn't shared, and the server itself. Its tasks take turns, too, but have no limit per user.
// Thread-safe. Tasks must not throw.
class WorkPool {
 public:
  using Task = std::function<void()>;
  // Returns the user of a call, or ""; must not block.
  using FindUser = std::function<std::string(const grpc::ServerContextBase& context)>;

  // `threads` limits the tasks that run at once, in all and per user; `waiting`, those that may
  // wait before TryPost refuses.
  WorkPool(lookup::Limit threads, lookup::Limit waiting);
  // Runs the tasks that are due now, and drops those that were posted for later.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Call it before the first call. Without it no call has a user.
  void set_find_user(FindUser find_user) { find_user_ = std::move(find_user); }
  std::string UserOf(const grpc::ServerContextBase& context) const {
    return find_user_ == nullptr ? std::string() : find_user_(context);
  }

  // Posts a task of a new call. RESOURCE_EXHAUSTED, and nothing is kept, if too many tasks wait
  // already, in all or of this user.
  absl::Status TryPost(Task task, const std::string& user = {});
  // Posts a task of a call in progress, of which each has at most one: always accepted.
  void Post(Task task, const std::string& user = {});
  void PostAfter(absl::Duration delay, Task task, const std::string& user = {});
  // Waits until nothing runs or is due, at most until `deadline`.
  void WaitUntilIdle(std::chrono::steady_clock::time_point deadline);

 private:
  using Time = std::chrono::steady_clock::time_point;

  // A user's tasks; deleted when there are none.
  struct Queue {
    std::deque<Task> waiting;
    size_t running = 0;
    bool has_turn = false;  // is in turns_
  };
  using Queues = std::unordered_map<std::string, Queue>;
  using User = Queues::value_type;
  struct Later {
    Task task;
    std::string user;
  };

  void Work();
  void KeepTime();
  void Add(Task task, const std::string& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Queues a user for a thread if one of their tasks may start.
  void GiveTurn(User* user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the first task of the user whose turn it is.
  Task Begin(User* user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(User* user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const lookup::Limit max_running_;
  const lookup::Limit max_waiting_;
  FindUser find_user_;
  Mutex mutex_;
  CondVar turns_changed_;
  CondVar later_changed_;
  CondVar idle_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  Queues queues_ ABSL_GUARDED_BY(mutex_);
  std::deque<User*> turns_ ABSL_GUARDED_BY(mutex_);  // each user once, the next first
  std::multimap<Time, Later> later_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
  std::thread timer_;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_WORK_POOL_H_
