#include "storage/sqlite/analyses.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/experiment_analyses.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/leases.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/shares.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// The numbers are stored; statements and an index use `state < 2` for open analyses.
static_assert(static_cast<int>(AnalysisState::kQueued) == 0 &&
              static_cast<int>(AnalysisState::kRunning) == 1 &&
              static_cast<int>(AnalysisState::kDone) == 2 &&
              static_cast<int>(AnalysisState::kFailed) == 3 &&
              static_cast<int>(AnalysisState::kCancelled) == 4);

struct AnalysisRow {
  int64_t id = 0;
  AnalysisState state = AnalysisState::kQueued;
  std::string state_blob;
  std::string artifact;
};

bool IsOpen(const AnalysisRow& analysis) {
  return analysis.state == AnalysisState::kQueued || analysis.state == AnalysisState::kRunning;
}

std::optional<AnalysisRow> FindAnalysis(Connection& db, absl::string_view name) {
  Statement row(db, "SELECT id, state, state_blob, artifact FROM analyses WHERE name = ?1", name);
  if (!row.Row()) return std::nullopt;
  return AnalysisRow{row.Int(0), row.As<AnalysisState>(1), row.Text(2), row.Text(3)};
}

std::optional<AnalysisRow> FindOpenAnalysis(Connection& db, absl::string_view name) {
  std::optional<AnalysisRow> found = FindAnalysis(db, name);
  if (found.has_value() && !IsOpen(*found)) return std::nullopt;
  return found;
}

std::vector<AnalysisSubject> ReadSubjects(Connection& db, int64_t analysis) {
  std::vector<AnalysisSubject> subjects;
  Statement row(
      db,
      "SELECT runs.name, analysis_subjects.step FROM analysis_subjects JOIN runs ON runs.id = "
      "analysis_subjects.run WHERE analysis = ?1 ORDER BY analysis_subjects.place",
      analysis);
  while (row.Row()) subjects.push_back({row.Text(0), row.As<uint32_t>(1)});
  return subjects;
}

AnalysisRecord ReadAnalysis(Connection& db, int64_t id) {
  AnalysisRecord record;
  Statement row(db,
                "SELECT name, request, state, progress, state_blob, result, artifact, "
                "artifact_bytes, failure, device_time, create_time, start_time, end_time, owner, "
                "private_to, ifnull(state_on_gpu, -1) FROM analyses WHERE id = ?1",
                id);
  if (!row.Row()) return record;
  record.id = row.Text(0);
  record.request = row.Text(1);
  record.subjects = ReadSubjects(db, id);
  record.state = row.As<AnalysisState>(2);
  record.progress = row.Real(3);
  record.state_blob = row.Text(4);
  record.result = row.Text(5);
  record.artifact = row.Text(6);
  record.artifact_bytes = row.As<uint64_t>(7);
  record.failure = row.Text(8);
  record.device_time = row.Int(9);
  record.create_time = row.Int(10);
  record.start_time = row.Int(11);
  record.end_time = row.Int(12);
  record.owner = row.Text(13);
  record.private_to = row.Text(14);
  if (row.Int(15) >= 0) record.state_on_gpu = row.Int(15) != 0;
  return record;
}

// Reads the analyses whose row numbers a statement returns.
std::vector<AnalysisRecord> ReadAnalyses(Connection& db, Statement& ids) {
  std::vector<AnalysisRecord> records;
  while (ids.Row()) records.push_back(ReadAnalysis(db, ids.Int(0)));
  return records;
}

// Reads the labels of an analysis in an experiment.
std::vector<std::string> LabelsIn(Connection& db, int64_t experiment, const std::string& analysis) {
  std::vector<std::string> labels;
  Statement row(
      db,
      "SELECT label FROM analysis_labels JOIN analyses ON analyses.signature = "
      "analysis_labels.signature WHERE experiment = ?1 AND analyses.name = ?2 ORDER BY label",
      experiment, analysis);
  while (row.Row()) labels.push_back(row.Text(0));
  return labels;
}

