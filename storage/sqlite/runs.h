// Run rows: reading them, and the one way in which their state changes.
#ifndef ABLATE_STORAGE_SQLITE_RUNS_H_
#define ABLATE_STORAGE_SQLITE_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// The part of a run's row that changes, and its name.
struct RunRow {
  int64_t id = 0;
  std::string name;
  uint32_t steps = 0;
  RunState state = RunState::kQueued;
  // The lease that it is LEASED under, or that its last event ended: events of that one which are
  // sent again are known to be repetitions. Empty: none.
  std::string lease;
  std::string incarnation;  // of the lease's worker
  uint64_t acked = 0;       // number of the lease's last event that was applied
  uint32_t step = 0;
  uint32_t failures = 0;
  uint32_t losses = 0;
  std::string failure;
  std::string trainer, device, build, worker, environment;
  std::string charged;  // user; changed by SetClaim alone
  Spent spent;
  Micros start_time = 0, end_time = 0;
};

std::optional<RunRow> FindRun(Connection& db, absl::string_view name);
std::optional<RunRow> LoadRun(Connection& db, int64_t id);
std::optional<RunRow> FindRunOfLease(Connection& db, absl::string_view lease);

// Ends an active experiment when its last run and what its spec asks to have computed of them have
// ended, and revives an ended one when one of its runs was queued again.
void SettleExperiment(Transaction& t, int64_t experiment);
// Writes a row with a new change number, moves the counts of the experiments that have the run from
// state `before`, and ends or revives those experiments.
void SaveRun(Transaction& t, const RunRow& run, RunState before);
// The same when only step, spent and acked may have changed. Returns the change number.
uint64_t SaveProgress(Transaction& t, const RunRow& run);
// Adds a line to a run's history.
void RecordEvent(Transaction& t, const RunRow& run, absl::string_view kind,
                 absl::string_view message = "");
// Back into the queue, at its old place. Saves.
void Requeue(Transaction& t, RunRow* run);
// Into a final state. Saves.
void EndRun(Transaction& t, RunRow* run, RunState state);
// What a run has of the experiments that keep it alive.
struct Claim {
  int priority = 1;     // the best
  std::string charged;  // the first one's owner
};
// Nothing if there is none.
std::optional<Claim> LiveClaim(Connection& db, int64_t run);
void SetClaim(Transaction& t, int64_t run, const Claim& claim);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_RUNS_H_
