#include "storage/sqlite/runs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/status_macros.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/experiments.h"
#include "storage/sqlite/final_values.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/last_states.h"
#include "storage/sqlite/origins.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// A change of evaluation or checkpoints rarely has more related runs worth a note.
constexpr int kMaxRelatives = 100;

// The numbers are stored.
static_assert(static_cast<int>(RunState::kQueued) == 0 &&
              static_cast<int>(RunState::kLeased) == 1 && static_cast<int>(RunState::kDone) == 2 &&
              static_cast<int>(RunState::kDiverged) == 3 &&
              static_cast<int>(RunState::kFailed) == 4 &&
              static_cast<int>(RunState::kCancelled) == 5);
static_assert(static_cast<int>(ExperimentState::kActive) == 0 &&
              static_cast<int>(ExperimentState::kEnded) == 1 &&
              static_cast<int>(ExperimentState::kCancelled) == 2);

bool IsLive(RunState state) { return state == RunState::kQueued || state == RunState::kLeased; }

void AddCounts(Connection& db, int64_t experiment, const std::array<int64_t, 6>& by) {
  Statement(
      db,
      "UPDATE experiments SET queued = queued + ?2, leased = leased + ?3, done = done + ?4, "
      "diverged = diverged + ?5, failed = failed + ?6, cancelled = cancelled + ?7 WHERE id = ?1",
      experiment, by[0], by[1], by[2], by[3], by[4], by[5])
      .Run();
}

// Returns the state as cells have it: the generated column `shown`.
RunState ShownState(const RunRow& run, RunState state) {
  return state == RunState::kLeased && run.acked == 0 ? RunState::kQueued : state;
}

void MoveCounts(Transaction& t, int64_t run, RunState from, RunState to) {
  if (from == to) return;
  std::vector<std::pair<int64_t, int64_t>> cells;  // experiment, number
  Statement read(t.db, "SELECT experiment, count(*) FROM cells WHERE run = ?1 GROUP BY experiment",
                 run);
  while (read.Row()) cells.emplace_back(read.Int(0), read.Int(1));
  for (const auto& [experiment, number] : cells) {
    std::array<int64_t, 6> by{};
    by[static_cast<size_t>(from)] -= number;
    by[static_cast<size_t>(to)] += number;
    AddCounts(t.db, experiment, by);
    if (to == RunState::kFailed) CancelIfTooManyFailed(t, experiment);
    if (IsLive(from) != IsLive(to)) SettleExperiment(t, experiment);
  }
}

void MoveTo(Transaction& t, RunRow* run, RunState state) {
  const RunState before = std::exchange(run->state, state);
  SaveRun(t, *run, before);
}

// Returns true if it is queued or training and an active experiment of the owner has it.
bool CountsFor(Connection& db, absl::string_view owner, int64_t run) {
  return Statement(db,
                   "SELECT 1 FROM cells JOIN experiments ON experiments.id = cells.experiment JOIN "
                   "runs ON runs.id = cells.run WHERE cells.run = ?1 AND owner = ?2 AND "
                   "experiments.state = 0 AND deleted = 0 AND runs.state IN (0, 1) LIMIT 1",
                   run, owner)
      .Row();
}

KnownRun LookUpRun(Connection& db, const NewRun& wanted, absl::string_view owner) {
  KnownRun known;
  Statement newest(
      db,
      "SELECT name, state, id FROM runs WHERE fingerprint = ?1 ORDER BY generation DESC LIMIT 1",
      wanted.fingerprint);
  bool begins = true;  // CreateExperiment lets a run start there
  if (newest.Row()) {
    known.run = newest.Text(0);
    known.state = newest.As<RunState>(1);
    known.counts_toward_quota = CountsFor(db, owner, newest.Int(2));
    begins = known.state == RunState::kCancelled;
    const auto state = begins ? FindResumeState(db, newest.Int(2)) : std::nullopt;
    if (state.has_value()) {
      begins = false;
      known.saved = {state->step, state->environment};
    }
  }
  if (begins) {
    known.shorter = FindShorterRuns(db, wanted.growth, wanted.steps);
    const uint32_t longest = known.shorter.empty() ? 0 : known.shorter.front().steps;
    known.lost = FindLostState(db, wanted.growth, longest, wanted.steps);
  }
  Statement relatives(
      db, "SELECT name FROM runs WHERE trajectory = ?1 AND fingerprint != ?2 ORDER BY id LIMIT ?3",
      wanted.trajectory, wanted.fingerprint, kMaxRelatives);
  while (relatives.Row()) known.same_trajectory.push_back(relatives.Text(0));
  return known;
}

}  // namespace

