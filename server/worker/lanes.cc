#include "server/worker/lanes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace ablate::worker {

Lanes::Lanes(int count, LaneActions actions) : actions_(std::move(actions)), preparing_(count) {
  threads_.reserve(static_cast<size_t>(count));
  for (int lane = 0; lane < count; ++lane) threads_.emplace_back([this] { RunLane(); });
}

Lanes::~Lanes() {
  {
    MutexLock lock(&mutex_);
    quit_ = true;
    for (const Running& job : running_) job.control->Abandon();
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
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

void Lanes::Abandon(const JobKey& key) {
  AbandonIf([&](const JobKey& one) { return one == key; });
}

void Lanes::AbandonAll() {
  AbandonIf([](const JobKey&) { return true; });
}

template <typename Wanted>
void Lanes::AbandonIf(const Wanted& wanted) {
  std::vector<Job> unstarted;
  {
    MutexLock lock(&mutex_);
    const auto gone = std::stable_partition(waiting_.begin(), waiting_.end(),
                                            [&](const Job& job) { return !wanted(job.key); });
    std::move(gone, waiting_.end(), std::back_inserter(unstarted));
    waiting_.erase(gone, waiting_.end());
    for (const Running& job : running_) {
      if (wanted(*job.key)) job.control->Abandon();
    }
  }
  for (const Job& job : unstarted) {
    if (job.abandoned) job.abandoned();
  }
}

void Lanes::Halt(const JobKey& key) {
  MutexLock lock(&mutex_);
  for (const Running& job : running_) {
    if (*job.key == key) job.control->Halt();
  }
}

void Lanes::Drain() {
  std::deque<Job> unstarted;
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    unstarted.swap(waiting_);
    for (const Running& job : running_) job.control->Halt();
  }
  for (const Job& job : unstarted) {
    if (job.drained) job.drained();
  }
}

std::vector<v1::LeaseProgress> Lanes::Progress() const {
  MutexLock lock(&mutex_);
  std::map<std::string, v1::LeaseProgress> leases;
  for (const Running& job : running_) {
    if (job.key->lease.empty() || job.control->abandoned()) continue;
    v1::LeaseProgress& lease = leases[job.key->lease];
    lease.set_lease(job.key->lease);
    v1::RunProgress& entry = *lease.add_runs();
    const RunControl::Progress progress = job.control->progress();
    entry.set_run(job.key->id);
    entry.set_step(progress.step);
    const int64_t since_ms = absl::ToInt64Milliseconds(progress.since_progress);
    entry.set_since_progress_ms(
        static_cast<uint32_t>(std::clamp<int64_t>(since_ms, 0, UINT32_MAX)));
  }
  std::vector<v1::LeaseProgress> result;
  result.reserve(leases.size());
  for (auto& [id, lease] : leases) result.push_back(std::move(lease));
  return result;
}

void Lanes::RunLane() {
  const absl::Status prepared = actions_.prepare();
  // Before this lane counts as ready: whoever waits for that must know.
  if (!prepared.ok()) actions_.lost(prepared);
  {
    MutexLock lock(&mutex_);
    --preparing_;
    changed_.SignalAll();
  }
  if (!prepared.ok()) return;
  while (true) {
    Job job;
    std::optional<RunControl> control;
    if (!Next(&job, &control)) return;
    const absl::Status done = job.work(*control);
    EndJob(&*control);
    if (!done.ok()) return actions_.lost(done);
  }
}

bool Lanes::Next(Job* job, std::optional<RunControl>* control) {
  MutexLock lock(&mutex_);
  while (waiting_.empty() && !quit_) changed_.Wait(&mutex_);
  if (quit_) return false;
  *job = std::move(waiting_.front());
  waiting_.pop_front();
  // Made only now: a lane's idle time is no time without progress.
  running_.push_back({&job->key, &control->emplace()});
  return true;
}

void Lanes::EndJob(const RunControl* control) {
  MutexLock lock(&mutex_);
  const auto gone = std::remove_if(running_.begin(), running_.end(),
                                   [&](const Running& job) { return job.control == control; });
  running_.erase(gone, running_.end());
}

}  // namespace ablate::worker
