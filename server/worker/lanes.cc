// Threads that take runs from a queue.
#include "server/worker/lanes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ablate::worker {
namespace {

bool Is(const Instructions::LeasedRun& leased, const Instructions::RunKey& key) {
  return leased.lease == key.lease && leased.run.run() == key.run;
}

}  // namespace

Lanes::Lanes(int count, LaneActions actions) : actions_(std::move(actions)), preparing_(count) {
  threads_.reserve(static_cast<size_t>(count));
  for (int lane = 0; lane < count; ++lane) threads_.emplace_back([this] { RunLane(); });
}

Lanes::~Lanes() {
  {
    MutexLock lock(&mutex_);
    quit_ = true;
    for (const Running& run : running_) run.control->Abandon();
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Lanes::WaitUntilReady() {
  MutexLock lock(&mutex_);
  while (preparing_ > 0) changed_.Wait(&mutex_);
}

void Lanes::Start(Instructions::LeasedRun leased) {
  {
    MutexLock lock(&mutex_);
    if (!draining_) {
      waiting_.push_back(std::move(leased));
      changed_.SignalAll();
      return;
    }
  }
  actions_.release(leased);
}

void Lanes::Abandon(const Instructions::RunKey& key) {
  MutexLock lock(&mutex_);
  const auto gone = std::remove_if(waiting_.begin(), waiting_.end(),
                                   [&](const auto& leased) { return Is(leased, key); });
  waiting_.erase(gone, waiting_.end());
  for (const Running& run : running_) {
    if (Is(*run.leased, key)) run.control->Abandon();
  }
}

void Lanes::Drain() {
  std::deque<Instructions::LeasedRun> unstarted;
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    unstarted.swap(waiting_);
    for (const Running& run : running_) run.control->Halt();
  }
  for (const Instructions::LeasedRun& leased : unstarted) actions_.release(leased);
}

std::vector<v1::LeaseProgress> Lanes::Progress() const {
  MutexLock lock(&mutex_);
  std::map<std::string, v1::LeaseProgress> leases;
  for (const Running& run : running_) {
    if (run.control->abandoned()) continue;
    v1::LeaseProgress& lease = leases[run.leased->lease];
    lease.set_lease(run.leased->lease);
    v1::RunProgress& entry = *lease.add_runs();
    const RunControl::Progress progress = run.control->progress();
    entry.set_run(run.leased->run.run());
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
    Instructions::LeasedRun leased;
    std::optional<RunControl> control;
    if (!Next(&leased, &control)) return;
    const absl::Status executed = actions_.execute(leased, *control);
    EndRun(&*control);
    if (!executed.ok()) return actions_.lost(executed);
  }
}

bool Lanes::Next(Instructions::LeasedRun* leased, std::optional<RunControl>* control) {
  MutexLock lock(&mutex_);
  while (waiting_.empty() && !quit_) changed_.Wait(&mutex_);
  if (quit_) return false;
  *leased = std::move(waiting_.front());
  waiting_.pop_front();
  // Made only now: a lane's idle time is no time without progress.
  running_.push_back({leased, &control->emplace()});
  return true;
}

void Lanes::EndRun(const RunControl* control) {
  MutexLock lock(&mutex_);
  const auto gone = std::remove_if(running_.begin(), running_.end(),
                                   [&](const Running& run) { return run.control == control; });
  running_.erase(gone, running_.end());
}

}  // namespace ablate::worker
