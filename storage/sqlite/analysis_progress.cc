#include "storage/sqlite/analysis_progress.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/experiment_analyses.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/leases.h"
#include "storage/sqlite/shares.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

std::optional<AnalysisRow> FindOpenAnalysis(Connection& db, absl::string_view name) {
  std::optional<AnalysisRow> found = FindAnalysis(db, name);
  if (found.has_value() && !IsOpen(*found)) return std::nullopt;
  return found;
}

// Removes the result, the arrays and the failure.
void DropResult(Transaction& t, const AnalysisRow& analysis) {
  if (!analysis.artifact.empty()) DropReference(t, analysis.artifact, OnSweep::kTrash);
  Statement(t.db,
            "UPDATE analyses SET progress = 0, result = x'', artifact = NULL, artifact_bytes = 0, "
            "failure = '' WHERE id = ?1",
            analysis.id)
      .Run();
}

// Sets the state that an analysis continues from: a blob, or none if empty. Deletes the previous
// one.
void SetState(Transaction& t, const AnalysisRow& analysis, const std::string& blob, uint64_t bytes,
              bool on_gpu) {
  Statement(t.db,
            "UPDATE analyses SET state_blob = nullif(?2, ''), state_bytes = ?3, state_on_gpu = "
            "iif(?2 = '', NULL, ?4) WHERE id = ?1",
            analysis.id, blob, bytes, on_gpu)
      .Run();
  if (!analysis.state_blob.empty() && analysis.state_blob != blob) {
    DropReference(t, analysis.state_blob, OnSweep::kRemove);
  }
}

void Finish(Transaction& t, const AnalysisRow& analysis, AnalysisState state) {
  SetState(t, analysis, "", 0, false);
  Statement(t.db, "UPDATE analyses SET state = ?2, end_time = ?3 WHERE id = ?1", analysis.id,
            static_cast<int>(state), t.now)
      .Run();
  SettleAskers(t, analysis.id);
  t.NextChange();
}

// Adds the time of a DONE analysis to its group's times.
void LearnTime(Transaction& t, int64_t analysis) {
  Statement(t.db,
            "INSERT INTO analysis_times SELECT time_group, 1, device_time, guessed_time, "
            "guessed_time FROM analyses WHERE id = ?1 AND time_group != '' AND device_time > 0 AND "
            "guessed_time > 0 ON CONFLICT (time_group) DO UPDATE SET analyses = analyses + 1, "
            "device_time = device_time + excluded.device_time, guessed_time = guessed_time + "
            "excluded.guessed_time, largest = max(largest, excluded.largest)",
            analysis)
      .Run();
}

std::string OwnerOf(Connection& db, int64_t analysis) {
  Statement row(db, "SELECT owner FROM analyses WHERE id = ?1", analysis);
  return row.Row() ? row.Text(0) : "";
}

// Removes the row of an analysis and everything it names.
void RemoveAnalysis(Transaction& t, int64_t analysis) {
  Statement gone(t.db, "DELETE FROM analyses WHERE id = ?1 RETURNING artifact, state_blob",
                 analysis);
  while (gone.Row()) {
    if (!gone.View(0).empty()) DropReference(t, gone.View(0), OnSweep::kTrash);
    if (!gone.View(1).empty()) DropReference(t, gone.View(1), OnSweep::kRemove);
  }
  Statement(t.db, "DELETE FROM analysis_subjects WHERE analysis = ?1", analysis).Run();
  SettleAskers(t, analysis);
  Statement(t.db, "DELETE FROM experiment_analyses WHERE analysis = ?1", analysis).Run();
}

// Clamps a worker's value to 0–1.
double Share(double progress) { return progress > 0 ? std::min(progress, 1.0) : 0; }

}  // namespace

void QueueAgain(Transaction& t, const AnalysisRow& analysis) {
  DropResult(t, analysis);
  Statement(t.db,
            "UPDATE analyses SET state = 0, device_time = 0, start_time = 0, end_time = 0, by_hand "
            "= 0 WHERE id = ?1",
            analysis.id)
      .Run();
}

int RemoveAnalyses(Transaction& t, int64_t run, int limit) {
  std::vector<int64_t> analyses;
  Statement row(t.db, "SELECT DISTINCT analysis FROM analysis_subjects WHERE run = ?1 LIMIT ?2",
                run, limit);
  while (row.Row()) analyses.push_back(row.Int(0));
  for (const int64_t analysis : analyses) RemoveAnalysis(t, analysis);
  if (!analyses.empty()) t.NextChange();
  return static_cast<int>(analyses.size());
}

