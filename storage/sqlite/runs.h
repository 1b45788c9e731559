// Run rows: reads them, and changes their state in one place.
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

// The mutable part of a run's row, and its name.
struct RunRow : RunStatus {
  int64_t id = 0;
  std::string name;
  bool open_steps = false;  // as in NewRun; steps is then what is expected so far
  // The lease that it is LEASED under, or that its last event ended, which allows repeated events
  // of it to be recognised. Empty: none.
  std::string lease;
  std::string incarnation;  // incarnation of the lease's worker
  uint64_t acked = 0;       // number of the lease's last applied event
  std::string charged;      // user; changed by SetClaim only
};

std::optional<RunRow> FindRun(Connection& db, absl::string_view name);
std::optional<RunRow> LoadRun(Connection& db, int64_t id);
std::optional<RunRow> FindRunOfLease(Connection& db, absl::string_view lease);

// Ends an active experiment once its last run and its spec's analyses have ended, and reactivates
// an ended one if one of its runs was queued again.
void SettleExperiment(Transaction& t, int64_t experiment);
// Writes a row with a new change number, updates the counts of the experiments that have the run,
// for a change from state `before`, and ends, cancels or reactivates those experiments. Keeps the
// final values of a run that ends, and forgets those of one that is queued again.
void SaveRun(Transaction& t, const RunRow& run, RunState before);
// Notes the lease's first event, by which a lane has begun the run. The caller saves it.
void BeginRun(Transaction& t, RunRow* run);
// Like SaveRun if only step, spent and acked may have changed. Returns the change number.
uint64_t SaveProgress(Transaction& t, const RunRow& run);
// Adds a line to a run's history.
void RecordEvent(Transaction& t, const RunRow& run, absl::string_view kind,
                 absl::string_view message = "");
// Returns a run to its old place in the queue. Saves.
void Requeue(Transaction& t, RunRow* run);
// Puts a run into a final state. Saves.
void EndRun(Transaction& t, RunRow* run, RunState state);
// Priority of runs of which every active experiment is paused.
inline constexpr int kPausedPriority = 3;
// The claim on a run by the active experiments that need it.
struct Claim {
  int priority = 1;     // best of the experiments that aren't paused; else kPausedPriority
  std::string charged;  // owner of the first experiment
};
// Returns the claim; nothing if no active experiment has the run.
std::optional<Claim> LiveClaim(Connection& db, int64_t run);
void SetClaim(Transaction& t, int64_t run, const Claim& claim);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_RUNS_H_
