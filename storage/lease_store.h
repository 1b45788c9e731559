// The scheduler's interface to the store: the queue, its leases, and the transitions of the
// protocol between server and worker.
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
  int priority = 1;  // best priority of its active experiments
  uint32_t steps = 0;
  std::string user;            // user who is charged
  int64_t place = 0;           // position in order of submission, unless it was moved
  uint32_t lanes = 1;          // that train it together
  uint32_t whole_seconds = 0;  // as in NewRun
};

// A user's past and present use of the devices.
struct DeviceShare {
  // Charged device time in microseconds, with a half-life of one hour.
  double used = 0;
  uint32_t training = 0;  // lanes of runs under leases
  double expected = 0;    // device time that those still need, if measured
};
using DeviceShares = std::map<std::string, DeviceShare, std::less<>>;  // keyed by user

// Describes the holder of a lease, recorded with every run that it trains.
struct LeaseHolder {
  std::string worker;
  std::string incarnation;
  std::string device;
  std::string build;
  std::string trainer;
  // Everything besides the trainer that its bits depend on; empty if unknown.
  std::string environment;
  uint32_t numerics_version = 0;  // 0 if unknown
};

// A lease to be made on a queued run. The caller chooses its id: random, never used before.
struct NewLease {
  std::string lease;
  LeaseHolder holder;
  std::string run;
  uint32_t lanes = 1;  // of the run; not stored with the lease
};

// A granted run: rewound to its resume state, or to step 0.
struct GrantedRun {
  std::string spec;
  std::string dataset_blob;
  std::string data_blob;
  std::string initial_blob;
  std::string resume_blob;  // empty: from step 0
  uint32_t resume_step = 0;
  bool keep_state = false;  // the worker must send the state at the end, for a longer run
};

// One entry per requested lease; nothing if it was not made.
using Grants = std::vector<std::optional<GrantedRun>>;

struct StartedEvent {};
struct PointsEvent {
  std::vector<Column> columns;
  uint32_t step = 0;
  Spent spent;                  // since the run's last points
  uint32_t expected_steps = 0;  // of a run with open steps; 0: unknown
};
struct LogEvent {
  std::string text;
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
  bool is_final = false;  // another attempt would fail in the same way
};
struct ReleasedEvent {
  // Why the resume state can't be used; empty if that isn't the reason for the release.
  std::string state_refused;
};

struct LeaseEvent {
  std::string lease;
  uint64_t seq = 0;  // from 1, without gaps
  std::variant<StartedEvent, PointsEvent, CheckpointEvent, ResumeStateEvent, FinishedEvent,
               FailedEvent, ReleasedEvent, LogEvent>
      event;
};

// Result of an event.
enum class Applied {
  kApplied,   // durable now: acknowledge
  kRepeated,  // was durable already: acknowledge
  kGap,       // an earlier event is missing: close the stream, the worker resends
  kNoLease,   // the lease isn't this worker's any more: drop
};

// Answer about a lease that a worker claims to hold.
struct HeldLeaseDecision {
  bool drop = false;
  uint64_t acked = 0;
};

// Why a lease ends before its run, and the cost for the run.
enum class LeaseEnd {
  // The worker is silent or gone. Not a failure of the run, but kMaxLossesWithoutProgress in a row
  // fail it.
  kLost,
  // Counts as a failure of the run: the worker process died while it was stepping the run, it sent
  // an invalid event, or the stored spec can't be read.
  kDied,
  kReleased,  // costs nothing: drained, released, or never begun
};

struct LeaseEnding {
  LeaseEnd end;
  std::string message;  // stored in the run's history
};

struct LeaseRecord {
  std::string lease;
  LeaseHolder holder;
  uint64_t acked = 0;
  std::string run;
};

// Permissions of a lease's worker, while its run is LEASED under it.
struct LeaseRights {
  std::string worker;
  // Blobs that its grant names: the data set, the checkpoint that the run begins with, and the
  // state that it continues from.
  std::set<std::string> reads;
  uint64_t parameters = 0;  // the run's number of parameters
};

// A lease whose run must stop on its worker.
struct Withdrawal {
  std::string lease;
  std::string worker;
};

using OnWithdrawnFunction = std::function<void(std::vector<Withdrawal>)>;

inline constexpr uint32_t kMaxFailuresWithoutProgress = 3;
inline constexpr uint32_t kMaxLossesWithoutProgress = 20;

// The scheduler's interface to the store, which its tests replace by a fake. The invariants of the
// worker protocol hold inside these transactions. Thread-safe; any write may find the disk full, as
// Store documents.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  // Returns the blobs; null in memory.
  virtual Blobs* blobs() = 0;
  // Returns queued runs for a device kind and any of some trainers, by user: for each at most
  // `limit`, best priority first, then oldest. Leaves out those of which every experiment is
  // paused.
  virtual absl::StatusOr<std::vector<QueuedRun>> Queue(absl::string_view device_kind,
                                                       const std::set<std::string>& trainers,
                                                       uint32_t limit) = 0;
  // Returns the shares of all users who were ever charged.
  virtual absl::StatusOr<DeviceShares> GetShares() = 0;
  // Returns the mean lane microseconds per step of finished runs of this shape. If there are none,
  // returns that of runs that have trained for a second; nothing if there are none either.
  virtual absl::StatusOr<std::optional<double>> MeasuredStepTime(absl::string_view shape) = 0;
  // Sets the receiver of leases that a write ended although it wasn't about them, because it
  // cancelled an experiment with too many failed runs. Called on the writer's thread after the
  // commit and before the write's own answer; must not block.
  virtual void OnWithdrawn(OnWithdrawnFunction on_withdrawn) = 0;
  // The writes don't wait for the disk: `done` is called on the writer's thread after the commit
  // and must not block.
  template <typename T>
  using Done = std::function<void(absl::StatusOr<T>)>;
  using DoneEnding = std::function<void(const absl::Status&)>;
  // Makes leases, in one transaction, for those runs that are still QUEUED; one result each. Each
  // run is rewound to its resume state (later row groups and checkpoints are deleted, the summaries
  // stored with the state are restored), or to step 0 if the state's blob is gone. A run with an
  // origin starts from that shorter run's saved training state at its first grant, or at step 0 if
  // that isn't possible.
  virtual void GrantAsync(std::vector<NewLease> leases, Done<Grants> done) = 0;
  // Applies events in order; one result each. `holder_incarnation` must be the lease's. The caller
  // must have published each blob that an event names, and keep it pinned until `done`.
  // INVALID_ARGUMENT or FAILED_PRECONDITION (a blob is missing) for an event that our workers never
  // send; nothing is applied then.
  virtual void ApplyAsync(std::string holder_incarnation, std::vector<LeaseEvent> events,
                          Done<std::vector<Applied>> done) = 0;
  // Ends a lease and returns its run to the queue; `ending` determines the cost for the run.
  virtual void EndLeaseAsync(std::string lease, LeaseEnding ending, DoneEnding done) = 0;
  // Returns DROP if the lease is gone or another incarnation's, or if the worker lacks events that
  // this file never had (first_unacked > last + 1: a restored backup).
  virtual absl::StatusOr<HeldLeaseDecision> CheckLease(absl::string_view lease,
                                                       absl::string_view incarnation,
                                                       uint64_t first_unacked) = 0;
  // Returns the leases under which a run is LEASED; those without an event in order of granting.
  virtual absl::StatusOr<std::vector<LeaseRecord>> ListLeases() = 0;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_LEASE_STORE_H_
