// The real store, with the time between a request and its commit in the simulation's hands.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_DELAYED_STORE_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_DELAYED_STORE_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/schedule/lease_store_proxy.h"

namespace ablate::simulation {

// What a wrong server would do; the simulation has to notice.
enum class Mutation {
  kNone,
  kAcknowledgesBeforeTheCommit,
  kTakesEventsByRunAlone,  // whatever the lease and the number
  kGrantsBeforeTheCommit,
};

// The scheduler's writes wait until Commit; any other write commits what waits first, as one queue
// of writes would.
class DelayedStore : public schedule::LeaseStoreProxy {
 public:
  DelayedStore(storage::Store* target, Mutation mutation)
      : LeaseStoreProxy(target), mutation_(mutation) {}

  size_t waiting() const { return waiting_.size(); }
  // Commits the oldest write that waits.
  void Commit();
  // The process ends: what waits was never written, and nobody is told.
  void Crash() { waiting_.clear(); }
  void SetFull(bool full) { full_ = full; }
  // Called with each lease that is made, and what it hands out.
  void OnGrant(std::function<void(const storage::NewLease&, const storage::GrantedRun&)> call) {
    on_grant_ = std::move(call);
  }

  // As the store's.
  Or<storage::CancelledExperiment> CancelExperiment(Text id);
  void GrantAsync(std::vector<storage::NewLease> leases, Done<storage::Grants> done) override;
  void ApplyAsync(std::string incarnation, std::vector<storage::LeaseEvent> events,
                  Done<std::vector<storage::Applied>> done) override;
  void EndLeaseAsync(std::string lease, storage::LeaseEnding ending, DoneEnding done) override;
  Or<storage::HeldLeaseDecision> CheckLease(Text lease, Text incarnation,
                                            uint64_t first_unacked) override;

 private:
  absl::Status Room() const;
  Or<std::vector<storage::Applied>> Apply(const std::string& incarnation,
                                          const std::vector<storage::LeaseEvent>& events);
  void TakeByRun(const storage::LeaseEvent& event);

  const Mutation mutation_;
  std::deque<std::function<void()>> waiting_;
  std::function<void(const storage::NewLease&, const storage::GrantedRun&)> on_grant_;
  std::map<std::string, std::string> runs_;  // by lease, of all that were asked for
  bool full_ = false;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_DELAYED_STORE_H_
