#include "storage/sqlite/artifacts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/ids.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

#define PRIVATE_TO_OF_RUN "(SELECT private_to FROM runs WHERE id = run)"

// Has a row for each name of a blob: to whom what has the name is private.
constexpr char kNamesOfBlob[] =
    "SELECT private_to FROM datasets WHERE sha256 = ?1 UNION ALL SELECT private_to FROM models "
    "WHERE sha256 = ?1 UNION ALL SELECT " PRIVATE_TO_OF_RUN
    " FROM artifacts WHERE blob = ?1 UNION ALL SELECT " PRIVATE_TO_OF_RUN
    " FROM resume_states WHERE blob = ?1 UNION ALL SELECT " PRIVATE_TO_OF_RUN
    " FROM last_states WHERE blob = ?1 UNION ALL SELECT private_to FROM runs WHERE initial_blob = "
    "?1 AND initial_blob <> '' UNION ALL SELECT private_to FROM analyses WHERE state_blob = ?1 "
    "UNION ALL SELECT private_to FROM analyses WHERE artifact = ?1";

#undef PRIVATE_TO_OF_RUN

}  // namespace

absl::StatusOr<std::vector<ArtifactRecord>> Store::ListArtifacts(absl::string_view run) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<ArtifactRecord>> {
    ASSIGN_OR_RETURN(const auto found, FindRunRow(db, run));
    std::vector<ArtifactRecord> artifacts;
    Statement row(
        db, "SELECT kind, step, blob, bytes FROM artifacts WHERE run = ?1 ORDER BY kind, step",
        found);
    while (row.Row()) {
      artifacts.push_back(
          {std::string(run), row.Text(0), row.As<uint32_t>(1), row.Text(2), row.As<uint64_t>(3)});
    }
    return artifacts;
  });
}

void AddCheckpoint(Transaction& t, const RunRow& run, const CheckpointEvent& event,
                   uint64_t change) {
  Statement old(t.db,
                "DELETE FROM artifacts WHERE run = ?1 AND kind = 'checkpoint' AND step = ?2 "
                "RETURNING blob",
                run.id, event.step);
  while (old.Row()) DropReference(t, old.View(0), OnSweep::kTrash);
  Statement(t.db,
            "INSERT INTO artifacts (run, kind, step, blob, bytes, change) VALUES (?1, "
            "'checkpoint', ?2, ?3, ?4, ?5)",
            run.id, event.step, event.blob, event.bytes, change)
      .Run();
}

void RemoveArtifacts(Transaction& t, int64_t run, uint64_t after) {
  Statement gone(t.db, "DELETE FROM artifacts WHERE run = ?1 AND change > ?2 RETURNING blob", run,
                 after);
  while (gone.Row()) DropReference(t, gone.View(0), OnSweep::kTrash);
}

std::optional<ResumeState> FindResumeState(Connection& db, int64_t run) {
  Statement row(db,
                "SELECT step, blob, change, device_time, contended_time, tokens, environment, "
                "summaries FROM resume_states WHERE run = ?1",
                run);
  if (!row.Row()) return std::nullopt;
  return ResumeState{row.As<uint32_t>(0), row.Text(1),
                     row.As<uint64_t>(2), {row.Int(3), row.Int(4), row.As<uint64_t>(5)},
                     row.Text(6),         row.Text(7)};
}

uint32_t SaveResumeState(Transaction& t, const RunRow& run, const ResumeStateEvent& event,
                         uint64_t change) {
  uint32_t before = 0;
  Statement old(t.db, "SELECT step, blob FROM resume_states WHERE run = ?1", run.id);
  if (old.Row()) {
    before = old.As<uint32_t>(0);
    if (old.View(1) != event.blob) DropReference(t, old.View(1), OnSweep::kRemove);
  }
  Statement(
      t.db,
      "REPLACE INTO resume_states (run, step, blob, bytes, change, device_time, contended_time, "
      "tokens, environment, summaries) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
      "coalesce((SELECT data FROM summaries WHERE run = ?1), x''))",
      run.id, event.step, event.blob, event.bytes, change, run.spent.device_time,
      run.spent.contended_time, run.spent.tokens, run.environment)
      .Run();
  return before;
}

bool DropResumeState(Transaction& t, int64_t run) {
  bool dropped = false;
  Statement gone(t.db, "DELETE FROM resume_states WHERE run = ?1 RETURNING blob", run);
  for (; gone.Row(); dropped = true) DropReference(t, gone.View(0), OnSweep::kRemove);
  return dropped;
}

absl::Status CheckPublished(Blobs* blobs, absl::string_view sha256) {
  if (blobs == nullptr || blobs->Size(sha256).ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "blob '", absl::CHexEscape(sha256.substr(0, 64)), "' isn't published. Publish it first"));
}

uint64_t SizeOf(Blobs* blobs, absl::string_view sha256, uint64_t said) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  said = std::min(said, kMost);
  return blobs == nullptr || sha256.empty() ? said : blobs->Size(sha256).value_or(said);
}

bool IsNamed(Connection& db, absl::string_view sha256) {
  return Statement(db, kNamesOfBlob, sha256).Row();
}

uint64_t CountNames(Connection& db, const Viewer& viewer, absl::string_view sha256) {
  uint64_t count = 0;
  for (Statement name(db, kNamesOfBlob, sha256); name.Row();) count += Sees(viewer, name.Text(0));
  return count;
}

void DropReference(Transaction& t, absl::string_view sha256, OnSweep on_sweep) {
  Statement(t.db,
            "INSERT INTO loose_blobs (sha256, superseded) VALUES (?1, ?2) ON CONFLICT (sha256) DO "
            "UPDATE SET superseded = min(superseded, ?2)",
            sha256, on_sweep == OnSweep::kRemove ? 1 : 0)
      .Run();
  t.needs_maintenance = true;
}

}  // namespace ablate::storage
