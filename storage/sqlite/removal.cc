// Slices of deletion.
#include "storage/sqlite/removal.h"

#include <utility>

#include "storage/sqlite/statement.h"

namespace ablate::storage {
namespace {

// What a slice may cost, in rows, so that it holds the writer for some 30 ms at most. A row with
// points frees many pages.
constexpr int kSliceRows = 2000;
constexpr int kPointsCost = 10;
// Whoever looks for a blob waits, too, while one file of a slice goes.
constexpr int kSliceBlobs = 20;

void RemoveRun(Transaction& t, int64_t run) {
  Statement(t.db, "DELETE FROM uncompacted WHERE run = ?1", run).Run();
  Statement(t.db, "DELETE FROM run_specs WHERE run = ?1", run).Run();
  Statement(t.db, "DELETE FROM runs WHERE id = ?1", run).Run();
  Statement(t.db, "INSERT OR IGNORE INTO dead_runs VALUES (?1)", run).Run();
}

// Rows of a dead run that go in slices; each statement takes the run and a limit.
struct RunRows {
  const char* sql;
  int cost;
};
constexpr RunRows kRunRows[] = {
    {"DELETE FROM row_groups WHERE id IN (SELECT id FROM row_groups WHERE run = ?1 LIMIT ?2) "
     "RETURNING 1",
     kPointsCost},
    {"DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE run = ?1 LIMIT ?2) "
     "RETURNING 1",
     kPointsCost},
    {"DELETE FROM run_events WHERE id IN (SELECT id FROM run_events WHERE run = ?1 LIMIT ?2) "
     "RETURNING 1",
     1},
};

// Takes what it costs from the budget; the run is gone if some of that is left.
void RemoveRunRows(Transaction& t, int64_t run, int* budget) {
  for (const RunRows& rows : kRunRows) {
    for (Statement gone(t.db, rows.sql, run, *budget / rows.cost + 1); gone.Row();) {
      *budget -= rows.cost;
    }
    if (*budget <= 0) return;
  }
  RemoveArtifacts(t, run, 0);
  DropResumeState(t, run);
  Statement(t.db, "DELETE FROM summaries WHERE run = ?1", run).Run();
  Statement(t.db, "DELETE FROM dead_runs WHERE run = ?1", run).Run();
  *budget -= 5;
}

}  // namespace

bool RemoveCells(Transaction& t) {
  Statement next(t.db, "SELECT id FROM experiments WHERE deleted = 1 ORDER BY id LIMIT 1");
  if (!next.Row()) return false;
  const int64_t experiment = next.Int(0);
  std::vector<std::pair<int64_t, int64_t>> cells;  // place, run
  Statement cell(t.db, "SELECT place, run FROM cells WHERE experiment = ?1 LIMIT ?2", experiment,
                 kSliceRows / 5);
  while (cell.Row()) cells.emplace_back(cell.Int(0), cell.Int(1));
  for (const auto& [place, run] : cells) {
    Statement(t.db, "DELETE FROM cells WHERE experiment = ?1 AND place = ?2", experiment, place)
        .Run();
    if (!Statement(t.db, "SELECT 1 FROM cells WHERE run = ?1 LIMIT 1", run).Row()) {
      RemoveRun(t, run);
    }
  }
  if (cells.empty()) {
    Statement(t.db, "DELETE FROM experiments WHERE id = ?1", experiment).Run();
  }
  return true;
}

bool RemoveDeadRuns(Transaction& t) {
  int budget = kSliceRows;
  bool any = false;
  while (budget > 0) {
    Statement next(t.db, "SELECT run FROM dead_runs ORDER BY run LIMIT 1");
    if (!next.Row()) break;
    RemoveRunRows(t, next.Int(0), &budget);
    any = true;
  }
  return any;
}

bool SweepLoose(Transaction& t, Blobs* blobs, size_t* trashed) {
  std::vector<std::string> kept, superseded;
  Statement loose(t.db, "SELECT sha256, superseded FROM loose_blobs LIMIT ?1", kSliceBlobs);
  while (loose.Row()) (loose.Int(1) == 0 ? kept : superseded).push_back(loose.Text(0));
  for (const auto* hashes : {&kept, &superseded}) {
    for (const std::string& hash : *hashes) {
      Statement(t.db, "DELETE FROM loose_blobs WHERE sha256 = ?1", hash).Run();
    }
  }
  SweepUnnamed(t, blobs, Worth::kKeeping, kept, trashed);
  SweepUnnamed(t, blobs, Worth::kNothing, superseded, trashed);
  return !kept.empty() || !superseded.empty();
}

void SweepUnnamed(Transaction& t, Blobs* blobs, Worth worth, const std::vector<std::string>& hashes,
                  size_t* trashed) {
  if (blobs == nullptr) return;
  for (const std::string& hash : hashes) {
    if (IsNamed(t.db, hash)) continue;
    t.after_commit.push_back([blobs, worth, hash, trashed] {
      // Whatever keeps a blob now, a pin or a failing disk, the next start looks at all of them.
      const absl::StatusOr<Swept> swept = blobs->Sweep(hash, worth == Worth::kKeeping);
      if (swept.ok() && *swept == Swept::kTrashed) ++*trashed;
    });
  }
}

}  // namespace ablate::storage
