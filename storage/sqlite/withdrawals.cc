// Cancelling and deleting experiments.
#include <optional>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/experiments.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/statement.h"

namespace ablate::storage {
namespace {

struct Found {
  int64_t id = 0;
  ExperimentState state = ExperimentState::kActive;
};

std::optional<Found> Find(Connection& db, absl::string_view name) {
  Statement row(db, "SELECT id, state FROM experiments WHERE name = ?1 AND deleted = 0", name);
  if (!row.Row()) return std::nullopt;
  return Found{row.Int(0), row.As<ExperimentState>(1)};
}

std::vector<int64_t> LiveRuns(Connection& db, int64_t experiment) {
  std::vector<int64_t> runs;
  Statement row(db,
                "SELECT DISTINCT run FROM cells JOIN runs ON runs.id = cells.run "
                "WHERE experiment = ?1 AND runs.state IN (0, 1)",
                experiment);
  while (row.Row()) runs.push_back(row.Int(0));
  return runs;
}

std::string Name(Connection& db, const char* sql, int64_t id) {
  Statement row(db, sql, id);
  return row.Row() ? row.Text(0) : "";
}

// Stops a run that no experiment wants any more.
void CancelRun(Transaction& t, int64_t id, std::vector<Withdrawal>* withdrawals) {
  std::optional<RunRow> run = LoadRun(t.db, id);
  if (!run.has_value()) return;
  if (run->state == RunState::kLeased) {
    withdrawals->push_back({Name(t.db, "SELECT name FROM leases WHERE id = ?1", run->lease),
                            Name(t.db, "SELECT name FROM runs WHERE id = ?1", id),
                            Name(t.db, "SELECT worker FROM leases WHERE id = ?1", run->lease)});
  }
  Record(t, *run, "cancelled");
  End(t, &*run, RunState::kCancelled);
}

}  // namespace

absl::StatusOr<std::vector<Withdrawal>> CancelExperiment(Transaction& t, absl::string_view name) {
  const std::optional<Found> experiment = Find(t.db, name);
  if (!experiment.has_value()) return NotFound("experiment", name);
  std::vector<Withdrawal> withdrawals;
  if (experiment->state != ExperimentState::kActive) return withdrawals;
  Statement(t.db, "UPDATE experiments SET state = 2, end_time = ?2 WHERE id = ?1", experiment->id,
            t.now)
      .Run();
  for (const int64_t run : LiveRuns(t.db, experiment->id)) {
    const std::optional<int> priority = LivePriority(t.db, run);
    if (priority.has_value()) {
      SetPriority(t, run, *priority);
    } else {
      CancelRun(t, run, &withdrawals);
    }
  }
  return withdrawals;
}

absl::Status DeleteExperiment(Transaction& t, absl::string_view name) {
  const std::optional<Found> experiment = Find(t.db, name);
  if (!experiment.has_value()) return NotFound("experiment", name);
  if (experiment->state == ExperimentState::kActive) {
    return absl::FailedPreconditionError(
        absl::StrCat("experiment '", name, "' is active: cancel it first"));
  }
  // Its request_id is free again: whoever sends it now wants a new experiment.
  Statement(t.db, "UPDATE experiments SET deleted = 1, request_id = NULL WHERE id = ?1",
            experiment->id)
      .Run();
  t.chores = true;
  return absl::OkStatus();
}

}  // namespace ablate::storage
