// Requests the states of runs before they are cancelled.
#include <algorithm>
#include <iterator>
#include <utility>

#include "server/schedule/scheduler.h"

namespace ablate::schedule {

void Scheduler::Save(const std::vector<storage::Withdrawal>& leases, std::function<void()> saved) {
  Saving saving;
  for (const storage::Withdrawal& one : leases) {
    const auto worker = workers_.find(one.worker);
    if (worker == workers_.end() || worker->second.session == 0) continue;
    const HeldLease* held = worker->second.Find(one.lease);
    if (held == nullptr || !held->stepping()) continue;
    worker::v1::ToWorker message;
    message.mutable_save()->set_lease(one.lease);
    SendTo(worker->second.session, message);
    saving.leases.insert(one.lease);
  }
  saving.saved = std::move(saved);
  saving.until = clock_->Now() + options_.save_timeout;
  savings_.push_back(std::move(saving));
  EndSavings([](const Saving& one) { return one.leases.empty(); });
}

void Scheduler::NoteSaved(const storage::LeaseEvent& event) {
  if (savings_.empty()) return;
  for (Saving& saving : savings_) saving.leases.erase(event.lease);
  EndSavings([](const Saving& saving) { return saving.leases.empty(); });
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
