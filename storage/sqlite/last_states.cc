#include "storage/sqlite/last_states.h"

#include "absl/strings/str_cat.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/runs.h"

namespace ablate::storage {
namespace {

// States deleted at once, on the writer's thread.
constexpr int kMaxTrimmed = 200;
// Beyond this number, hardly any is from the same environment.
constexpr int kMaxShorter = 20;
constexpr char kStateDeleted[] = "state deleted";  // kind of event

// Updates the stored total size of saved training states: a server has thousands, and one more with
// every run that ends.
void CountBytes(Transaction& t, int64_t more) {
  Statement(t.db, "UPDATE store SET last_state_bytes = last_state_bytes + ?1", more).Run();
}

uint64_t AllBytes(Connection& db) {
  Statement read(db, "SELECT last_state_bytes FROM store");
  return read.Row() ? read.As<uint64_t>(0) : 0;
}

// Returns the resume state of a run that can be extended, if it is of the run's end.
std::optional<LastState> FindFinalState(Connection& db, int64_t run) {
  Statement row(db,
                "SELECT resume_states.step, blob, bytes, resume_states.environment FROM "
                "resume_states JOIN runs ON runs.id = resume_states.run WHERE runs.id = ?1 AND "
                "growth != '' AND resume_states.step = runs.steps",
                run);
  if (!row.Row()) return std::nullopt;
  return LastState{row.As<uint32_t>(0), row.Text(1), row.As<uint64_t>(2), row.Text(3)};
}

void RecordDeletion(Transaction& t, int64_t run, absl::string_view why) {
  const std::optional<RunRow> row = LoadRun(t.db, run);
  if (!row.has_value()) return;
  RecordEvent(t, *row, kStateDeleted, absl::StrCat("its saved training state was deleted ", why));
}

}  // namespace

std::optional<LastState> FindLastState(Connection& db, int64_t run) {
  Statement row(db, "SELECT step, blob, bytes, environment FROM last_states WHERE run = ?1", run);
  if (!row.Row()) return std::nullopt;
  return LastState{row.As<uint32_t>(0), row.Text(1), row.As<uint64_t>(2), row.Text(3)};
}

void KeepLastState(Transaction& t, Blobs* blobs, int64_t run, uint64_t budget) {
  std::optional<LastState> state = FindFinalState(t.db, run);
  if (state.has_value() && blobs != nullptr) {
    // Use the blob's size for the budget, not the worker's report.
    const absl::StatusOr<uint64_t> size = blobs->Size(state->blob);
    state->bytes = size.ok() ? *size : UINT64_MAX;
  }
  // Don't delete the others for one that exceeds the budget alone.
  if (state.has_value() && state->bytes <= budget) {
    Statement(t.db,
              "INSERT INTO last_states (id, run, growth, step, blob, bytes, environment) SELECT "
              "?2, id, growth, ?3, ?4, ?5, ?6 FROM runs WHERE id = ?1",
              run, t.NextChange(), state->step, state->blob, state->bytes, state->environment)
        .Run();
    CountBytes(t, static_cast<int64_t>(state->bytes));
    TrimLastStates(t, budget, kBeyondBudget);
  } else if (state.has_value()) {
    RecordDeletion(t, run, kBeyondBudget);
  }
  DropResumeState(t, run);
}

void DropLastState(Transaction& t, int64_t run) {
  Statement gone(t.db, "DELETE FROM last_states WHERE run = ?1 RETURNING blob, bytes", run);
  while (gone.Row()) {
    CountBytes(t, -gone.Int(1));
    DropReference(t, gone.View(0), OnSweep::kRemove);
  }
}

bool TrimLastStates(Transaction& t, uint64_t budget, absl::string_view why) {
  for (int trimmed = 0; trimmed < kMaxTrimmed; ++trimmed) {
    if (AllBytes(t.db) <= budget) return trimmed > 0;
    Statement oldest(
        t.db,
        "SELECT run FROM last_states WHERE NOT EXISTS (SELECT 1 FROM origins JOIN runs ON runs.id "
        "= origins.run WHERE origin = last_states.run AND taken = 0 AND runs.state = 0) ORDER BY "
        "id LIMIT 1");
    if (!oldest.Row()) return trimmed > 0;
    RecordDeletion(t, oldest.Int(0), why);
    DropLastState(t, oldest.Int(0));
  }
  return true;
}

std::string WhyLost(Connection& db, int64_t run) {
  Statement event(db,
                  "SELECT substr(message, length('its saved training state ') + 1) FROM run_events "
                  "WHERE run = ?1 AND kind = ?2 ORDER BY id DESC LIMIT 1",
                  run, kStateDeleted);
  return event.Row() ? event.Text(0) : "doesn't exist (any more)";
}

std::vector<ShorterRun> FindShorterRuns(Connection& db, absl::string_view growth, uint32_t steps) {
  std::vector<ShorterRun> shorter;
  if (growth.empty()) return shorter;
  Statement row(db,
                "SELECT name, last_states.step, last_states.environment FROM last_states JOIN runs "
                "ON runs.id = last_states.run WHERE last_states.growth = ?1 AND last_states.step < "
                "?2 ORDER BY last_states.step DESC, last_states.id DESC LIMIT ?3",
                growth, steps, kMaxShorter);
  while (row.Row()) shorter.push_back({row.Text(0), row.As<uint32_t>(1), row.Text(2)});
  return shorter;
}

std::optional<LostState> FindLostState(Connection& db, absl::string_view growth, uint32_t above,
                                       uint32_t below) {
  Statement row(db,
                "SELECT id, steps FROM runs WHERE growth = ?1 AND growth <> '' AND state = 2 AND "
                "steps > ?2 AND steps < ?3 AND NOT EXISTS (SELECT 1 FROM last_states WHERE run = "
                "runs.id) ORDER BY steps DESC, id DESC LIMIT 1",
                growth, above, below);
  if (!row.Row()) return std::nullopt;
  return LostState{row.As<uint32_t>(1), WhyLost(db, row.Int(0))};
}

}  // namespace ablate::storage
