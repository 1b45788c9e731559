// Runs a Scheduler on a thread of its own: callers post, nothing of theirs blocks.
#ifndef ABLATE_SERVER_SCHEDULE_SCHEDULER_THREAD_H_
#define ABLATE_SERVER_SCHEDULE_SCHEDULER_THREAD_H_

#include <functional>
#include <memory>

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
  // Needs no thread of its own.
  Analyses& analyses();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_SCHEDULER_THREAD_H_
