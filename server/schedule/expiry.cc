// Ends leases before their runs: silence, absence, a dead process, a step that never ends.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/schedule/scheduler.h"

namespace ablate::schedule {

using storage::LeaseEnd;

namespace {

// Ticks come every second; a longer gap means that this process was paused and received nothing.
constexpr absl::Duration kMinPause = absl::Milliseconds(1500);
constexpr absl::Duration kMaxPause = absl::Seconds(5);
constexpr size_t kLastWordsBytes = 2000;
// How long an absent worker is listed; batch systems give each process a new name.
constexpr absl::Duration kForgetAfter = absl::Hours(1);
// Workers elsewhere come and go. A launcher of pilots looks at least this often.
constexpr absl::Duration kForgetElsewhereAfter = absl::Minutes(15);

}  // namespace

void Scheduler::Started(const LocalProcess& process) {
  processes_[process.worker] = {process.pid, clock_->Now(), false};
}

void Scheduler::Exited(const WorkerExit& exit) {
  processes_.erase(exit.worker);
  const auto found = workers_.find(exit.worker);
  const bool known = found != workers_.end();
  if (known && found->second.session != 0) {
    Close(found->second.session, absl::AbortedError("the worker's process ended"));
  }
  // From the end of a log: any bytes, perhaps half a character.
  const std::string last_words = reflect::ShortText(exit.last_words, kLastWordsBytes);
  if (exit.analysis) analyses_.Exited(exit.worker, last_words);
  if (exit.drained) {
    drained_[exit.worker] = exit;
    drained_[exit.worker].last_words = last_words;
  }
  if (!known) return;
  WorkerState& worker = found->second;
  const std::set<std::string> stepping = worker.stepping();
  std::vector<std::pair<std::string, LeaseEnd>> ends;
  for (const auto& [id, lease] : worker.leases) {
    LeaseEnd end = lease.started ? LeaseEnd::kLost : LeaseEnd::kReleased;
    if (exit.by_itself && stepping.count(id) > 0) end = LeaseEnd::kDied;
    ends.emplace_back(id, worker.leaving ? LeaseEnd::kReleased : end);
  }
  for (const auto& [id, end] : ends) End(exit.worker, id, {end, last_words});
}

void Scheduler::Withdraw(const std::vector<storage::Withdrawal>& withdrawals) {
  for (const storage::Withdrawal& withdrawal : withdrawals) {
    // A lease in the grant that the store is committing must not be sent to its worker.
    if (granting_) withdrawn_.insert(withdrawal.lease);
    const auto worker = workers_.find(withdrawal.worker);
    if (worker == workers_.end()) continue;
    SendCancel(worker->second.session, withdrawal.lease);
    worker->second.leases.erase(withdrawal.lease);
  }
  Dispatch();
}

void Scheduler::Tick() {
  const absl::Duration now = clock_->Now();
  const absl::Duration pause = std::clamp(options_.silence / 3, kMinPause, kMaxPause);
  if (now - last_tick_ > pause) resumed_at_ = now;
  last_tick_ = now;
  CheckSilence();
  CheckAbsence();
  CheckProcesses();
  CheckSteps();
  RetryEnds();
  analyses_.Tick();
  pilots_.Forget(now);
  EndSavings([now](const Saving& saving) { return now >= saving.until; });
  std::vector<Session> ids;
  ids.reserve(sessions_.size());
  for (const auto& [id, session] : sessions_) ids.push_back(id);
  for (const Session id : ids) Pump(id);
  Dispatch();
}

HeldLease* Scheduler::FindLease(const std::string& worker, absl::string_view lease) {
  const auto holder = workers_.find(worker);
  if (holder == workers_.end()) return nullptr;
  return holder->second.Find(lease);
}

// Ignored if the store is committing another end already.
void Scheduler::End(const std::string& worker, const std::string& lease,
                    storage::LeaseEnding ending) {
  HeldLease* const held = FindLease(worker, lease);
  if (held == nullptr || held->end_with_store) return;
  held->ending = std::move(ending);
  TryEnd(worker, lease);
}

void Scheduler::TryEnd(const std::string& worker, const std::string& lease) {
  HeldLease* const held = FindLease(worker, lease);
  if (held == nullptr || !held->ending.has_value() || held->end_with_store) return;
  held->end_with_store = true;
  store_->EndLeaseAsync(lease, *held->ending,
                        OnThread<absl::Status>([this, worker, lease](const absl::Status& status) {
                          OnEnded(worker, lease, status);
                        }));
}

void Scheduler::OnEnded(const std::string& worker, const std::string& lease,
                        const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) no_room_at_ = clock_->Now();
  if (HeldLease* const held = FindLease(worker, lease); held != nullptr) {
    held->end_with_store = false;
    if (status.ok()) workers_.find(worker)->second.leases.erase(lease);
  }
  if (status.ok()) Dispatch();
}

