#include "server/rpc/work_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/lookup/errors.h"

namespace ablate::rpc {

WorkPool::WorkPool(lookup::Limit threads, lookup::Limit waiting)
    : max_running_(threads), max_waiting_(waiting) {
  threads_.reserve(threads.total);
  for (size_t i = 0; i < threads.total; ++i) threads_.emplace_back([this] { Work(); });
  timer_ = std::thread([this] { KeepTime(); });
}

WorkPool::~WorkPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    turns_changed_.SignalAll();
    later_changed_.SignalAll();
  }
  timer_.join();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status WorkPool::TryPost(Task task, const std::string& user) {
  MutexLock lock(&mutex_);
  if (waiting_ >= max_waiting_.total) return lookup::TooManyAtOnce("calls that wait", max_waiting_);
  if (!user.empty()) {
    const auto found = queues_.find(user);
    const size_t has = found == queues_.end() ? 0 : found->second.waiting.size();
    if (has >= max_waiting_.per_user) {
      return lookup::TooManyOfUser("calls that wait", user, has, max_waiting_);
    }
  }
  Add(std::move(task), user);
  return absl::OkStatus();
}

void WorkPool::Post(Task task, const std::string& user) {
  MutexLock lock(&mutex_);
  Add(std::move(task), user);
}

void WorkPool::PostAfter(absl::Duration delay, Task task, const std::string& user) {
  const Time due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(delay);
  MutexLock lock(&mutex_);
  later_.emplace(due, Later{std::move(task), user});
  later_changed_.Signal();
}

void WorkPool::WaitUntilIdle(Time deadline) {
  MutexLock lock(&mutex_);
  while (running_ > 0 || waiting_ > 0) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    idle_.WaitFor(&mutex_, left);
  }
}

void WorkPool::Add(Task task, const std::string& user) {
  User& entry = *queues_.try_emplace(user).first;
  entry.second.waiting.push_back(std::move(task));
  ++waiting_;
  GiveTurn(&entry);
}

void WorkPool::GiveTurn(User* user) {
  auto& [name, queue] = *user;
  const bool has_all = !name.empty() && queue.running >= max_running_.per_user;
  if (queue.has_turn || queue.waiting.empty() || has_all) return;
  queue.has_turn = true;
  turns_.push_back(user);
  turns_changed_.Signal();
}

WorkPool::Task WorkPool::Begin(User* user) {
  Queue& queue = user->second;
  Task task = std::move(queue.waiting.front());
  queue.waiting.pop_front();
  --waiting_;
  ++running_;
  ++queue.running;
  queue.has_turn = false;
  GiveTurn(user);
  return task;
}

void WorkPool::End(User* user) {
  Queue& queue = user->second;
  --queue.running;
  GiveTurn(user);
  if (queue.running == 0 && queue.waiting.empty()) queues_.erase(user->first);
  if (--running_ == 0 && waiting_ == 0) idle_.SignalAll();
}

void WorkPool::Work() {
  while (true) {
    Task task;
    User* user = nullptr;
    {
      MutexLock lock(&mutex_);
      while (turns_.empty() && !stopping_) turns_changed_.Wait(&mutex_);
      // Tasks of users without a turn wait for the threads that these users occupy.
      if (turns_.empty()) return;
      user = turns_.front();
      turns_.pop_front();
      task = Begin(user);
    }
    task();
    task = nullptr;  // what it owns is freed while it still counts
    MutexLock lock(&mutex_);
    End(user);
  }
}

void WorkPool::KeepTime() {
  std::multimap<Time, Later> dropped;  // destroyed outside the lock, because a task may own much
  MutexLock lock(&mutex_);
  while (!stopping_) {
    const Time now = std::chrono::steady_clock::now();
    while (!later_.empty() && later_.begin()->first <= now) {
      Add(std::move(later_.begin()->second.task), later_.begin()->second.user);
      later_.erase(later_.begin());
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