void CancelIfOpen(Transaction& t, absl::string_view name) {
  const std::optional<AnalysisRow> analysis = FindOpenAnalysis(t.db, name);
  if (analysis.has_value()) Finish(t, *analysis, AnalysisState::kCancelled);
}

absl::Status Store::BeginAnalysis(absl::string_view id) {
  return db_->Write([&](Transaction& t) {
    const std::optional<AnalysisRow> analysis = FindAnalysis(t.db, id);
    if (!analysis.has_value() || analysis->state != AnalysisState::kQueued) return absl::OkStatus();
    // If it has yielded before, the first start time stays.
    Statement(t.db,
              "UPDATE analyses SET state = 1, start_time = iif(start_time = 0, ?2, start_time) "
              "WHERE id = ?1",
              analysis->id, t.now)
        .Run();
    t.NextChange();
    return absl::OkStatus();
  });
}

absl::Status Store::SaveAnalysis(absl::string_view id, const AnalysisProgress& progress) {
  return db_->Write([&](Transaction& t) -> absl::Status {
    const std::optional<AnalysisRow> analysis = FindOpenAnalysis(t.db, id);
    if (!analysis.has_value()) return absl::OkStatus();
    if (!progress.state_blob.empty()) {
      RETURN_IF_ERROR(CheckPublished(blobs_.get(), progress.state_blob));
      SetState(t, *analysis, progress.state_blob,
               SizeOf(blobs_.get(), progress.state_blob, progress.state_bytes),
               progress.state_on_gpu);
    } else if (progress.restarted) {
      SetState(t, *analysis, "", 0, false);
    }
    Statement(t.db,
              "UPDATE analyses SET progress = ?2, device_time = min(device_time + ?3, ?5), state = "
              "iif(?4, 0, state) WHERE id = ?1",
              analysis->id, Share(progress.progress), progress.device_time, progress.yielded,
              kMaxDeviceTime)
        .Run();
    Charge(t, OwnerOf(t.db, analysis->id), progress.device_time);
    t.NextChange();
    return absl::OkStatus();
  });
}

absl::Status Store::EndAnalysis(absl::string_view id, const AnalysisEnd& end) {
  return db_->Write([&](Transaction& t) -> absl::Status {
    const std::optional<AnalysisRow> analysis = FindOpenAnalysis(t.db, id);
    if (!analysis.has_value()) return absl::OkStatus();
    Statement(t.db, "UPDATE analyses SET device_time = min(device_time + ?2, ?3) WHERE id = ?1",
              analysis->id, end.device_time, kMaxDeviceTime)
        .Run();
    Charge(t, OwnerOf(t.db, analysis->id), end.device_time);
    if (!end.failure.empty()) {
      Statement(t.db, "UPDATE analyses SET failure = ?2 WHERE id = ?1", analysis->id,
                ShortenMessage(end.failure))
          .Run();
      Finish(t, *analysis, AnalysisState::kFailed);
      return absl::OkStatus();
    }
    if (!end.artifact.empty()) {
      RETURN_IF_ERROR(CheckPublished(blobs_.get(), end.artifact));
    }
    Statement(t.db,
              "UPDATE analyses SET progress = 1, result = ?2, artifact = nullif(?3, ''), "
              "artifact_bytes = ?4 WHERE id = ?1",
              analysis->id, Bytes{end.result}, end.artifact,
              SizeOf(blobs_.get(), end.artifact, end.artifact_bytes))
        .Run();
    Finish(t, *analysis, AnalysisState::kDone);
    LearnTime(t, analysis->id);
    return absl::OkStatus();
  });
}

absl::StatusOr<AnalysisRecord> Store::CancelAnalysis(absl::string_view id) {
  return db_->Free([&](Transaction& t) -> absl::StatusOr<AnalysisRecord> {
    const std::optional<AnalysisRow> analysis = FindAnalysis(t.db, id);
    if (!analysis.has_value()) return NotFound("analysis", id);
    if (IsOpen(*analysis)) Finish(t, *analysis, AnalysisState::kCancelled);
    return ReadAnalysis(t.db, analysis->id);
  });
}

absl::Status Store::DeleteAnalysis(absl::string_view id) {
  return db_->Free([&](Transaction& t) -> absl::Status {
    const std::optional<AnalysisRow> analysis = FindAnalysis(t.db, id);
    if (!analysis.has_value()) return NotFound("analysis", id);
    if (!IsAskedFor(t.db, analysis->id)) {
      RemoveAnalysis(t, analysis->id);
      t.NextChange();
      return absl::OkStatus();
    }
    DropResult(t, *analysis);
    Finish(t, *analysis, AnalysisState::kCancelled);
    return absl::OkStatus();
  });
}

}  // namespace ablate::storage