// Returns the row below which a page begins. NOT_FOUND.
absl::StatusOr<int64_t> PageEnd(Connection& db, const Viewer& viewer, absl::string_view after) {
  if (after.empty()) return INT64_MAX;
  Statement last(db, "SELECT id, private_to FROM analyses WHERE name = ?1", after);
  const bool visible = last.Row() && Sees(viewer, last.Text(1));
  if (!visible) return NotFound("analysis", after);
  return last.Int(0);
}

// Returns the rows of the subjects' runs; checks that they have the checkpoints.
absl::StatusOr<std::vector<int64_t>> FindSubjects(Connection& db,
                                                  const std::vector<AnalysisSubject>& subjects) {
  std::vector<int64_t> runs;
  for (const AnalysisSubject& subject : subjects) {
    ASSIGN_OR_RETURN(const auto run, FindRunRow(db, subject.run));
    Statement checkpoint(
        db, "SELECT 1 FROM artifacts WHERE run = ?1 AND kind = 'checkpoint' AND step = ?2", run,
        subject.step);
    if (!checkpoint.Row()) {
      return absl::NotFoundError(
          absl::StrCat("run '", subject.run, "' has no checkpoint of step ", subject.step));
    }
    runs.push_back(run);
  }
  return runs;
}

int64_t CountOpen(Connection& db) {
  Statement row(db, "SELECT count(*) FROM analyses WHERE state < 2");
  return row.Row() ? row.Int(0) : 0;
}

