// The queue and its leases, as the scheduler sees the store: the transitions that the protocol
// between server and worker is made of.
#ifndef ABLATE_STORAGE_LEASE_STORE_H_
#define ABLATE_STORAGE_LEASE_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/blobs.h"
#include "storage/records.h"

namespace ablate::storage {

struct QueuedRun {
  std::string run;
  std::string shape;
  std::string device_kind;
  std::string trainer;
  int priority = 1;  // the best of its live experiments'
  uint32_t steps = 0;
  std::string user;    // who is charged
  uint64_t place = 0;  // order of submission
};

// What a user has of the devices.
struct DeviceShare {
  // Device time that was charged, in microseconds: an hour halves it.
  double used = 0;
  uint32_t training = 0;  // runs under leases
  double expected = 0;    // device time that those still take, as far as that was measured
};
using DeviceShares = std::map<std::string, DeviceShare, std::less<>>;  // by user

// Who holds a lease, recorded with every run it trains.
struct LeaseHolder {
  std::string worker;
  std::string incarnation;
  std::string device;
  std::string build;
  std::string trainer;
  // What its bits depend on beside the trainer; empty if it doesn't say.
  std::string environment;
  uint32_t numerics_version = 0;  // 0 if it doesn't say
};

// A lease to be made over a run that is queued. Its id is the caller's: random, never used before.
struct NewLease {
  std::string lease;
  LeaseHolder holder;
  std::string run;
};

// A run as it is handed out: rewound to its resume state, or to step 0.
struct GrantedRun {
  std::string spec;
  std::string dataset_blob;
  std::string resume_blob;  // empty: from step 0
  uint32_t resume_step = 0;
  bool keep_state = false;  // the state at its end is to be sent, for a longer run
};

// One for each lease that was asked for; nothing if it was not made.
using Grants = std::vector<std::optional<GrantedRun>>;

struct StartedEvent {};
struct PointsEvent {
  std::vector<Column> columns;
  uint32_t step = 0;
  Spent spent;  // since the run's last points
};
struct CheckpointEvent {
  uint32_t step = 0;
  std::string blob;
  uint64_t bytes = 0;
};
struct ResumeStateEvent {
  uint32_t step = 0;
  std::string blob;
  uint64_t bytes = 0;
};
struct FinishedEvent {
  bool diverged = false;
  uint32_t step = 0;
};
struct FailedEvent {
  std::string message;
};
struct ReleasedEvent {
  // Why the resume state can't be continued from; empty: it is no reason to give the run back.
  std::string state_refused;
};

struct LeaseEvent {
  std::string lease;
  uint64_t seq = 0;  // from 1, without gaps
  std::variant<StartedEvent, PointsEvent, CheckpointEvent, ResumeStateEvent, FinishedEvent,
               FailedEvent, ReleasedEvent>
      event;
};

// What became of an event.
enum class Applied {
  kApplied,   // now durable: acknowledge
  kRepeated,  // was durable already: acknowledge
  kGap,       // an earlier event is missing: close the stream, the worker resends
  kNoLease,   // the lease is not this worker's any more: drop
};

// Answer about a lease that a worker says it holds.
struct HeldLeaseDecision {
  bool drop = false;
  uint64_t acked = 0;
};

// Why a lease ends before its run does, and what that costs the run.
enum class LeaseEnd {
  kLost,      // worker silent or gone: no attempt, but twenty in a row without progress fail a run
  kDied,      // the worker died by itself while it was stepping the run: a failure
  kReleased,  // drained, or the server knows the worker gave it up: costs nothing
};

struct LeaseEnding {
  LeaseEnd end;
  std::string message;  // kept in the run's history
};

struct LeaseRecord {
  std::string lease;
  LeaseHolder holder;
  uint64_t acked = 0;
  std::string run;
};

// What a lease gives its worker the right to, while its run is LEASED under it.
struct LeaseRights {
  std::string worker;
  // Blobs that its grant names: the data set, and the state that the run goes on from.
  std::set<std::string> reads;
  uint64_t parameters = 0;  // of the run
};

// A lease whose run is to stop on its worker.
struct Withdrawal {
  std::string lease;
  std::string worker;
};

inline constexpr uint32_t kMaxFailuresWithoutProgress = 3;
inline constexpr uint32_t kMaxLossesWithoutProgress = 20;

// What the scheduler asks of the store, and what its tests stand in for; service.md's invariants
// hold inside these transactions. Thread-safe; any write may find the disk full, as Store says.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  // Null in memory.
  virtual Blobs* blobs() = 0;
  // Queued runs for a device kind and any of some trainers, user by user: of each at most `limit`,
  // best priority first, then oldest.
  virtual absl::StatusOr<std::vector<QueuedRun>> Queue(absl::string_view device_kind,
                                                       const std::set<std::string>& trainers,
                                                       uint32_t limit) = 0;
  // Of all who were ever charged.
  virtual absl::StatusOr<DeviceShares> GetShares() = 0;
  // Mean lane microseconds a step of finished runs of this shape; nothing if there is none.
  virtual absl::StatusOr<std::optional<double>> MeasuredStepTime(absl::string_view shape) = 0;
  // The writes wait for no disk: `done` is called on the writer's thread after the commit; must not
  // block.
  template <typename T>
  using Done = std::function<void(absl::StatusOr<T>)>;
  using DoneEnding = std::function<void(const absl::Status&)>;
  // New leases, in one transaction, of those whose runs are still QUEUED, each run rewound to
  // its resume state's place (later row groups, checkpoints go; the summaries stored with it
  // return), or to step 0 if the state's blob is gone; one that is to begin from a shorter run's
  // last state is put there at its first grant, or at step 0 if that can't be. One result each.
  virtual void GrantAsync(std::vector<NewLease> leases, Done<Grants> done) = 0;
  // Applies events in order; one result each. `holder_incarnation` must be the lease's. A blob
  // named by an event must be published and pinned by the caller until `done`. INVALID_ARGUMENT or
  // FAILED_PRECONDITION (a blob is not there) for an event that no worker of ours sends; nothing is
  // applied then.
  virtual void ApplyAsync(std::string holder_incarnation, std::vector<LeaseEvent> events,
                          Done<std::vector<Applied>> done) = 0;
  // Ends a lease. Its run goes back to the queue; by `ending` it counts against it.
  virtual void EndLeaseAsync(std::string lease, LeaseEnding ending, DoneEnding done) = 0;
  // DROP if the lease is gone, another incarnation's, or the worker lacks events that this file
  // never had (first_unacked > last + 1: a restored backup).
  virtual absl::StatusOr<HeldLeaseDecision> CheckLease(absl::string_view lease,
                                                       absl::string_view incarnation,
                                                       uint64_t first_unacked) = 0;
  // Those under which a run is LEASED; those without an event in the order of granting.
  virtual absl::StatusOr<std::vector<LeaseRecord>> ListLeases() = 0;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_LEASE_STORE_H_
