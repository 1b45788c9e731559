#include "server/rpc/work_pool.h"

#include <utility>

namespace ablate::rpc {

WorkPool::WorkPool(int threads, size_t max_waiting) : max_waiting_(max_waiting) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  timer_ = std::thread([this] { KeepTime(); });
}

WorkPool::~WorkPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    ready_changed_.SignalAll();
    later_changed_.SignalAll();
  }
  timer_.join();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkPool::TryPost(Task task) {
  MutexLock lock(&mutex_);
  if (ready_.size() >= max_waiting_) return false;
  ready_.push_back(std::move(task));
  ready_changed_.Signal();
  return true;
}

void WorkPool::Post(Task task) {
  MutexLock lock(&mutex_);
  ready_.push_back(std::move(task));
  ready_changed_.Signal();
}

void WorkPool::PostAfter(absl::Duration delay, Task task) {
  const Time due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(delay);
  MutexLock lock(&mutex_);
  later_.emplace(due, std::move(task));
  later_changed_.Signal();
}

void WorkPool::WaitUntilIdle(Time deadline) {
  MutexLock lock(&mutex_);
  while (running_ > 0 || !ready_.empty()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    idle_.WaitFor(&mutex_, left);
  }
}

void WorkPool::Work() {
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      while (ready_.empty() && !stopping_) ready_changed_.Wait(&mutex_);
      if (ready_.empty()) return;
      task = std::move(ready_.front());
      ready_.pop_front();
      ++running_;
    }
    task();
    task = nullptr;  // what it owns goes while it still counts
    MutexLock lock(&mutex_);
    if (--running_ == 0 && ready_.empty()) idle_.SignalAll();
  }
}

void WorkPool::KeepTime() {
  std::multimap<Time, Task> dropped;  // destroyed outside the lock: a task may own much
  MutexLock lock(&mutex_);
  while (!stopping_) {
    const Time now = std::chrono::steady_clock::now();
    while (!later_.empty() && later_.begin()->first <= now) {
      ready_.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
      ready_changed_.Signal();
    }
    if (later_.empty()) {
      later_changed_.Wait(&mutex_);
      continue;
    }
    // Rounded up: waking a moment too early would spin.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(later_.begin()->first - now);
    later_changed_.WaitFor(&mutex_, left);
  }
  dropped.swap(later_);
}

}  // namespace ablate::rpc
