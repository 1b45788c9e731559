// Holds groups back, runs out of room, and makes the mistakes that are asked for.
#include "tests/schedule/simulation/delayed_store.h"

#include <utility>

namespace ablate::simulation {

using storage::Applied;

void DelayedStore::Commit() {
  Waiting group = std::move(waiting_.front());
  waiting_.pop_front();
  if (full_) {
    if (group.done) group.done(absl::ResourceExhaustedError("the disk is full"));
    return;
  }
  Or<std::vector<Applied>> results = target()->Apply(group.incarnation, group.events);
  for (size_t i = 0; results.ok() && i < results->size(); ++i) {
    Applied& result = (*results)[i];
    const bool refused = result == Applied::kGap || result == Applied::kNoLease;
    if (mutation_ == Mutation::kTakesEventsByRunAlone && refused) {
      TakeByRun(group.events[i]);
      result = Applied::kApplied;
    }
  }
  if (group.done) group.done(std::move(results));
}

absl::Status DelayedStore::BeforeWrite() {
  while (!waiting_.empty()) Commit();
  return full_ ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus();
}

schedule::LeaseStoreProxy::Or<storage::CancelledExperiment> DelayedStore::CancelExperiment(
    Text id) {
  if (absl::Status status = BeforeWrite(); !status.ok()) return status;
  return target()->CancelExperiment(id);
}

schedule::LeaseStoreProxy::Or<std::vector<std::vector<storage::GrantedRun>>> DelayedStore::Grant(
    const std::vector<storage::NewLease>& leases) {
  if (absl::Status status = BeforeWrite(); !status.ok()) return status;
  Or<std::vector<std::vector<storage::GrantedRun>>> granted = target()->Grant(leases);
  if (!granted.ok() || !on_grant_) return granted;
  for (size_t i = 0; i < leases.size(); ++i) {
    for (const storage::GrantedRun& run : (*granted)[i]) on_grant_(run, leases[i].holder);
  }
  return granted;
}

void DelayedStore::ApplyAsync(std::string incarnation, std::vector<storage::LeaseEvent> events,
                              std::function<void(Or<std::vector<Applied>>)> done) {
  if (mutation_ == Mutation::kAcknowledgesBeforeTheCommit) {
    done(std::vector<Applied>(events.size(), Applied::kApplied));
    done = nullptr;
  }
  waiting_.push_back({std::move(incarnation), std::move(events), std::move(done)});
}

schedule::LeaseStoreProxy::Or<storage::LeaseVerdict> DelayedStore::CheckLease(
    Text lease, Text incarnation, uint64_t first_unacked) {
  if (mutation_ == Mutation::kTakesEventsByRunAlone) {
    return storage::LeaseVerdict{false, first_unacked - 1};
  }
  return target()->CheckLease(lease, incarnation, first_unacked);
}

absl::Status DelayedStore::EndLease(Text lease, storage::LeaseEnd end, const Names& stepping,
                                    Text message) {
  if (absl::Status status = BeforeWrite(); !status.ok()) return status;
  return target()->EndLease(lease, end, stepping, message);
}

// As if points were keyed by run and step, so that sending them again were harmless.
void DelayedStore::TakeByRun(const storage::LeaseEvent& event) {
  const Or<std::vector<storage::LeaseRecord>> leases = target()->ListLeases();
  if (!leases.ok()) return;
  for (const storage::LeaseRecord& lease : *leases) {
    for (const std::string& run : lease.runs) {
      if (run != event.run) continue;
      storage::LeaseEvent taken = event;
      taken.lease = lease.lease;
      taken.seq = lease.acked + 1;
      target()->Apply(lease.holder.incarnation, {taken}).IgnoreError();
      return;
    }
  }
}

}  // namespace ablate::simulation