std::optional<RunRow> LoadRun(Connection& db, int64_t id) {
  Statement row(db,
                "SELECT steps, state, lease, step, failures, losses, failure, trainer, device, "
                "build, worker, device_time, contended_time, tokens, start_time, end_time, "
                "environment, charged, incarnation, acked, name, open_steps FROM runs WHERE id "
                "= ?1",
                id);
  if (!row.Row()) return std::nullopt;
  RunRow run;
  run.id = id;
  run.steps = row.As<uint32_t>(0);
  run.state = row.As<RunState>(1);
  run.lease = row.Text(2);
  run.step = row.As<uint32_t>(3);
  run.failures = row.As<uint32_t>(4);
  run.losses = row.As<uint32_t>(5);
  run.failure = row.Text(6);
  run.trainer = row.Text(7);
  run.device = row.Text(8);
  run.build = row.Text(9);
  run.worker = row.Text(10);
  run.spent = {row.Int(11), row.Int(12), row.As<uint64_t>(13)};
  run.start_time = row.Int(14);
  run.end_time = row.Int(15);
  run.environment = row.Text(16);
  run.charged = row.Text(17);
  run.incarnation = row.Text(18);
  run.acked = row.As<uint64_t>(19);
  run.name = row.Text(20);
  run.open_steps = row.Int(21) != 0;
  return run;
}

std::optional<RunRow> FindRun(Connection& db, absl::string_view name) {
  Statement row(db, "SELECT id FROM runs WHERE name = ?1", name);
  if (!row.Row()) return std::nullopt;
  return LoadRun(db, row.Int(0));
}

std::optional<RunRow> FindRunOfLease(Connection& db, absl::string_view lease) {
  Statement row(db, "SELECT id FROM runs WHERE lease = ?1", lease);
  if (!row.Row()) return std::nullopt;
  return LoadRun(db, row.Int(0));
}

void SettleExperiment(Transaction& t, int64_t experiment) {
  Statement(t.db,
            "UPDATE experiments SET state = 1, end_time = ?2 WHERE id = ?1 AND state = 0 AND "
            "queued + leased = 0 AND analyses IN (0, 3)",
            experiment, t.now)
      .Run();
  // With other numbers, other values may be selected and other runs be analyzed.
  Statement revived(t.db,
                    "UPDATE experiments SET state = 0, end_time = 0, analyses = min(analyses, 1), "
                    "analyses_failure = '' WHERE id = ?1 AND state != 2 AND (state = 1 OR analyses "
                    "> 1) AND queued + leased > 0 RETURNING id",
                    experiment);
  const bool lives = revived.Row();
  revived.Run();
  if (!lives) return;
  Statement(t.db, "DELETE FROM experiment_analyses WHERE experiment = ?1", experiment).Run();
}

void SaveRun(Transaction& t, const RunRow& run, RunState before) {
  const uint64_t change = t.NextChange();
  Statement(
      t.db,
      "UPDATE runs SET state = ?2, lease = nullif(?3, ''), step = ?4, failures = ?5, losses = ?6, "
      "failure = ?7, trainer = ?8, device = ?9, build = ?10, worker = ?11, device_time = ?12, "
      "contended_time = ?13, tokens = ?14, start_time = ?15, end_time = ?16, environment = ?17, "
      "change = ?18, incarnation = ?19, acked = ?20, steps = ?21 WHERE id = ?1",
      run.id, static_cast<int>(run.state), run.lease, run.step, run.failures, run.losses,
      run.failure, run.trainer, run.device, run.build, run.worker, run.spent.device_time,
      run.spent.contended_time, run.spent.tokens, run.start_time, run.end_time, run.environment,
      change, run.incarnation, run.acked, run.steps)
      .Run();
  Statement(t.db, "UPDATE cells SET change = ?2 WHERE run = ?1", run.id, change).Run();
  if (run.state == before) return;
  MoveCounts(t, run.id, ShownState(run, before), ShownState(run, run.state));
  if (IsLive(run.state) == IsLive(before)) return;
  if (IsLive(run.state)) {
    ForgetFinalValues(t, run.id);
  } else {
    KeepFinalValues(t, run.id, run.name);
  }
}

void BeginRun(Transaction& t, RunRow* run) {
  run->acked = 1;
  MoveCounts(t, run->id, RunState::kQueued, RunState::kLeased);
}

uint64_t SaveProgress(Transaction& t, const RunRow& run) {
  const uint64_t change = t.NextChange();
  Statement(t.db,
            "UPDATE runs SET step = ?2, device_time = ?3, contended_time = ?4, tokens = ?5, change "
            "= ?6, acked = ?7, steps = ?8 WHERE id = ?1",
            run.id, run.step, run.spent.device_time, run.spent.contended_time, run.spent.tokens,
            change, run.acked, run.steps)
      .Run();
  Statement(t.db, "UPDATE cells SET change = ?2 WHERE run = ?1", run.id, change).Run();
  return change;
}

void RecordEvent(Transaction& t, const RunRow& run, absl::string_view kind,
                 absl::string_view message) {
  Statement(t.db,
            "INSERT INTO run_events (run, time, kind, step, worker, message) VALUES (?1, ?2, ?3, "
            "?4, ?5, ?6)",
            run.id, t.now, kind, run.step, run.state == RunState::kLeased ? run.worker : "",
            message)
      .Run();
}

void Requeue(Transaction& t, RunRow* run) { MoveTo(t, run, RunState::kQueued); }

void EndRun(Transaction& t, RunRow* run, RunState state) {
  run->end_time = t.now;
  MoveTo(t, run, state);
}

