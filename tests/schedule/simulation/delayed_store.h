// Wraps the real store; the simulation controls the time between a request and its commit.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_DELAYED_STORE_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_DELAYED_STORE_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/schedule/lease_store_proxy.h"

namespace ablate::simulation {

// Bugs of a server that the simulation has to detect.
enum class Mutation {
  kNone,
  kAcknowledgesBeforeTheCommit,
  kTakesEventsByRunAlone,  // accepts events regardless of lease and number
  kGrantsBeforeTheCommit,
};

// The scheduler's writes wait until Commit; any other write first commits the waiting ones, as one
// queue of writes would.
class DelayedStore : public schedule::LeaseStoreProxy {
 public:
  DelayedStore(storage::Store* target, Mutation mutation)
      : LeaseStoreProxy(target), mutation_(mutation) {}

  size_t waiting() const { return waiting_.size(); }
  // Commits the oldest waiting write.
  void Commit();
  // Ends the process: waiting writes are never made, and nobody is told.
  void Crash() { waiting_.clear(); }
  void SetFull(bool full) { full_ = full; }
  // Sets a callback for each lease that is made, with its run.
  void OnGrant(std::function<void(const storage::NewLease&, const storage::GrantedRun&)> call) {
    on_grant_ = std::move(call);
  }

  // Same as the store's.
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
  std::map<std::string, std::string> runs_;  // by lease, of all requested ones
  bool full_ = false;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_DELAYED_STORE_H_
