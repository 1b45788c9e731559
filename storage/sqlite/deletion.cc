// Deletes experiments, and finds out what a deletion would remove.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/ids.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

constexpr size_t kMaxDeletionNames = 20;

// Returns the row of an experiment that may be deleted. NOT_FOUND; FAILED_PRECONDITION.
absl::StatusOr<int64_t> FindToDelete(Connection& db, absl::string_view id) {
  const absl::StatusOr<int64_t> experiment = FindExperimentRow(db, id);
  if (!experiment.ok()) return experiment;
  Statement active(db, "SELECT 1 FROM experiments WHERE id = ?1 AND state = ?2", *experiment,
                   static_cast<int>(ExperimentState::kActive));
  if (!active.Row()) return experiment;
  return absl::FailedPreconditionError(
      absl::StrCat("experiment '", id, "' is active. Run `ablate cancel ", id, "` first"));
}

// A blob that rows to be removed name.
struct DoomedBlob {
  uint64_t bytes = 0;
  uint64_t names = 0;  // number of these rows
};

using NewestFirst = std::map<int64_t, std::string, std::greater<>>;  // experiment → its name

// Adds up what is removed with an experiment.
class DeletionSum {
 public:
  DeletionSum(Connection& db, Blobs* blobs, const Viewer& viewer, int64_t experiment)
      : db_(db), blobs_(blobs), viewer_(viewer), experiment_(experiment) {}

  Deletion Sum() {
    Statement cell(db_,
                   "SELECT DISTINCT run, EXISTS (SELECT 1 FROM cells AS other JOIN experiments ON "
                   "experiments.id = other.experiment WHERE other.run = cells.run AND "
                   "other.experiment != ?1 AND deleted = 0) FROM cells WHERE experiment = ?1",
                   experiment_);
    while (cell.Row()) {
      if (cell.Int(1) != 0) {
        AddShared(cell.Int(0));
      } else {
        AddRun(cell.Int(0));
      }
    }
    for (const int64_t analysis : analyses_) AddAnalysis(analysis);
    deletion_.analyses = static_cast<uint32_t>(analyses_.size());
    for (const auto& [hash, blob] : blobs_named_) {
      // Names that the viewer doesn't see keep the blob, too, which must not tell that they exist.
      if (CountNames(db_, viewer_, hash) == blob.names)
        deletion_.bytes += SizeOf(blobs_, hash, blob.bytes);
    }
    deletion_.shared_with = NamesOf(shared_with_);
    deletion_.checkpoint_of = NamesOf(checkpoint_of_);
    return deletion_;
  }

 private:
  // Adds rows of (experiment, its name, its private_to).
  void AddNames(Statement* row, NewestFirst* names) const {
    while (row->Row()) {
      if (Sees(viewer_, row->Text(2))) names->emplace(row->Int(0), row->Text(1));
    }
  }

  static std::vector<std::string> NamesOf(const NewestFirst& experiments) {
    std::vector<std::string> names;
    for (const auto& [id, name] : experiments) {
      if (names.size() == kMaxDeletionNames) break;
      names.push_back(name);
    }
    return names;
  }

  void AddShared(int64_t run) {
    ++deletion_.shared_runs;
    Statement other(db_,
                    "SELECT experiments.id, experiments.name, private_to FROM cells JOIN "
                    "experiments ON experiments.id = experiment WHERE run = ?1 AND experiment != "
                    "?2 AND deleted = 0",
                    run, experiment_);
    AddNames(&other, &shared_with_);
  }

  // Adds a row by two queries of its ID: its device time, and rows of (blob, bytes), in which an
  // empty blob stands for bytes of the database.
  void AddCosts(int64_t id, const char* device_time, const char* bytes) {
    Statement time(db_, device_time, id);
    if (time.Row()) deletion_.device_time += time.Int(0);
    Statement row(db_, bytes, id);
    while (row.Row()) {
      if (row.View(0).empty()) {
        deletion_.bytes += row.As<uint64_t>(1);
        continue;
      }
      DoomedBlob& blob = blobs_named_[row.Text(0)];
      blob.bytes = std::max(blob.bytes, row.As<uint64_t>(1));
      ++blob.names;
    }
  }

