// What is asked about runs.
#include "storage/sqlite/ids.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/statement.h"

namespace ablate::storage {
namespace {

// An edit of evaluation or checkpoints rarely has more relatives worth a note.
constexpr int kMostRelatives = 100;

void ReadProvenance(const RunRow& row, RunRecord* record) {
  record->step = row.step;
  record->steps = row.steps;
  record->state = row.state;
  record->failures = row.failures;
  record->losses = row.losses;
  record->failure = row.failure;
  record->trainer = row.trainer;
  record->device = row.device;
  record->build = row.build;
  record->worker = row.worker;
  record->environment = row.environment;
  record->spent = row.spent;
  record->start_time = row.start_time;
  record->end_time = row.end_time;
}

}  // namespace

absl::StatusOr<RunRecord> GetRun(Connection& db, absl::string_view name) {
  Statement fixed(db,
                  "SELECT runs.id, trajectory, seed, parameters, run_specs.spec, datasets.sha256, "
                  "runs.create_time FROM runs JOIN run_specs ON run_specs.run = runs.id "
                  "LEFT JOIN datasets ON datasets.id = runs.dataset WHERE runs.name = ?1",
                  name);
  if (!fixed.Row()) return NotFound("run", name);
  RunRecord record;
  record.id = std::string(name);
  record.trajectory = fixed.Text(1);
  record.seed = fixed.As<uint32_t>(2);
  record.parameters = fixed.As<uint64_t>(3);
  record.spec = fixed.Text(4);
  record.dataset_blob = fixed.Text(5);
  record.create_time = fixed.Int(6);
  const std::optional<RunRow> row = LoadRun(db, fixed.Int(0));
  if (!row.has_value()) return NotFound("run", name);
  ReadProvenance(*row, &record);
  return record;
}

std::vector<std::string> FindRuns(Connection& db, absl::string_view prefix, uint32_t limit) {
  std::vector<std::string> names;
  Statement row(db, "SELECT name FROM runs WHERE name >= ?1 AND name < ?2 ORDER BY name LIMIT ?3",
                prefix, PrefixEnd(prefix), limit);
  while (row.Row()) names.push_back(row.Text(0));
  return names;
}

absl::StatusOr<std::vector<RunEventRecord>> RunEvents(Connection& db, absl::string_view run) {
  const auto found = FindRunRow(db, run);
  if (!found.ok()) return found.status();
  std::vector<RunEventRecord> events;
  Statement row(db,
                "SELECT time, kind, step, worker, message FROM run_events WHERE run = ?1 "
                "ORDER BY id",
                *found);
  while (row.Row()) {
    events.push_back({row.Int(0), row.Text(1), row.As<uint32_t>(2), row.Text(3), row.Text(4)});
  }
  return events;
}

KnownRun LookUpRun(Connection& db, const NewRun& wanted) {
  KnownRun known;
  Statement newest(db,
                   "SELECT name, state FROM runs WHERE fingerprint = ?1 "
                   "ORDER BY generation DESC LIMIT 1",
                   wanted.fingerprint);
  if (newest.Row()) {
    known.run = newest.Text(0);
    known.state = newest.As<RunState>(1);
  }
  Statement relatives(db,
                      "SELECT name FROM runs WHERE trajectory = ?1 AND fingerprint != ?2 "
                      "ORDER BY id LIMIT ?3",
                      wanted.trajectory, wanted.fingerprint, kMostRelatives);
  while (relatives.Row()) known.same_trajectory.push_back(relatives.Text(0));
  return known;
}

std::optional<double> MeasuredStepTime(Connection& db, absl::string_view shape) {
  Statement row(db, "SELECT device_time, steps FROM step_times WHERE shape = ?1", shape);
  if (!row.Row()) return std::nullopt;
  return static_cast<double>(row.Int(0)) / static_cast<double>(row.Int(1));
}

std::vector<QueuedRun> Queue(Connection& db, absl::string_view device_kind, uint32_t limit) {
  std::vector<QueuedRun> queue;
  Statement row(db,
                "SELECT name, shape, priority, steps FROM runs WHERE state = 0 AND "
                "device_kind = ?1 ORDER BY priority, place LIMIT ?2",
                device_kind, limit);
  while (row.Row()) {
    queue.push_back(
        {row.Text(0), row.Text(1), std::string(device_kind), row.As<int>(2), row.As<uint32_t>(3)});
  }
  return queue;
}

}  // namespace ablate::storage
