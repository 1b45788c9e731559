// States of runs that are asked for before the runs are cancelled.
#include <algorithm>
#include <iterator>
#include <utility>

#include "server/schedule/scheduler.h"

namespace ablate::schedule {

void Scheduler::Save(const std::vector<storage::Withdrawal>& runs, std::function<void()> saved) {
  Saving saving;
  for (const storage::Withdrawal& run : runs) {
    const auto worker = workers_.find(run.worker);
    if (worker == workers_.end() || worker->second.session == 0) continue;
    const HeldRun* held = worker->second.FindRun(run.lease, run.run);
    if (held == nullptr || !held->stepping()) continue;
    worker::v1::ToWorker message;
    message.mutable_save()->set_lease(run.lease);
    message.mutable_save()->set_run(run.run);
    SendTo(worker->second.session, message);
    saving.runs.emplace(run.lease, run.run);
  }
  saving.saved = std::move(saved);
  saving.until = clock_->Now() + options_.save_timeout;
  savings_.push_back(std::move(saving));
  EndSavings([](const Saving& one) { return one.runs.empty(); });
}

void Scheduler::NoteSaved(const storage::LeaseEvent& event) {
  if (savings_.empty()) return;
  for (Saving& saving : savings_) saving.runs.erase({event.lease, event.run});
  EndSavings([](const Saving& saving) { return saving.runs.empty(); });
}

void Scheduler::EndSavings(const std::function<bool(const Saving&)>& ends) {
  const auto ended = std::stable_partition(savings_.begin(), savings_.end(),
                                           [&](const Saving& saving) { return !ends(saving); });
  const std::vector<Saving> gone(std::make_move_iterator(ended),
                                 std::make_move_iterator(savings_.end()));
  savings_.erase(ended, savings_.end());
  for (const Saving& saving : gone) saving.saved();
}

}  // namespace ablate::schedule