int64_t InsertAnalysis(Transaction& t, const NewAnalysis& analysis,
                       const std::vector<int64_t>& runs) {
  Statement insert(
      t.db,
      "INSERT INTO analyses (name, signature, request, create_time, owner, private_to, time_group, "
      "guessed_time) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id",
      analysis.id, analysis.signature, Bytes{analysis.request}, t.now, analysis.owner,
      analysis.private_to, analysis.time_group, analysis.guessed_time);
  const int64_t id = insert.Row() ? insert.Int(0) : 0;
  insert.Run();
  for (size_t place = 0; place < runs.size(); ++place) {
    Statement(t.db,
              "INSERT INTO analysis_subjects (analysis, place, run, step) VALUES (?1, ?2, ?3, ?4)",
              id, place, runs[place], analysis.subjects[place].step)
        .Run();
  }
  return id;
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

// Queues it from its beginning: one that has ended has no saved state.
void QueueAgain(Transaction& t, const AnalysisRow& analysis) {
  DropResult(t, analysis);
  Statement(t.db,
            "UPDATE analyses SET state = 0, device_time = 0, start_time = 0, end_time = 0, by_hand "
            "= 0 WHERE id = ?1",
            analysis.id)
      .Run();
}

// Returns true if it is open, or is DONE and still has its arrays: nothing needs to be computed.
bool IsThere(Blobs* blobs, const AnalysisRow& analysis) {
  if (analysis.state != AnalysisState::kDone) return IsOpen(analysis);
  return analysis.artifact.empty() || blobs == nullptr ||
         !absl::IsNotFound(blobs->Size(analysis.artifact).status());
}

// Returns an open or DONE analysis of another signature that has this label in the experiment;
// empty if there is none. Failed and cancelled analyses free their labels.
std::string LabelHolder(Connection& db, int64_t experiment, const std::string& label,
                        const std::string& signature) {
  Statement holder(db,
                   "SELECT analyses.name FROM analysis_labels AS labels JOIN analyses ON "
                   "analyses.signature = labels.signature JOIN analysis_subjects AS subjects ON "
                   "subjects.analysis = analyses.id JOIN cells ON cells.run = subjects.run AND "
                   "cells.experiment = ?1 WHERE labels.experiment = ?1 AND label = ?2 AND "
                   "labels.signature != ?3 AND analyses.state < 3 AND analyses.private_to = "
                   "(SELECT private_to FROM experiments WHERE id = ?1) LIMIT 1",
                   experiment, label, signature);
  return holder.Row() ? holder.Text(0) : "";
}

// Returns the row of the label's experiment. An analysis of the experiment's own spec takes the
// label from any previous holder.
absl::StatusOr<int64_t> CheckLabel(Connection& db, const AnalysisLabel& label,
                                   const NewAnalysis& analysis) {
  auto experiment = FindExperimentRow(db, label.experiment);
  if (!experiment.ok() || label.experiment == analysis.asked_by) return experiment;
  const std::string holder = LabelHolder(db, *experiment, label.label, analysis.signature);
  if (holder.empty()) return *experiment;
  return absl::AlreadyExistsError(absl::StrCat(
      "label: ", label.label, " is used in experiment ", label.experiment, " by analyses/", holder,
      ", which differs in kind, options, inputs, seed or version. Choose another label, or remove "
      "that analysis"));
}

absl::Status AddLabels(Transaction& t, const NewAnalysis& analysis) {
  for (const AnalysisLabel& label : analysis.labels) {
    ASSIGN_OR_RETURN(const auto experiment, CheckLabel(t.db, label, analysis));
    Statement(t.db, "INSERT OR REPLACE INTO analysis_labels VALUES (?1, ?2, ?3)", experiment,
              label.label, analysis.signature)
        .Run();
  }
  return absl::OkStatus();
}

// Like CheckLabel, and records who asks for it: an experiment's spec or a user.
absl::StatusOr<CreatedAnalysis> Answer(Transaction& t, const NewAnalysis& analysis, int64_t id,
                                       bool reused) {
  if (!analysis.asked_by.empty()) {
    if (absl::Status linked = LinkAnalysis(t, analysis, id); !linked.ok()) return linked;
  } else {
    Statement(t.db, "UPDATE analyses SET by_hand = 1 WHERE id = ?1 AND by_hand = 0 AND state < 2",
              id)
        .Run();
  }
  return CreatedAnalysis{ReadAnalysis(t.db, id), reused};
}

// Creates the analysis; nothing if too many are open.
absl::StatusOr<std::optional<CreatedAnalysis>> Create(Transaction& t, Blobs* blobs,
                                                      const NewAnalysis& analysis,
                                                      uint32_t most_open) {
  RETURN_IF_ERROR(AddLabels(t, analysis));
  const std::optional<AnalysisRow> known = FindAnalysis(t.db, analysis.id);
  // An analysis that an experiment's spec has asked for isn't computed again because it asks again.
  const bool asked = known.has_value() && IsLinked(t.db, analysis, known->id);
  if (asked || (known.has_value() && IsThere(blobs, *known))) {
    return Answer(t, analysis, known->id, /*reused=*/true);
  }
  ASSIGN_OR_RETURN(const auto runs, FindSubjects(t.db, analysis.subjects));
  if (CountOpen(t.db) >= most_open) return std::nullopt;
  if (known.has_value()) QueueAgain(t, *known);
  const int64_t id = known.has_value() ? known->id : InsertAnalysis(t, analysis, runs);
  t.NextChange();
  return Answer(t, analysis, id, /*reused=*/false);
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

// Adds, by signature, the number of DONE analyses whose first subject is this run.
void CountDone(Connection& db, const std::string& run, std::map<std::string, uint64_t>* counts) {
  Statement row(db,
                "SELECT signature, count(*) FROM runs JOIN analysis_subjects AS subjects ON "
                "subjects.run = runs.id JOIN analyses ON analyses.id = subjects.analysis WHERE "
                "runs.name = ?1 AND subjects.place = 0 AND analyses.state = 2 GROUP BY signature",
                run);
  while (row.Row()) (*counts)[row.Text(0)] += row.As<uint64_t>(1);
}

// Clamps a worker's value to 0–1.
double Share(double progress) { return progress > 0 ? std::min(progress, 1.0) : 0; }

}  // namespace

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

absl::StatusOr<bool> Store::IsAnalysisThere(absl::string_view id) {
  return db_->Read([&](Connection& db) {
    const std::optional<AnalysisRow> found = FindAnalysis(db, id);
    return found.has_value() && IsThere(blobs_.get(), *found);
  });
}

absl::Status Store::CheckLabels(const NewAnalysis& analysis) {
  return db_->Read([&](Connection& db) -> absl::Status {
    for (const AnalysisLabel& label : analysis.labels) {
      RETURN_IF_ERROR(CheckLabel(db, label, analysis).status());
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<CreatedAnalysis> Store::CreateAnalysis(const NewAnalysis& analysis,
                                                      uint32_t most_open) {
  ASSIGN_OR_RETURN(
      auto created,
      db_->Write([&](Transaction& t) -> absl::StatusOr<std::optional<CreatedAnalysis>> {
        return Create(t, blobs_.get(), analysis, most_open);
      }));
  if (created.has_value()) return *std::move(created);
  // Returned as the request's own error it would mean that the disk is full.
  return absl::ResourceExhaustedError(absl::StrCat("the analysis queue is full (", most_open,
                                                   "). Retry when one has ended, or cancel one"));
}

absl::StatusOr<AnalysisRecord> Store::GetAnalysis(absl::string_view id) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<AnalysisRecord> {
    const std::optional<AnalysisRow> found = FindAnalysis(db, id);
    if (!found.has_value()) return NotFound("analysis", id);
    return ReadAnalysis(db, found->id);
  });
}

absl::StatusOr<std::vector<std::string>> Store::FindAnalyses(const Viewer& viewer,
                                                             absl::string_view prefix,
                                                             uint32_t limit) {
  return db_->Read([&](Connection& db) {
    std::vector<std::string> names;
    // By the index analyses_visible, so that others' names aren't read.
    Statement row(db,
                  "SELECT name FROM analyses WHERE ?4 AND name >= ?1 AND name < ?2 UNION ALL "
                  "SELECT name FROM analyses WHERE NOT ?4 AND private_to = '' AND name >= ?1 AND "
                  "name < ?2 UNION ALL SELECT name FROM analyses WHERE NOT ?4 AND private_to = ?5 "
                  "AND ?5 <> '' AND name >= ?1 AND name < ?2 ORDER BY name LIMIT ?3",
                  prefix, PrefixEnd(prefix), limit, viewer.sees_all, viewer.user);
    while (row.Row()) names.push_back(row.Text(0));
    return names;
  });
}

absl::StatusOr<std::vector<AnalysisRecord>> Store::ListAnalyses(const Viewer& viewer,
                                                                absl::string_view after,
                                                                uint32_t limit) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<AnalysisRecord>> {
    ASSIGN_OR_RETURN(const auto end, PageEnd(db, viewer, after));
    Statement row(db,
                  "SELECT id FROM analyses WHERE id < ?1 AND (?3 OR private_to IN ('', ?4)) ORDER "
                  "BY id DESC LIMIT ?2",
                  end, limit, viewer.sees_all, viewer.user);
    return ReadAnalyses(db, row);
  });
}

absl::StatusOr<std::vector<AnalysisRecord>> Store::RunAnalyses(const Viewer& viewer,
                                                               absl::string_view run,
                                                               absl::string_view after,
                                                               uint32_t limit) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<AnalysisRecord>> {
    ASSIGN_OR_RETURN(const auto found, FindRunRow(db, run));
    ASSIGN_OR_RETURN(const auto end, PageEnd(db, viewer, after));
    Statement row(
        db,
        "SELECT DISTINCT analysis FROM analysis_subjects JOIN analyses ON analyses.id = analysis "
        "WHERE run = ?3 AND analysis < ?1 AND (?4 OR private_to IN ('', ?5)) ORDER BY analysis "
        "DESC LIMIT ?2",
        end, limit, found, viewer.sees_all, viewer.user);
    return ReadAnalyses(db, row);
  });
}

