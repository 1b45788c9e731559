#include "server/schedule/scheduler_thread.h"

#include <utility>

namespace ablate::schedule {
namespace {

using std::chrono::steady_clock;

constexpr auto kTickPeriod = std::chrono::seconds(1);

}  // namespace

void SchedulerThread::TaskQueue::Push(Task task) {
  MutexLock lock(&mutex_);
  if (closed_) return;
  tasks_.push_back(std::move(task));
  changed_.Signal();
}

void SchedulerThread::TaskQueue::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  changed_.Signal();
}

std::optional<SchedulerThread::Task> SchedulerThread::TaskQueue::PopUntil(
    steady_clock::time_point deadline) {
  MutexLock lock(&mutex_);
  while (tasks_.empty() && !closed_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    changed_.WaitFor(&mutex_, left);
  }
  if (tasks_.empty()) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

bool SchedulerThread::TaskQueue::finished() {
  MutexLock lock(&mutex_);
  return closed_ && tasks_.empty();
}

SchedulerThread::SchedulerThread(Scheduler* scheduler) : scheduler_(scheduler) {
  scheduler_->SetPost([queue = queue_](std::function<void()> work) {
    queue->Push([work = std::move(work)](Scheduler&) { work(); });
  });
  thread_ = std::thread([this] { Loop(); });
}

SchedulerThread::~SchedulerThread() {
  queue_->Close();
  thread_.join();
}

void SchedulerThread::Post(std::function<void(Scheduler&)> task) { queue_->Push(std::move(task)); }

void SchedulerThread::Run(const std::function<void(Scheduler&)>& task) {
  Mutex mutex;
  CondVar changed;
  bool done = false;
  Post([&](Scheduler& scheduler) {
    task(scheduler);
    MutexLock lock(&mutex);
    done = true;
    changed.Signal();
  });
  MutexLock lock(&mutex);
  while (!done) changed.Wait(&mutex);
}

void SchedulerThread::Loop() {
  auto next_tick = steady_clock::now() + kTickPeriod;
  while (!queue_->finished()) {
    if (std::optional<Task> task = queue_->PopUntil(next_tick)) (*task)(*scheduler_);
    if (steady_clock::now() < next_tick) continue;
    scheduler_->Tick();
    next_tick = steady_clock::now() + kTickPeriod;
  }
}

}  // namespace ablate::schedule
