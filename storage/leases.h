// Leases as the store sees them: the transitions that the protocol between server and worker is
// made of.
#ifndef ABLATE_STORAGE_LEASES_H_
#define ABLATE_STORAGE_LEASES_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "storage/records.h"

namespace ablate::storage {

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

// A lease to be made over runs that are queued. Its id is the caller's: random, never used before.
struct NewLease {
  std::string lease;
  LeaseHolder holder;
  std::vector<std::string> runs;
};

// A run as it is handed out: rewound to its resume state, or to step 0.
struct GrantedRun {
  std::string run;
  std::string spec;
  std::string dataset_blob;
  std::string resume_blob;  // empty: from step 0
  uint32_t resume_step = 0;
};

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
  std::string run;
  std::variant<StartedEvent, PointsEvent, CheckpointEvent, ResumeStateEvent, FinishedEvent,
               FailedEvent, ReleasedEvent>
      event;
};

// What became of an event.
enum class Applied {
  kApplied,   // now durable: acknowledge
  kRepeated,  // was durable already: acknowledge
  kGap,       // an earlier event is missing: close the stream, the worker resends
  kNoLease,   // the lease is not this worker's any more, or the run left it: drop
};

// Answer about a lease that a worker says it holds.
struct LeaseVerdict {
  bool drop = false;
  uint64_t acked = 0;
};

// Why a lease ends before its runs do, and what that costs the runs it still holds.
enum class LeaseEnd {
  kLost,      // worker silent or gone: no attempt, but twenty in a row without progress fail a run
  kDied,      // the worker died by itself: a failure of the runs it was stepping
  kReleased,  // drained, or the server knows the worker gave it up: costs nothing
};

struct LeaseRecord {
  std::string lease;
  LeaseHolder holder;
  uint64_t acked = 0;
  std::vector<std::string> runs;  // LEASED under it: one at least
};

inline constexpr uint32_t kFailuresWithoutProgress = 3;
inline constexpr uint32_t kLossesWithoutProgress = 20;

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_LEASES_H_