absl::StatusOr<std::vector<AnalysisRecord>> Store::ExperimentAnalyses(const Viewer& viewer,
                                                                      absl::string_view experiment,
                                                                      absl::string_view after,
                                                                      uint32_t limit) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<AnalysisRecord>> {
    ASSIGN_OR_RETURN(const auto found, FindExperimentRow(db, experiment));
    ASSIGN_OR_RETURN(const auto end, PageEnd(db, viewer, after));
    Statement row(
        db,
        "SELECT id FROM analyses WHERE id IN (SELECT analysis FROM cells JOIN analysis_subjects ON "
        "analysis_subjects.run = cells.run WHERE experiment = ?3 AND analysis < ?1 UNION SELECT "
        "analysis FROM experiment_analyses WHERE experiment = ?3 AND analysis < ?1) AND (?4 OR "
        "private_to IN ('', ?5)) ORDER BY id DESC LIMIT ?2",
        end, limit, found, viewer.sees_all, viewer.user);
    std::vector<AnalysisRecord> records = ReadAnalyses(db, row);
    for (AnalysisRecord& record : records) record.labels = LabelsIn(db, found, record.id);
    return records;
  });
}

absl::StatusOr<std::vector<LabelledAnalysis>> Store::LabelledAnalyses(absl::string_view experiment,
                                                                      absl::string_view label) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<LabelledAnalysis>> {
    ASSIGN_OR_RETURN(const auto found, FindExperimentRow(db, experiment));
    std::vector<LabelledAnalysis> labelled;
    // Most experiments have no labels, but may have very many cells.
    if (!Statement(db,
                   "SELECT 1 FROM analysis_labels WHERE experiment = ?1 AND (?2 = '' OR label = "
                   "?2) LIMIT 1",
                   found, label)
             .Row()) {
      return labelled;
    }
    Statement row(db,
                  "SELECT DISTINCT label, analyses.name, runs.name, subjects.step, result FROM "
                  "cells JOIN analysis_subjects AS subjects ON subjects.run = cells.run JOIN "
                  "analyses ON analyses.id = subjects.analysis JOIN analysis_labels AS labels "
                  "  ON labels.experiment = cells.experiment AND labels.signature = "
                  "analyses.signature JOIN runs ON runs.id = cells.run WHERE cells.experiment = ?1 "
                  "AND (?2 = '' OR label = ?2) AND analyses.state = 2 "
                  "  AND NOT EXISTS "
                  "  (SELECT 1 FROM analysis_subjects AS other WHERE other.analysis = analyses.id "
                  "   AND (other.run != subjects.run OR other.place > subjects.place)) ORDER BY "
                  "label, runs.name, subjects.step, analyses.id",
                  found, label);
    while (row.Row()) {
      labelled.push_back(
          {row.Text(0), row.Text(1), {row.Text(2), row.As<uint32_t>(3)}, row.Text(4)});
    }
    return labelled;
  });
}

absl::StatusOr<std::vector<AnalysisRecord>> Store::OpenAnalyses() {
  return db_->Read([&](Connection& db) {
    Statement row(db, "SELECT id FROM analyses WHERE state < 2 ORDER BY id");
    return ReadAnalyses(db, row);
  });
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

absl::StatusOr<std::map<std::string, uint64_t>> Store::CountDoneAnalyses(
    const std::vector<std::string>& runs) {
  std::map<std::string, uint64_t> counts;
  RETURN_IF_ERROR(db_->ReadEach(runs.size(), [&](Connection& db, size_t i) {
    CountDone(db, runs[i], &counts);
    return absl::OkStatus();
  }));
  return counts;
}

absl::StatusOr<AnalysisTimes> Store::MeasuredAnalysisTimes(absl::string_view group) {
  return db_->Read([&](Connection& db) {
    Statement row(db,
                  "SELECT analyses, device_time, guessed_time, largest FROM analysis_times WHERE "
                  "time_group = ?1",
                  group);
    if (!row.Row()) return AnalysisTimes{};
    return AnalysisTimes{row.As<uint64_t>(0), row.Real(1), row.Real(2), row.Real(3)};
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
