#include "storage/sqlite/analyses.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/ids.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// The numbers are stored; statements and an index use `state < 2` for open analyses.
static_assert(static_cast<int>(AnalysisState::kQueued) == 0 &&
              static_cast<int>(AnalysisState::kRunning) == 1 &&
              static_cast<int>(AnalysisState::kDone) == 2 &&
              static_cast<int>(AnalysisState::kFailed) == 3 &&
              static_cast<int>(AnalysisState::kCancelled) == 4);

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

// Adds, by signature, the number of DONE analyses whose first subject is this run.
void CountDone(Connection& db, const std::string& run, std::map<std::string, uint64_t>* counts) {
  Statement row(db,
                "SELECT signature, count(*) FROM runs JOIN analysis_subjects AS subjects ON "
                "subjects.run = runs.id JOIN analyses ON analyses.id = subjects.analysis WHERE "
                "runs.name = ?1 AND subjects.place = 0 AND analyses.state = 2 GROUP BY signature",
                run);
  while (row.Row()) (*counts)[row.Text(0)] += row.As<uint64_t>(1);
}

}  // namespace

bool IsOpen(const AnalysisRow& analysis) {
  return analysis.state == AnalysisState::kQueued || analysis.state == AnalysisState::kRunning;
}

std::optional<AnalysisRow> FindAnalysis(Connection& db, absl::string_view name) {
  Statement row(db, "SELECT id, state, state_blob, artifact FROM analyses WHERE name = ?1", name);
  if (!row.Row()) return std::nullopt;
  return AnalysisRow{row.Int(0), row.As<AnalysisState>(1), row.Text(2), row.Text(3)};
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

absl::StatusOr<uint32_t> Store::CountQueuedAnalyses() {
  return db_->Read([](Connection& db) -> absl::StatusOr<uint32_t> {
    // state < 2 for the index of open ones.
    Statement row(db, "SELECT count(*) FROM analyses WHERE state < 2 AND state = 0");
    return row.Row() ? row.As<uint32_t>(0) : 0;
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

}  // namespace ablate::storage