void Scheduler::Lose(const std::string& worker, absl::string_view why) {
  std::vector<std::pair<std::string, LeaseEnd>> ends;
  for (const auto& [id, lease] : workers_[worker].leases) {
    if (lease.ending.has_value()) continue;
    ends.emplace_back(id, lease.started ? LeaseEnd::kLost : LeaseEnd::kReleased);
  }
  for (const auto& [id, end] : ends) End(worker, id, {end, std::string(why)});
}

bool Scheduler::MayExpire() const {
  const absl::Duration now = clock_->Now();
  return now - start_ >= options_.start_grace && now - resumed_at_ >= options_.absence;
}

void Scheduler::CheckSilence() {
  std::vector<Session> silent;
  for (const auto& [id, session] : sessions_) {
    if (clock_->Now() - session.heard >= options_.silence) silent.push_back(id);
  }
  for (const Session id : silent) {
    const std::string name = sessions_[id].worker;
    if (!name.empty() && !MayExpire()) continue;
    Close(id, absl::DeadlineExceededError("no message on this stream for too long"));
    if (name.empty()) continue;
    Lose(name, "the worker was silent");
    GiveUpProcess(name,
                  absl::StrCat("it sent nothing for ", absl::FormatDuration(options_.silence)));
  }
}

// A process that hangs before it attaches, or doesn't attach again, is never silent on a stream.
void Scheduler::CheckProcesses() {
  if (!MayExpire()) return;
  for (const auto& [name, process] : processes_) {
    const auto worker = workers_.find(name);
    if (worker != workers_.end() && worker->second.session != 0) continue;
    if (clock_->Now() - process.alone_since < options_.attach_timeout) continue;
    GiveUpProcess(name, absl::StrCat("it was not attached for ",
                                     absl::FormatDuration(options_.attach_timeout)));
  }
}

void Scheduler::GiveUpProcess(const std::string& worker, absl::string_view why) {
  const auto process = processes_.find(worker);
  if (process == processes_.end() || std::exchange(process->second.given_up, true)) return;
  if (options_.on_hung) options_.on_hung({worker, process->second.pid}, why);
}

void Scheduler::CheckAbsence() {
  if (!MayExpire()) return;
  for (auto next = workers_.begin(); next != workers_.end();) {
    const auto current = next++;
    WorkerState& worker = current->second;
    const absl::Duration away = clock_->Now() - worker.detached_at;
    if (worker.session != 0 || away < options_.absence) continue;
    Lose(current->first, "the worker was away for too long");
    const absl::Duration kept = IsElsewhere(current->first) ? kForgetElsewhereAfter : kForgetAfter;
    if (worker.leases.empty() && away >= kept) workers_.erase(current);
  }
}

// Heartbeats don't prove progress. Their reports count from their arrival, because later ones may
// be in transit.
void Scheduler::CheckSteps() {
  if (!MayExpire()) return;
  const auto too_long = [this](absl::Duration from, absl::Duration to) {
    return to - std::max(from, no_room_at_) >= options_.step_watchdog;
  };
  for (auto& [name, worker] : workers_) {
    if (worker.session == 0) continue;
    std::vector<std::string> stuck;
    for (const auto& [id, lease] : worker.leases) {
      const bool stalled = lease.stepping() && too_long(lease.stalled_since, lease.reported_at);
      if (stalled && !lease.ending.has_value()) stuck.push_back(id);
    }
    for (const std::string& id : stuck) {
      SendCancel(worker.session, id);
      End(name, id, {LeaseEnd::kLost, "it made no step for too long"});
    }
    if (worker.load() > 0 && too_long(worker.progress_at, worker.reported_at)) GiveUpOn(name);
  }
}

// No lane begins its runs: the process has to be replaced.
void Scheduler::GiveUpOn(const std::string& name) {
  WorkerState& worker = workers_[name];
  worker.leaving = true;
  for (const auto& [id, lease] : worker.leases) SendCancel(worker.session, id);
  worker::v1::ToWorker drain;
  drain.mutable_drain();
  SendTo(worker.session, drain);
  Lose(name, "no lane of the worker makes steps");
}

void Scheduler::RetryEnds() {
  std::vector<std::pair<std::string, std::string>> undone;
  for (const auto& [name, worker] : workers_) {
    for (const auto& [id, lease] : worker.leases) {
      if (lease.ending.has_value() && !lease.end_with_store) undone.emplace_back(name, id);
    }
  }
  for (const auto& [worker, lease] : undone) TryEnd(worker, lease);
}

}  // namespace ablate::schedule