  void AddRun(int64_t run) {
    ++deletion_.runs;
    AddCosts(
        run, "SELECT device_time FROM runs WHERE id = ?1",
        "SELECT '', length(data) FROM row_groups WHERE run = ?1 UNION ALL SELECT '', length(data) "
        "FROM chunks WHERE run = ?1 UNION ALL SELECT '', length(data) FROM summaries WHERE run = "
        "?1 UNION ALL SELECT '', length(text) FROM run_logs WHERE run = ?1 UNION ALL SELECT blob, "
        "bytes FROM artifacts WHERE run = ?1 UNION ALL SELECT blob, "
        "bytes FROM resume_states WHERE run = ?1 UNION ALL SELECT blob, bytes FROM last_states "
        "WHERE run = ?1 UNION ALL SELECT initial_blob, 0 FROM runs WHERE id = ?1 AND initial_blob "
        "<> ''");
    Statement analysis(db_,
                       "SELECT analysis, private_to FROM analysis_subjects JOIN analyses ON "
                       "analyses.id = analysis WHERE run = ?1",
                       run);
    while (analysis.Row()) {
      if (Sees(viewer_, analysis.Text(1))) analyses_.insert(analysis.Int(0));
    }
    Statement other(
        db_,
        "SELECT experiments.id, experiments.name, experiments.private_to FROM artifacts JOIN runs "
        "ON initial_blob = blob AND initial_blob <> '' JOIN cells ON cells.run = runs.id JOIN "
        "experiments ON experiments.id = experiment WHERE artifacts.run = ?1 AND experiment != ?2 "
        "AND deleted = 0",
        run, experiment_);
    AddNames(&other, &checkpoint_of_);
  }

  void AddAnalysis(int64_t analysis) {
    AddCosts(analysis, "SELECT device_time FROM analyses WHERE id = ?1",
             "SELECT '', length(result) FROM analyses WHERE id = ?1 UNION ALL SELECT state_blob, "
             "state_bytes FROM analyses WHERE id = ?1 AND state_blob IS NOT NULL UNION ALL SELECT "
             "artifact, artifact_bytes FROM analyses WHERE id = ?1 AND artifact IS NOT NULL");
  }

  Connection& db_;
  Blobs* const blobs_;
  const Viewer& viewer_;
  const int64_t experiment_;
  Deletion deletion_;
  std::set<int64_t> analyses_;
  std::map<std::string, DoomedBlob> blobs_named_;
  NewestFirst shared_with_, checkpoint_of_;
};

// Takes an experiment out of its chain of extensions: one that extends it then extends the one
// before. Without such a one, the one before is the newest again, and is listed.
void LeaveChain(Transaction& t, absl::string_view name, int64_t experiment) {
  std::string before;
  {
    Statement row(t.db, "SELECT extends FROM experiments WHERE id = ?1", experiment);
    if (row.Row()) before = row.Text(0);
  }
  const bool is_extended =
      Statement(t.db,
                "SELECT 1 FROM experiments WHERE extends = ?1 AND extends <> '' AND deleted = 0",
                name)
          .Row();
  if (is_extended) {
    Statement(
        t.db,
        "UPDATE experiments SET extends = ?2 WHERE extends = ?1 AND extends <> '' AND deleted = 0",
        name, before)
        .Run();
  } else if (!before.empty()) {
    Statement(t.db, "UPDATE experiments SET archived = 0 WHERE name = ?1", before).Run();
  }
}

}  // namespace

absl::Status Store::DeleteExperiment(absl::string_view id) {
  return db_->Free([&](Transaction& t) -> absl::Status {
    ASSIGN_OR_RETURN(const auto experiment, FindToDelete(t.db, id));
    // Hides the experiment; Maintenance removes its rows. Its request_id is free again, so that
    // sending it now makes a new experiment.
    Statement(t.db, "UPDATE experiments SET deleted = 1, request_id = NULL WHERE id = ?1",
              experiment)
        .Run();
    LeaveChain(t, id, experiment);
    t.needs_maintenance = true;
    return absl::OkStatus();
  });
}

absl::StatusOr<Deletion> Store::PlanDeletion(const Viewer& viewer, absl::string_view id) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<Deletion> {
    ASSIGN_OR_RETURN(const auto experiment, FindToDelete(db, id));
    return DeletionSum(db, blobs_.get(), viewer, experiment).Sum();
  });
}

}  // namespace ablate::storage
