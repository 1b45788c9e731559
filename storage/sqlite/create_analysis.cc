// Creates analyses, or finds those that were asked for before, and gives them their labels.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/analyses.h"
#include "storage/sqlite/analysis_progress.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/experiment_analyses.h"
#include "storage/sqlite/ids.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

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

}  // namespace

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

}  // namespace ablate::storage
