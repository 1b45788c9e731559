// Delays groups, runs out of room, and makes the requested mistakes.
#include "tests/schedule/simulation/delayed_store.h"

#include <utility>

#include "ablate/v1/spec.pb.h"
#include "tests/storage/waiting.h"

namespace ablate::simulation {

using storage::Applied;

void DelayedStore::Commit() {
  const std::function<void()> write = std::move(waiting_.front());
  waiting_.pop_front();
  write();
}

absl::Status DelayedStore::Room() const {
  return full_ ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus();
}

DelayedStore::Or<storage::CancelledExperiment> DelayedStore::CancelExperiment(Text id) {
  while (!waiting_.empty()) Commit();
  if (!Room().ok()) return Room();
  return target()->CancelExperiment(id);
}

void DelayedStore::GrantAsync(std::vector<storage::NewLease> leases, Done<storage::Grants> done) {
  for (const storage::NewLease& lease : leases) runs_[lease.lease] = lease.run;
  if (mutation_ == Mutation::kGrantsBeforeTheCommit) {
    v1::RunSpec spec;
    spec.mutable_spec()->mutable_task()->mutable_legacy_recall();
    storage::GrantedRun run;
    run.spec = spec.SerializeAsString();
    done(storage::Grants(leases.size(), run));
    done = [](const auto&) {};
  }
  waiting_.push_back([this, leases = std::move(leases), done = std::move(done)] {
    if (!Room().ok()) return done(Room());
    auto granted = GrantAndWait(*target(), leases);
    for (size_t i = 0; granted.ok() && on_grant_ && i < leases.size(); ++i) {
      if ((*granted)[i].has_value()) on_grant_(leases[i], *(*granted)[i]);
    }
    done(std::move(granted));
  });
}

DelayedStore::Or<std::vector<Applied>> DelayedStore::Apply(
    const std::string& incarnation, const std::vector<storage::LeaseEvent>& events) {
  Or<std::vector<Applied>> results = ApplyAndWait(*target(), incarnation, events);
  for (size_t i = 0; results.ok() && i < results->size(); ++i) {
    Applied& result = (*results)[i];
    const bool refused = result == Applied::kGap || result == Applied::kNoLease;
    if (mutation_ == Mutation::kTakesEventsByRunAlone && refused) {
      TakeByRun(events[i]);
      result = Applied::kApplied;
    }
  }
  return results;
}

void DelayedStore::ApplyAsync(std::string incarnation, std::vector<storage::LeaseEvent> events,
                              Done<std::vector<Applied>> done) {
  if (mutation_ == Mutation::kAcknowledgesBeforeTheCommit) {
    done(std::vector<Applied>(events.size(), Applied::kApplied));
    done = [](const auto&) {};
  }
  waiting_.push_back(
      [this, incarnation = std::move(incarnation), events = std::move(events),
       done = std::move(done)] { done(Room().ok() ? Apply(incarnation, events) : Room()); });
}

void DelayedStore::EndLeaseAsync(std::string lease, storage::LeaseEnding ending, DoneEnding done) {
  waiting_.push_back(
      [this, lease = std::move(lease), ending = std::move(ending), done = std::move(done)] {
        done(Room().ok() ? EndLeaseAndWait(*target(), lease, ending) : Room());
      });
}

DelayedStore::Or<storage::HeldLeaseDecision> DelayedStore::CheckLease(Text lease, Text incarnation,
                                                                      uint64_t first_unacked) {
  if (mutation_ == Mutation::kTakesEventsByRunAlone) {
    return storage::HeldLeaseDecision{false, first_unacked - 1};
  }
  return target()->CheckLease(lease, incarnation, first_unacked);
}

// As if points were keyed by run and step, so that resending them were harmless.
void DelayedStore::TakeByRun(const storage::LeaseEvent& event) {
  const Or<std::vector<storage::LeaseRecord>> leases = target()->ListLeases();
  if (!leases.ok()) return;
  for (const storage::LeaseRecord& lease : *leases) {
    if (lease.run != runs_[event.lease]) continue;
    storage::LeaseEvent taken = event;
    taken.lease = lease.lease;
    taken.seq = lease.acked + 1;
    ApplyAndWait(*target(), lease.holder.incarnation, {taken}).IgnoreError();
    return;
  }
}

}  // namespace ablate::simulation
