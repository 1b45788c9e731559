#include "server/worker/lanes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ablate::worker {

class Lanes::CompletionThread {
 public:
  explicit CompletionThread(Lanes* lanes) : lanes_(lanes), thread_([this] { Work(); }) {}
  ~CompletionThread() {
    {
      MutexLock lock(&mutex_);
      quit_ = true;
      changed_.SignalAll();
    }
    thread_.join();
  }
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

  // Takes over a job and its completion, after waiting for the previous job's completion. Called by
  // one lane.
  void Complete(std::shared_ptr<Begun> begun, Completion completion) {
    {
      // Destroyed before the completion, which may itself wait.
      const ServerWait waiting(begun->control);
      MutexLock lock(&mutex_);
      while (begun_ != nullptr) changed_.Wait(&mutex_);
    }
    MutexLock lock(&mutex_);
    begun_ = std::move(begun);
    completion_ = std::move(completion);
    changed_.SignalAll();
  }

 private:
  void Work() {
    while (true) {
      std::shared_ptr<Begun> begun;
      Completion completion;
      {
        MutexLock lock(&mutex_);
        while (begun_ == nullptr && !quit_) changed_.Wait(&mutex_);
        if (begun_ == nullptr) return;
        begun = begun_;
        completion = std::exchange(completion_, nullptr);
      }
      completion();
      completion = nullptr;  // it may use the control
      lanes_->EndJob(begun.get());
      MutexLock lock(&mutex_);
      begun_ = nullptr;
      changed_.SignalAll();
    }
  }

  Lanes* const lanes_;
  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Begun> begun_ ABSL_GUARDED_BY(mutex_);  // null: nothing is pending
  Completion completion_ ABSL_GUARDED_BY(mutex_);         // its completion, until begun
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last member: it uses the others
};

Lanes::Lanes(int count, LaneActions actions, int limit)
    : count_(count), actions_(std::move(actions)) {
  SetLimit(limit);
}

Lanes::~Lanes() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    quit_ = true;
    for (Begun* job : running_) job->control.Abandon();
    changed_.SignalAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void Lanes::SetLimit(int limit) {
  MutexLock lock(&mutex_);
  limit_ = std::clamp(limit, 1, count_);
  while (threads_.size() < static_cast<size_t>(limit_)) {
    ++preparing_;
    threads_.emplace_back([this] { RunLane(); });
  }
  changed_.SignalAll();
}

int Lanes::limit() const {
  MutexLock lock(&mutex_);
  return limit_;
}

void Lanes::WaitUntilReady() {
  MutexLock lock(&mutex_);
  while (preparing_ > 0) changed_.Wait(&mutex_);
}

void Lanes::Start(Job job) {
  {
    MutexLock lock(&mutex_);
    if (!draining_) {
      waiting_.push_back(std::move(job));
      changed_.SignalAll();
      return;
    }
  }
  if (job.drained) job.drained();
}

void Lanes::Abandon(const std::string& id) {
  AbandonIf([&](const std::string& one) { return one == id; });
}

void Lanes::AbandonAll() {
  AbandonIf([](const std::string&) { return true; });
}

template <typename Wanted>
void Lanes::AbandonIf(const Wanted& wanted) {
  std::vector<Job> unstarted;
  {
    MutexLock lock(&mutex_);
    const auto gone = std::stable_partition(waiting_.begin(), waiting_.end(),
                                            [&](const Job& job) { return !wanted(job.id); });
    std::move(gone, waiting_.end(), std::back_inserter(unstarted));
    waiting_.erase(gone, waiting_.end());
    for (Begun* job : running_) {
      if (wanted(job->job.id)) job->control.Abandon();
    }
  }
  for (const Job& job : unstarted) {
    if (job.abandoned) job.abandoned();
  }
}

void Lanes::Halt(const std::string& id) {
  MutexLock lock(&mutex_);
  for (Begun* job : running_) {
    if (job->job.id == id) job->control.Halt();
  }
}

void Lanes::Save(const std::string& id) {
  MutexLock lock(&mutex_);
  for (Begun* job : running_) {
    if (job->job.id == id) job->control.Save();
  }
}

void Lanes::Drain() {
  std::deque<Job> unstarted;
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    unstarted.swap(waiting_);
    for (Begun* job : running_) job->control.Halt();
  }
  for (const Job& job : unstarted) {
    if (job.drained) job.drained();
  }
}

std::vector<v1::LeaseProgress> Lanes::Progress() const {
  MutexLock lock(&mutex_);
  std::vector<v1::LeaseProgress> leases;
  for (const Begun* job : running_) {
    if (job->control.abandoned()) continue;
    const RunControl::Progress progress = job->control.progress();
    const int64_t since_ms = absl::ToInt64Milliseconds(progress.since_progress);
    v1::LeaseProgress& lease = leases.emplace_back();
    lease.set_lease(job->job.id);
    lease.set_step(progress.step);
    lease.set_since_progress_ms(
        static_cast<uint32_t>(std::clamp<int64_t>(since_ms, 0, UINT32_MAX)));
  }
  return leases;
}

std::vector<LaneJob> Lanes::OnLanes() const {
  MutexLock lock(&mutex_);
  std::vector<LaneJob> jobs;
  for (const Begun* job : running_) {
    if (job->lanes > 0) jobs.push_back({job->job.id, job->control.progress().step});
  }
  return jobs;
}

void Lanes::RunLane() {
  const absl::Status prepared = actions_.prepare();
  // Before this lane counts as ready, because callers of WaitUntilReady must see the loss.
  if (!prepared.ok()) actions_.lost(prepared);
  {
    MutexLock lock(&mutex_);
    --preparing_;
    changed_.SignalAll();
  }
  if (!prepared.ok()) return;
  CompletionThread completions(this);
  while (const std::shared_ptr<Begun> begun = Next()) {
    Completion completion;
    const absl::Status done = begun->job.work(begun->control, &completion);
    FreeLanes(*begun);
    if (completion) {
      completions.Complete(begun, std::exchange(completion, nullptr));
    } else {
      EndJob(begun.get());
    }
    if (!done.ok()) return actions_.lost(done);
  }
}

std::shared_ptr<Lanes::Begun> Lanes::Next() {
  MutexLock lock(&mutex_);
  // A job of several lanes isn't overtaken, or it might never get them.
  const auto may_begin = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !waiting_.empty() && taken_ + LanesOf(waiting_.front()) <= limit_;
  };
  while (!may_begin() && !quit_) changed_.Wait(&mutex_);
  if (quit_) return nullptr;
  auto begun = std::make_shared<Begun>();
  begun->job = std::move(waiting_.front());
  waiting_.pop_front();
  begun->lanes = LanesOf(begun->job);
  taken_ += begun->lanes;
  running_.push_back(begun.get());
  return begun;
}

int Lanes::LanesOf(const Job& job) const { return std::min(job.lanes, limit_); }

void Lanes::FreeLanes(Begun& begun) {
  MutexLock lock(&mutex_);
  taken_ -= std::exchange(begun.lanes, 0);
  changed_.SignalAll();
}

void Lanes::EndJob(const Begun* begun) {
  MutexLock lock(&mutex_);
  running_.erase(std::remove(running_.begin(), running_.end(), begun), running_.end());
}

}  // namespace ablate::worker
