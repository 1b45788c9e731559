// Runs a Scheduler on a thread of its own: callers post, nothing of theirs blocks.
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

// Thread-safe. Tasks run in the order posted; Tick is called between them about once a second.
class SchedulerThread {
 public:
  // `scheduler` must outlive this and is touched by nobody else until the destructor returns.
  explicit SchedulerThread(Scheduler* scheduler);
  // Runs what was posted, then stops.
  ~SchedulerThread();

  void Post(std::function<void(Scheduler&)> task);
  // Posts and waits; not from the scheduler's own thread.
  void Run(const std::function<void(Scheduler&)>& task);
  // These need no thread of their own.
  absl::Duration save_timeout() const { return scheduler_->save_timeout(); }
  Analyses& analyses() { return scheduler_->analyses(); }

 private:
  using Task = std::function<void(Scheduler&)>;

  // Shared with whoever still holds a way to post after the thread has gone: that is dropped.
  class TaskQueue {
   public:
    void Push(Task task);
    void Close();
    // The next task; none when `deadline` has come, or when closed and empty.
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
