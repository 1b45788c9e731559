#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/analysis_progress.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/last_states.h"
#include "storage/sqlite/maintenance.h"
#include "storage/sqlite/origins.h"

namespace ablate::storage {
namespace {

// Cost of a slice in rows, so that it holds the writer for some 30 ms at most. A row with points
// frees many pages.
constexpr int kSliceRows = 2000;
constexpr int kPointsCost = 10;
constexpr int kAnalysisCost = 10;
constexpr int kCellCost = 5;
// Readers of blobs wait while one file of a slice is removed.
constexpr size_t kSliceBlobs = 20;
constexpr size_t kReadHashes = 500;  // checked in one read
// Time to notice that an older database was restored.
constexpr int kTrashDays = 7;
constexpr Micros kTrashAge = kTrashDays * Micros{24} * 3600 * 1000000;
constexpr Micros kTrashPause = Micros{3600} * 1000000;
// A crash leaves this few. If there are more, and they are over half of all blobs, the database
// isn't the one that they belong to.
constexpr size_t kFewLeftovers = 5;

void RemoveRun(Transaction& t, int64_t run) {
  Statement(t.db, "DELETE FROM uncompacted WHERE run = ?1", run).Run();
  Statement(t.db, "DELETE FROM run_specs WHERE run = ?1", run).Run();
  Statement gone(t.db, "DELETE FROM runs WHERE id = ?1 RETURNING initial_blob", run);
  while (gone.Row()) {
    if (!gone.View(0).empty()) DropReference(t, gone.View(0), OnSweep::kTrash);
  }
  Statement(t.db, "INSERT OR IGNORE INTO dead_runs VALUES (?1)", run).Run();
}

// Charges the bytes of an ended run to the owner of the first experiment that still has it.
void ChargeRest(Transaction& t, int64_t run) {
  Statement(t.db,
            "UPDATE runs SET charged = rest.owner FROM (SELECT owner FROM experiments JOIN cells "
            "ON cells.experiment = experiments.id WHERE cells.run = ?1 AND deleted <> 1 ORDER BY "
            "experiments.state != 0, experiments.id LIMIT 1) AS rest WHERE runs.id = ?1",
            run)
      .Run();
}

// Rows of a dead run that are removed in slices; each statement takes the run and a limit.
struct RunRows {
  const char* sql;
  int cost;
};
constexpr RunRows kRunRows[] = {
    {"DELETE FROM row_groups WHERE id IN (SELECT id FROM row_groups WHERE run = ?1 LIMIT ?2) "
     "RETURNING 1",
     kPointsCost},
    {"DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE run = ?1 LIMIT ?2) RETURNING 1",
     kPointsCost},
    {"DELETE FROM final_values WHERE (name, last, run) IN (SELECT name, last, run FROM "
     "final_values WHERE run = ?1 LIMIT ?2) RETURNING 1",
     1},
    {"DELETE FROM run_logs WHERE (run, begin) IN (SELECT run, begin FROM run_logs WHERE run = ?1 "
     "LIMIT ?2) RETURNING 1",
     kPointsCost},
    {"DELETE FROM run_events WHERE id IN (SELECT id FROM run_events WHERE run = ?1 LIMIT ?2) "
     "RETURNING 1",
     1},
};

// Takes the cost from the budget; the run is gone if some of that is left.
void RemoveRunRows(Transaction& t, int64_t run, int* budget) {
  for (const RunRows& rows : kRunRows) {
    for (Statement gone(t.db, rows.sql, run, *budget / rows.cost + 1); gone.Row();) {
      *budget -= rows.cost;
    }
    if (*budget <= 0) return;
  }
  RemoveArtifacts(t, run, 0);
  DropResumeState(t, run);
  DropLastState(t, run);
  ForgetOrigin(t, run);
  Statement(t.db, "DELETE FROM summaries WHERE run = ?1", run).Run();
  Statement(t.db, "DELETE FROM dead_runs WHERE run = ?1", run).Run();
  *budget -= 5;
}

// The following functions return false if there was nothing to do.

bool RemoveFields(Transaction& t, int64_t experiment) {
  bool any = false;
  Statement gone(t.db,
                 "DELETE FROM cell_fields WHERE (name, experiment, variant) IN (SELECT name, "
                 "experiment, variant FROM cell_fields WHERE experiment = ?1 LIMIT ?2) RETURNING 1",
                 experiment, kSliceRows);
  while (gone.Row()) any = true;
  return any;
}

// Removes the names that no field, label or final value has.
void RemoveUnusedNames(Transaction& t) {
  Statement(t.db,
            "DELETE FROM names WHERE NOT EXISTS (SELECT 1 FROM cell_fields WHERE name = names.id) "
            "AND NOT EXISTS (SELECT 1 FROM final_values WHERE name = names.id)")
      .Run();
}

// Removes cells of deleted experiments. A run that loses its last cell is removed at once, with the
// analyses that it is a subject of; its points and similar rows are left to RemoveDeadRuns.
bool RemoveCells(Transaction& t) {
  Statement next(t.db, "SELECT id FROM experiments WHERE deleted = 1 ORDER BY id LIMIT 1");
  if (!next.Row()) return false;
  const int64_t experiment = next.Int(0);
  int budget = kSliceRows;
  std::vector<std::pair<int64_t, int64_t>> cells;  // place, run
  Statement cell(t.db, "SELECT place, run FROM cells WHERE experiment = ?1 LIMIT ?2", experiment,
                 kSliceRows / kCellCost);
  while (cell.Row()) cells.emplace_back(cell.Int(0), cell.Int(1));
  for (const auto& [place, run] : cells) {
    const bool last =
        !Statement(t.db,
                   "SELECT 1 FROM cells WHERE run = ?1 AND (experiment, place) != (?2, ?3) LIMIT 1",
                   run, experiment, place)
             .Row();
    // If there are more, the cell and the run stay for the next slice: every subject of an analysis
    // has a name.
    if (last) budget -= kAnalysisCost * RemoveAnalyses(t, run, budget / kAnalysisCost + 1);
    if (budget <= 0) return true;
    Statement(t.db, "DELETE FROM cells WHERE experiment = ?1 AND place = ?2", experiment, place)
        .Run();
    if (last) {
      RemoveRun(t, run);
    } else {
      ChargeRest(t, run);
    }
    budget -= kCellCost;
  }
  if (cells.empty() && !RemoveFields(t, experiment)) {
    Statement(t.db, "DELETE FROM analysis_labels WHERE experiment = ?1", experiment).Run();
    Statement(t.db, "DELETE FROM experiment_analyses WHERE experiment = ?1", experiment).Run();
    Statement(t.db, "DELETE FROM experiments WHERE id = ?1", experiment).Run();
    RemoveUnusedNames(t);
  }
  return true;
}

bool RemoveDeadRuns(Transaction& t) {
  int budget = kSliceRows;
  bool any = false;
  while (true) {
    Statement next(t.db, "SELECT run FROM dead_runs ORDER BY run LIMIT 1");
    if (!next.Row()) {
      if (any) RemoveUnusedNames(t);
      return any;
    }
    if (budget <= 0) return true;
    RemoveRunRows(t, next.Int(0), &budget);
    any = true;
  }
}

void ForgetLoose(Transaction& t, const std::string& hash) {
  Statement(t.db, "DELETE FROM loose_blobs WHERE sha256 = ?1", hash).Run();
}

// Sweeps those of the blobs that no row names once the transaction is durable: into the trash, or
// as OnSweep in the row of loose_blobs says. A row that names one later was written after its blob
// was pinned, so that it is spared: pins last until the naming request has been answered, and no
// other request runs between this one's commit and the removal. `blobs` may be null; `sweeps` must
// live until the request is answered.
void SweepUnnamed(Transaction& t, Blobs* blobs, const std::vector<std::string>& hashes,
                  Sweeps* sweeps) {
  for (const std::string& hash : hashes) {
    if (blobs == nullptr || IsNamed(t.db, hash)) {
      ForgetLoose(t, hash);
      continue;
    }
    Statement loose(t.db, "SELECT superseded FROM loose_blobs WHERE sha256 = ?1", hash);
    const bool keep = !loose.Row() || loose.Int(0) == 0;
    t.after_commit.push_back([blobs, hash, keep, sweeps] {
      // If a pin or a failing disk keeps a blob now, it is checked again later.
      const absl::StatusOr<Swept> swept = blobs->Sweep(hash, keep);
      if (!swept.ok() || *swept == Swept::kHeld) return;
      if (*swept == Swept::kTrashed) ++sweeps->trashed;
      sweeps->gone.push_back(hash);
    });
  }
}

// Sweeps blobs that lost a name, from the first hash after `after` on, which moves. Keeps the row
// of a pinned one, with its OnSweep; removes the rows of the previous slice's blobs that are gone.
bool SweepLoose(Transaction& t, Blobs* blobs, std::string* after, Sweeps* sweeps) {
  for (const std::string& hash : sweeps->gone) ForgetLoose(t, hash);
  t.after_commit.push_back([sweeps] { sweeps->gone.clear(); });
  std::vector<std::string> hashes;
  Statement loose(t.db, "SELECT sha256 FROM loose_blobs WHERE sha256 > ?1 ORDER BY sha256 LIMIT ?2",
                  *after, kSliceBlobs);
  while (loose.Row()) hashes.push_back(loose.Text(0));
  if (hashes.empty()) return false;
  SweepUnnamed(t, blobs, hashes, sweeps);
  t.after_commit.push_back([after, last = hashes.back()] { *after = last; });
  return true;
}

}  // namespace

absl::Status Maintenance::RemoveDeleted() {
  absl::Status status = Repeat(/*frees=*/true, RemoveCells);
  status.Update(Repeat(/*frees=*/true, RemoveDeadRuns));
  return status;
}

absl::Status Maintenance::SweepBlobs(bool list_folder) {
  Sweeps sweeps;
  std::string after;
  absl::Status status = Repeat(
      /*frees=*/true, [&](Transaction& t) { return SweepLoose(t, blobs_, &after, &sweeps); });
  status.Update(SweepFolder(list_folder, &sweeps));
  if (sweeps.trashed > 0) {
    Log(absl::StrCat(sweeps.trashed, " blobs that nothing in the database names any more went to ",
                     "the trash, where they stay for ", kTrashDays, " days"));
  }
  status.Update(EmptyTrash());
  return status;
}

// Sweeps blobs that were never named: once those that a crash left, and those unpinned since.
absl::Status Maintenance::SweepFolder(bool list, Sweeps* sweeps) {
  if (blobs_ == nullptr) return absl::OkStatus();
  absl::Status status = SweepAll(blobs_->TakeUnpinned(), sweeps);
  if (!status.ok()) folder_listed_ = false;  // the next listing has those that were not checked
  if (!list || folder_listed_) return status;
  folder_listed_ = true;
  const absl::Status swept = SweepLeftovers(sweeps);
  if (!swept.ok()) folder_listed_ = false;
  status.Update(swept);
  return status;
}

absl::Status Maintenance::SweepLeftovers(Sweeps* sweeps) {
  ASSIGN_OR_RETURN(const auto all, blobs_->List());
  ASSIGN_OR_RETURN(const auto leftovers, Unnamed(all));
  const bool most = leftovers.size() > kFewLeftovers && leftovers.size() > all.size() / 2;
  if (most && !options_.sweep_leftovers) {
    Log(absl::StrCat(
        "of the ", all.size(), " blobs beside the database it does not name ", leftovers.size(),
        ": it may be an older one that was put back, so none of them is swept. Put the newer "
        "database in its place, or let them go: ablated --sweep-leftovers"));
    return absl::OkStatus();
  }
  return SweepAll(leftovers, sweeps);
}

absl::StatusOr<std::vector<std::string>> Maintenance::Unnamed(
    const std::vector<std::string>& hashes) {
  std::vector<std::string> unnamed;
  for (size_t begin = 0; begin < hashes.size() && !stopping(); begin += kReadHashes) {
    RETURN_IF_ERROR(db_->Read([&](Connection& db) {
      for (size_t i = begin; i < std::min(begin + kReadHashes, hashes.size()); ++i) {
        if (!IsNamed(db, hashes[i])) unnamed.push_back(hashes[i]);
      }
      return absl::OkStatus();
    }));
  }
  return unnamed;
}

absl::Status Maintenance::SweepAll(const std::vector<std::string>& hashes, Sweeps* sweeps) {
  for (size_t begin = 0; begin < hashes.size() && !stopping(); begin += kSliceBlobs) {
    const size_t end = std::min(begin + kSliceBlobs, hashes.size());
    const std::vector<std::string> some(hashes.begin() + static_cast<std::ptrdiff_t>(begin),
                                        hashes.begin() + static_cast<std::ptrdiff_t>(end));
    RETURN_IF_ERROR(db_->Free([&](Transaction& t) {
      SweepUnnamed(t, blobs_, some, sweeps);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::Status Maintenance::EmptyTrash() {
  const Micros now = options_.now();
  // In both directions, because the clock may be set back.
  if (blobs_ == nullptr || std::abs(now - trash_looked_at_) < kTrashPause) return absl::OkStatus();
  trash_looked_at_ = now;
  blobs_->partials().Trim();
  ASSIGN_OR_RETURN(const auto removed, blobs_->EmptyTrash(now - kTrashAge));
  if (removed > 0) {
    Log(absl::StrCat(removed, " blobs were in the trash for ", kTrashDays,
                     " days and are removed for good"));
  }
  return absl::OkStatus();
}

}  // namespace ablate::storage
