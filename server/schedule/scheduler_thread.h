// Runs a Scheduler on its own thread: callers post tasks and don't block.
#ifndef ABLATE_SERVER_SCHEDULE_SCHEDULER_THREAD_H_
#define ABLATE_SERVER_SCHEDULE_SCHEDULER_THREAD_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "server/schedule/scheduler.h"

namespace ablate::schedule {

// Runs posted tasks in order and calls Tick between them about once a second. Thread-safe.
class SchedulerThread {
 public:
  // `scheduler` must outlive this object; nobody else may use it until the destructor returns.
  explicit SchedulerThread(Scheduler* scheduler);
  // Runs the posted tasks, then stops.
  ~SchedulerThread();

  void Post(std::function<void(Scheduler&)> task);
  // Posts a task and waits for it. Don't call it from the scheduler's thread.
  void Run(const std::function<void(Scheduler&)>& task);
  // These don't use the scheduler's thread.
  absl::Duration save_timeout() const { return scheduler_->save_timeout(); }
  Analyses& analyses() { return scheduler_->analyses(); }

 private:
  using Task = std::function<void(Scheduler&)>;

  // Shared with callers that can still post after the thread has ended; such tasks are dropped.
  class TaskQueue {
   public:
    void Push(Task task);
    void Close();
    // Returns the next task; nothing at `deadline`, or when closed and empty.
    std::optional<Task> PopUntil(std::chrono::steady_clock::time_point deadline);
    bool finished();

   private:
    Mutex mutex_;
    CondVar changed_;
    std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
    bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  };

  void Loop();

  Scheduler* const scheduler_;
  const std::shared_ptr<TaskQueue> queue_ = std::make_shared<TaskQueue>();
  std::thread thread_;
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_SCHEDULER_THREAD_H_
