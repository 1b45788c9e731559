// A queue of tasks and the thread that runs them.
#include "server/schedule/scheduler_thread.h"

#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "sync/mutex.h"

namespace ablate::schedule {
namespace {

using Task = std::function<void(Scheduler&)>;
using std::chrono::steady_clock;

constexpr auto kTickPeriod = std::chrono::seconds(1);

// Shared with whoever still holds a way to post after the thread has gone: that is dropped.
class TaskQueue {
 public:
  void Push(Task task) {
    MutexLock lock(&mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
    changed_.Signal();
  }

  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    changed_.Signal();
  }

  // The next task; none when `deadline` has come, or when closed and empty.
  std::optional<Task> PopUntil(steady_clock::time_point deadline) {
    MutexLock lock(&mutex_);
    while (tasks_.empty() && !closed_) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
      if (left.count() <= 0) return std::nullopt;
      changed_.WaitFor(&mutex_, left);
    }
    if (tasks_.empty()) return std::nullopt;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  bool finished() {
    MutexLock lock(&mutex_);
    return closed_ && tasks_.empty();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

class SchedulerThread::Impl {
 public:
  explicit Impl(Scheduler* scheduler) : scheduler_(scheduler) {
    scheduler_->SetPost([queue = queue_](std::function<void()> work) {
      queue->Push([work = std::move(work)](Scheduler&) { work(); });
    });
    thread_ = std::thread([this] { Loop(); });
  }

  ~Impl() {
    queue_->Close();
    thread_.join();
  }

  void Post(Task task) { queue_->Push(std::move(task)); }
  Analyses& analyses() { return scheduler_->analyses(); }

 private:
  void Loop() {
    auto next_tick = steady_clock::now() + kTickPeriod;
    while (!queue_->finished()) {
      if (std::optional<Task> task = queue_->PopUntil(next_tick)) (*task)(*scheduler_);
      if (steady_clock::now() < next_tick) continue;
      scheduler_->Tick();
      next_tick = steady_clock::now() + kTickPeriod;
    }
  }

  Scheduler* const scheduler_;
  const std::shared_ptr<TaskQueue> queue_ = std::make_shared<TaskQueue>();
  std::thread thread_;
};

SchedulerThread::SchedulerThread(Scheduler* scheduler) : impl_(std::make_unique<Impl>(scheduler)) {}
SchedulerThread::~SchedulerThread() = default;

void SchedulerThread::Post(std::function<void(Scheduler&)> task) { impl_->Post(std::move(task)); }

Analyses& SchedulerThread::analyses() { return impl_->analyses(); }

void SchedulerThread::Run(const std::function<void(Scheduler&)>& task) {
  Mutex mutex;
  CondVar changed;
  bool done = false;
  impl_->Post([&](Scheduler& scheduler) {
    task(scheduler);
    MutexLock lock(&mutex);
    done = true;
    changed.Signal();
  });
  MutexLock lock(&mutex);
  while (!done) changed.Wait(&mutex);
}

}  // namespace ablate::schedule
