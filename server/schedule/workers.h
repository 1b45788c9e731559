// The scheduler's state of a worker: its stream and leases. The store alone decides about leases;
// this state serves granting and noticing that a worker is gone.
#ifndef ABLATE_SERVER_SCHEDULE_WORKERS_H_
#define ABLATE_SERVER_SCHEDULE_WORKERS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/schedule/growth_rate.h"
#include "storage/lease_store.h"
#include "storage/records.h"

namespace ablate::schedule {

// Interface of one attached stream. Thread-safe. Calls must neither block nor call the scheduler.
class WorkerStream {
 public:
  virtual ~WorkerStream() = default;
  virtual void Send(const worker::v1::ToWorker& message) = 0;
  // Ends the stream; the worker may return with a new one.
  virtual void Close(const absl::Status& why) = 0;
};

// Measures a run that lanes train by its points, for people.
class TrainingMeter {
 public:
  void Add(absl::Duration now, const storage::PointsEvent& event);
  double steps_per_second(absl::Duration now) const { return rate_.PerSecond(now); }
  // Returns the training loss since the first event, evenly thinned, with the newest value last.
  const std::vector<float>& losses() const { return losses_; }

 private:
  void AddLoss(float loss);

  GrowthRate rate_{absl::Seconds(10), absl::Milliseconds(500)};
  std::vector<float> losses_;  // every stride_-th one, then the newest
  size_t stride_ = 1;
  size_t count_ = 0;  // of all values
};

struct HeldLease {
  std::string incarnation;
  uint64_t order = 0;  // order of granting
  std::string run;
  uint32_t lanes = 1;    // that train it together
  bool started = false;  // a lane has begun it
  bool ended = false;    // its end has arrived, but may not be committed yet
  // When the last heartbeat that named it came, and since when its step had not changed then.
  absl::Duration reported_at;
  absl::Duration stalled_since;
  // An end that was decided and isn't known to be committed yet.
  std::optional<storage::LeaseEnding> ending;
  bool end_with_store = false;  // the store is committing it
  TrainingMeter meter;

  bool stepping() const { return started && !ended; }
};

using HeldLeases = std::map<std::string, HeldLease, std::less<>>;

struct WorkerState {
  std::string incarnation;
  std::string device;
  std::string device_kind;
  std::string build;
  // Its trainers, each with the environment that its bits depend on; empty if unknown.
  std::map<std::string, std::string> trainers;
  std::string no_programs;  // as in Hello
  uint32_t numerics_version = 0;
  uint32_t config_version = 0;
  uint32_t lanes = 0;  // now
  uint32_t most_lanes = 0;
  uint64_t memory_bytes = 0;
  bool analysis = false;  // its role: gets no runs
  bool leaving = false;   // drains: gets nothing new
  uint64_t session = 0;   // 0: not attached
  absl::Duration detached_at;
  absl::Duration reported_at;  // when its last heartbeat came
  // When, by that heartbeat, some lane last made a step or had nothing to do.
  absl::Duration progress_at;
  std::optional<worker::v1::DeviceUse> device_use;  // by that heartbeat
  uint32_t dispatched_at = 0;                       // its load when the last dispatch began
  uint32_t granting = 0;       // lanes of its runs in the grant that the store is committing
  uint32_t granted_up_to = 0;  // its load after the last grant
  bool worked = false;         // it was granted a run
  // When another scheduler ends it, and the same as a date; 0: none does.
  absl::Duration ends_at = absl::InfiniteDuration();
  storage::Micros end_time = 0;
  storage::Micros attach_time = 0;
  HeldLeases leases;

  // Returns the lease; null if it doesn't hold it.
  HeldLease* Find(absl::string_view lease);
  // Returns the number of its lanes that a run of so many takes.
  uint32_t LanesOf(uint32_t run_lanes) const { return std::min(run_lanes, std::max(lanes, 1u)); }
  // Returns the sum of LanesOf over the runs that its lanes have or will have to begin.
  uint32_t load() const;
  // Returns the leases to blame if the worker dies now: those whose runs its lanes have begun. If
  // none is known to have begun, as many as fit its lanes in order of granting, because lanes begin
  // them in that order.
  std::set<std::string> stepping() const;
};

using WorkerStates = std::map<std::string, WorkerState, std::less<>>;

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_WORKERS_H_