std::optional<Claim> LiveClaim(Connection& db, int64_t run) {
  Statement live(
      db,
      "SELECT min(iif(paused, ?2, priority)) OVER (), owner FROM experiments WHERE state "
      "= 0 AND deleted = 0 AND id IN (SELECT experiment FROM cells WHERE run = ?1) ORDER "
      "BY id LIMIT 1",
      run, kPausedPriority);
  if (!live.Row()) return std::nullopt;
  return Claim{live.As<int>(0), live.Text(1)};
}

void SetClaim(Transaction& t, int64_t run, const Claim& claim) {
  Statement(t.db,
            "UPDATE runs SET priority = ?2, charged = ?3 WHERE id = ?1 AND (priority, charged) != "
            "(?2, ?3)",
            run, claim.priority, claim.charged)
      .Run();
}

absl::StatusOr<std::vector<KnownRun>> Store::LookUpRuns(const std::vector<NewRun>& runs,
                                                        absl::string_view owner) {
  std::vector<KnownRun> known;
  known.reserve(runs.size());
  RETURN_IF_ERROR(db_->ReadEach(runs.size(), [&](Connection& db, size_t i) {
    known.push_back(LookUpRun(db, runs[i], owner));
    return absl::OkStatus();
  }));
  return known;
}

absl::StatusOr<RunRecord> Store::GetRun(absl::string_view id) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<RunRecord> {
    Statement fixed(
        db,
        "SELECT runs.id, trajectory, seed, parameters, run_specs.spec, datasets.sha256, "
        "runs.create_time, runs.private_to, initial_blob, growth, data.sha256 FROM runs JOIN "
        "run_specs ON run_specs.run = runs.id LEFT JOIN datasets ON datasets.id = runs.dataset "
        "LEFT JOIN datasets data ON data.id = runs.program_data WHERE runs.name = ?1",
        id);
    if (!fixed.Row()) return NotFound("run", id);
    RunRecord record;
    record.id = std::string(id);
    record.trajectory = fixed.Text(1);
    record.seed = fixed.As<uint32_t>(2);
    record.parameters = fixed.As<uint64_t>(3);
    record.spec = fixed.Text(4);
    record.dataset_blob = fixed.Text(5);
    record.create_time = fixed.Int(6);
    record.private_to = fixed.Text(7);
    record.initial_blob = fixed.Text(8);
    record.growth = fixed.Text(9);
    record.data_blob = fixed.Text(10);
    const std::optional<RunRow> row = LoadRun(db, fixed.Int(0));
    if (!row.has_value()) return NotFound("run", id);
    static_cast<RunStatus&>(record) = *row;
    record.begun = row->state == RunState::kLeased && row->acked > 0;
    if (std::optional<Origin> origin = FindOrigin(db, row->id); origin.has_value()) {
      record.origin = std::move(origin->name);
      record.origin_step = origin->step;
    }
    return record;
  });
}

absl::StatusOr<std::vector<std::string>> Store::FindRuns(const Viewer& viewer,
                                                         absl::string_view prefix, uint32_t limit) {
  return db_->Read([&](Connection& db) {
    std::vector<std::string> names;
    // By the index runs_visible, so that others' names aren't read.
    Statement row(
        db,
        "SELECT name FROM runs WHERE ?4 AND name >= ?1 AND name < ?2 UNION ALL SELECT name FROM "
        "runs WHERE NOT ?4 AND private_to = '' AND name >= ?1 AND name < ?2 UNION ALL SELECT name "
        "FROM runs WHERE NOT ?4 AND private_to = ?5 AND ?5 <> '' AND name >= ?1 AND name < ?2 "
        "ORDER BY name LIMIT ?3",
        prefix, PrefixEnd(prefix), limit, viewer.sees_all, viewer.user);
    while (row.Row()) names.push_back(row.Text(0));
    return names;
  });
}

absl::StatusOr<std::vector<std::string>> Store::VisibleRuns(const Viewer& viewer,
                                                            const std::vector<std::string>& runs) {
  return db_->Read([&](Connection& db) {
    std::vector<std::string> visible;
    // By an index. A large cluster's workers hold tens of thousands of runs.
    const bool any_private =
        Statement(db, "SELECT 1 FROM runs WHERE private_to > '' LIMIT 1").Row();
    if (!any_private || viewer.sees_all) return runs;
    for (const std::string& run : runs) {
      Statement row(db, "SELECT private_to FROM runs WHERE name = ?1", run);
      if (row.Row() && Sees(viewer, row.Text(0))) visible.push_back(run);
    }
    return visible;
  });
}

absl::StatusOr<std::vector<RunEventRecord>> Store::RunEvents(absl::string_view run) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<RunEventRecord>> {
    ASSIGN_OR_RETURN(const auto found, FindRunRow(db, run));
    std::vector<RunEventRecord> events;
    Statement row(
        db, "SELECT time, kind, step, worker, message FROM run_events WHERE run = ?1 ORDER BY id",
        found);
    while (row.Row()) {
      events.push_back({row.Int(0), row.Text(1), row.As<uint32_t>(2), row.Text(3), row.Text(4)});
    }
    return events;
  });
}

}  // namespace ablate::storage
