// Rows that name blobs of runs.
#include "storage/sqlite/artifacts.h"

#include "storage/sqlite/statement.h"

namespace ablate::storage {

absl::StatusOr<std::vector<ArtifactRecord>> ListArtifacts(Connection& db, absl::string_view run) {
  const auto found = FindRunRow(db, run);
  if (!found.ok()) return found.status();
  std::vector<ArtifactRecord> artifacts;
  Statement row(db,
                "SELECT kind, step, blob, bytes FROM artifacts WHERE run = ?1 ORDER BY kind, step",
                *found);
  while (row.Row()) {
    artifacts.push_back(
        {std::string(run), row.Text(0), row.As<uint32_t>(1), row.Text(2), row.As<uint64_t>(3)});
  }
  return artifacts;
}

void AddCheckpoint(Transaction& t, const RunRow& run, const CheckpointEvent& event,
                   uint64_t change) {
  Statement old(t.db,
                "DELETE FROM artifacts WHERE run = ?1 AND kind = 'checkpoint' AND step = ?2 "
                "RETURNING blob",
                run.id, event.step);
  while (old.Row()) Loosen(t, old.View(0), Worth::kKeeping);
  Statement(t.db,
            "INSERT INTO artifacts (run, kind, step, blob, bytes, change) "
            "VALUES (?1, 'checkpoint', ?2, ?3, ?4, ?5)",
            run.id, event.step, event.blob, event.bytes, change)
      .Run();
}

void RemoveArtifacts(Transaction& t, int64_t run, uint64_t after) {
  Statement gone(t.db, "DELETE FROM artifacts WHERE run = ?1 AND change > ?2 RETURNING blob", run,
                 after);
  while (gone.Row()) Loosen(t, gone.View(0), Worth::kKeeping);
}

uint32_t KeepResumeState(Transaction& t, const RunRow& run, const ResumeStateEvent& event,
                         uint64_t change) {
  uint32_t before = 0;
  Statement old(t.db, "SELECT step, blob FROM resume_states WHERE run = ?1", run.id);
  if (old.Row()) {
    before = old.As<uint32_t>(0);
    if (old.View(1) != event.blob) Loosen(t, old.View(1), Worth::kNothing);
  }
  Statement(t.db,
            "REPLACE INTO resume_states (run, step, blob, bytes, change, device_time, "
            "contended_time, tokens, environment, summaries) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
            "coalesce((SELECT data FROM summaries WHERE run = ?1), x''))",
            run.id, event.step, event.blob, event.bytes, change, run.spent.device_time,
            run.spent.contended_time, run.spent.tokens, run.environment)
      .Run();
  return before;
}

bool DropResumeState(Transaction& t, int64_t run) {
  bool dropped = false;
  Statement gone(t.db, "DELETE FROM resume_states WHERE run = ?1 RETURNING blob", run);
  for (; gone.Row(); dropped = true) Loosen(t, gone.View(0), Worth::kNothing);
  return dropped;
}

bool IsNamed(Connection& db, absl::string_view sha256) {
  return Statement(db,
                   "SELECT 1 FROM datasets WHERE sha256 = ?1 "
                   "UNION ALL SELECT 1 FROM artifacts WHERE blob = ?1 "
                   "UNION ALL SELECT 1 FROM resume_states WHERE blob = ?1",
                   sha256)
      .Row();
}

void Loosen(Transaction& t, absl::string_view sha256, Worth worth) {
  Statement(t.db,
            "INSERT INTO loose_blobs (sha256, superseded) VALUES (?1, ?2) "
            "ON CONFLICT (sha256) DO UPDATE SET superseded = min(superseded, ?2)",
            sha256, worth == Worth::kNothing ? 1 : 0)
      .Run();
  t.chores = true;
}

}  // namespace ablate::storage
