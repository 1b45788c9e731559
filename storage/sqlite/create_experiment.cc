// Creates experiments, with their cells and the runs that don't exist yet. A large one takes
// several transactions, between which other writes have their turn; the last makes it visible.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/cell_fields.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/datasets.h"
#include "storage/sqlite/experiments.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/origins.h"
#include "storage/sqlite/row_groups.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/shares.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// The run for an experiment's cells with one fingerprint.
struct ChosenRun {
  int64_t id = 0;
  std::string name;
  bool reused = false;
  bool ended = false;  // failed or cancelled
};
using ChosenRuns = std::unordered_map<std::string, ChosenRun>;

absl::Status CheckGrid(const NewExperiment& experiment) {
  std::unordered_set<std::string> fingerprints;
  for (const NewRun& run : experiment.runs) {
    if (fingerprints.insert(run.fingerprint).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("runs: fingerprint '", run.fingerprint,
                                                   "' is repeated; expected distinct ones"));
  }
  std::unordered_set<std::string> names;
  for (const NewCell& cell : experiment.cells) {
    if (!names.insert(cell.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("cells: name '", cell.name, "' is repeated; expected distinct names"));
    }
    if (fingerprints.count(cell.fingerprint) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("cells: '", cell.name, "' has fingerprint '",
                                                     cell.fingerprint,
                                                     "'; expected that of a run"));
    }
  }
  return absl::OkStatus();
}

// Returns the row of a data set that a run reads: one that is private as the run is, or public. 0
// if the run reads none.
absl::StatusOr<int64_t> FindDatasetRow(Transaction& t, const std::string& blob,
                                       const std::string& private_to) {
  if (blob.empty()) return 0;
  Statement dataset(t.db,
                    "SELECT id FROM datasets WHERE sha256 = ?1 AND private_to IN ('', ?2) ORDER BY "
                    "private_to DESC LIMIT 1",
                    blob, private_to);
  if (!dataset.Row()) return NotFound("data set with hash", blob);
  return dataset.Int(0);
}

// Ends a new run with its result.
absl::Status StoreResult(Transaction& t, int64_t id, const ImportedResult& result) {
  std::optional<RunRow> run = LoadRun(t.db, id);
  if (!run.has_value()) return NotFound("run", absl::StrCat(id));
  RETURN_IF_ERROR(AddRowGroup(t, {run->id, run->name}, t.NextChange(), result.series));
  Statement(t.db, "INSERT INTO uncompacted VALUES (?1)", run->id).Run();
  t.needs_maintenance = true;
  run->state = result.state;
  run->step = run->steps;
  run->start_time = result.start_time;
  run->end_time = result.end_time;
  RecordEvent(t, *run, "imported");
  SaveRun(t, *run, RunState::kQueued);
  return absl::OkStatus();
}

absl::StatusOr<ChosenRun> InsertRun(Transaction& t, const NewRun& run, int64_t generation,
                                    const NewExperiment& experiment) {
  const std::string& private_to = experiment.private_to;
  ASSIGN_OR_RETURN(const int64_t dataset, FindDatasetRow(t, run.dataset_blob, private_to));
  ASSIGN_OR_RETURN(const int64_t data, FindDatasetRow(t, run.data_blob, private_to));
  if (!run.initial_blob.empty() && !IsNamed(t.db, run.initial_blob)) {
    return NotFound("checkpoint with hash", run.initial_blob);
  }
  ChosenRun chosen;
  chosen.name = generation == 1 ? run.fingerprint : absl::StrCat(run.fingerprint, ".", generation);
  const uint64_t change = t.NextChange();
  Statement insert(
      t.db,
      "INSERT INTO runs (name, fingerprint, generation, trajectory, seed, steps, parameters, "
      "device_kind, shape, dataset, state, priority, place, create_time, change, numerics, growth, "
      "trainer, private_to, expected_bytes, charged, initial_blob, lanes, open_steps, "
      "program_data, whole_seconds) VALUES "
      "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, nullif(?10, 0), 0, ?11, ?12, ?13, ?12, ?14, ?15, ?16, "
      "?17, ?18, ?19, ?20, ?21, ?22, nullif(?23, 0), ?24) RETURNING id",
      chosen.name, run.fingerprint, generation, run.trajectory, run.seed, run.steps, run.parameters,
      run.device_kind, run.shape, dataset, kPausedPriority, change, t.now, run.numerics_version,
      run.growth, run.trainer, private_to, run.expected_bytes, experiment.owner, run.initial_blob,
      run.lanes, run.open_steps, data, run.whole_seconds);
  if (insert.Row()) chosen.id = insert.Int(0);
  insert.Run();
  Statement(t.db, "INSERT INTO run_specs VALUES (?1, ?2)", chosen.id, Bytes{run.spec}).Run();
  if (run.result != nullptr) {
    RETURN_IF_ERROR(StoreResult(t, chosen.id, *run.result));
    return chosen;
  }
  SetOrigin(t, chosen.id, run);
  RunRow row;
  row.id = chosen.id;
  RecordEvent(t, row, "queued");
  return chosen;
}

void QueueRunAgain(Transaction& t, int64_t id, const NewRun& wanted) {
  std::optional<RunRow> run = LoadRun(t.db, id);
  if (!run.has_value()) return;
  // The cause of the failure may be in the state; from it, the run would fail forever.
  if (run->state == RunState::kFailed) {
    DropResumeState(t, id);
    ForgetOrigin(t, id);
  } else if (!FindResumeState(t.db, id).has_value()) {
    SetOrigin(t, id, wanted);
  }
  run->failures = run->losses = 0;
  run->failure.clear();
  run->end_time = 0;
  Requeue(t, &*run);
  Statement(t.db, "UPDATE runs SET place = ?2 WHERE id = ?1", id, t.change).Run();
  // A program's limits aren't part of its identity, and may be why it failed.
  if (run->open_steps) {
    Statement(t.db, "UPDATE run_specs SET spec = ?2 WHERE run = ?1", id, Bytes{wanted.spec}).Run();
  }
  RecordEvent(t, *run, "queued");
}

// Returns the newest run of the fingerprint, or a new one that isn't granted yet.
absl::StatusOr<ChosenRun> ChooseRun(Transaction& t, const NewRun& run,
                                    const NewExperiment& experiment) {
  Statement newest(t.db,
                   "SELECT id, name, generation, private_to, state FROM runs WHERE fingerprint = "
                   "?1 ORDER BY generation DESC LIMIT 1",
                   run.fingerprint);
  const bool exists = newest.Row();
  if (exists && newest.View(3) != experiment.private_to) {
    return absl::InternalError(
        absl::StrCat("fingerprint '", run.fingerprint,
                     "' belongs to another user's private run (a bug of the server)"));
  }
  if (!exists || experiment.fresh) {
    return InsertRun(t, run, exists ? newest.Int(2) + 1 : 1, experiment);
  }
  const auto state = newest.As<RunState>(4);
  return ChosenRun{newest.Int(0), newest.Text(1), /*reused=*/true,
                   state == RunState::kFailed || state == RunState::kCancelled};
}

// Returns the title, a hyphen and four random characters of a-z2-7.
std::string NewExperimentName(absl::string_view title) {
  constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string name = absl::StrCat(title, "-");
  for (const char byte : process::RandomBytes(4)) {
    name.push_back(kAlphabet[static_cast<unsigned char>(byte) % 32]);
  }
  return name;
}

// Returns the stored form, which includes the owner: two owners may choose the same id.
std::string RequestKey(absl::string_view owner, absl::string_view id) {
  return id.empty() ? "" : absl::StrCat(owner, "/", id);
}

// Value of experiments.deleted of one that is being created; 1 is one that Maintenance removes.
constexpr int kHidden = 2;

int64_t InsertHidden(Transaction& t, const NewExperiment& experiment, std::string* name) {
  *name = NewExperimentName(experiment.name);
  while (Statement(t.db, "SELECT 1 FROM experiments WHERE name = ?1", *name).Row()) {
    *name = NewExperimentName(experiment.name);
  }
  Statement insert(
      t.db,
      "INSERT INTO experiments (name, title, owner, request_hash, spec, priority, state, "
      "create_time, analyses, private_to, described, tags, note, changes, deleted) VALUES (?1, ?2, "
      "?3, ?4, ?5, ?6, 0, ?7, 0, ?8, ?9, ?10, ?11, ?12, ?13) RETURNING id",
      *name, experiment.name, experiment.owner, Bytes{experiment.request_hash},
      Bytes{experiment.spec}, experiment.priority, t.now, experiment.private_to,
      !experiment.fields.common.empty(), EncodeLines(experiment.tags), experiment.note,
      EncodeLines(experiment.changes), kHidden);
  const int64_t id = insert.Row() ? insert.Int(0) : 0;
  insert.Run();
  return id;
}

// Makes a hidden experiment visible and active. The end of a run that it shares may have ended it.
void Show(Transaction& t, int64_t id, const NewExperiment& experiment) {
  Statement(t.db,
            "UPDATE experiments SET deleted = 0, state = 0, end_time = 0, request_id = nullif(?2, "
            "''), analyses = ?3, max_failed = ?4, extends = ?5 WHERE id = ?1",
            id, RequestKey(experiment.owner, experiment.request_id), experiment.analyses,
            experiment.max_failed, experiment.extends)
      .Run();
}

// Leaves a hidden experiment, with the runs that no other has, to Maintenance. Nobody has seen it,
// so it wasn't the first to have a run.
void Abandon(Connection& db, int64_t id) {
  Statement(db,
            "UPDATE runs SET first_experiment = coalesce((SELECT min(experiment) FROM cells WHERE "
            "run = runs.id AND experiment <> ?1), 0) WHERE id IN (SELECT run FROM cells WHERE "
            "experiment = ?1) AND first_experiment = ?1",
            id)
      .Run();
  Statement(db, "UPDATE experiments SET deleted = 1 WHERE id = ?1", id).Run();
}

// Notes which experiment first had the run, or another one of the same growth.
void SetFirstExperiment(Transaction& t, int64_t run, int64_t experiment) {
  Statement(t.db,
            "UPDATE runs SET first_experiment = coalesce((SELECT min(first_experiment) FROM runs "
            "AS same WHERE same.growth = runs.growth AND same.growth <> '' AND "
            "same.first_experiment > 0), ?2) WHERE id = ?1 AND first_experiment = 0",
            run, experiment)
      .Run();
}

void InsertCell(Transaction& t, int64_t experiment, size_t place, const NewCell& cell,
                const ChosenRun& run, int64_t variant) {
  Statement(t.db,
            "INSERT INTO cells SELECT ?1, ?2, ?3, ?4, ?5, id, ?7, change, ?8 FROM runs WHERE id = "
            "?6",
            experiment, static_cast<int64_t>(place), cell.name, Bytes{EncodeLabels(cell.labels)},
            cell.seed, run.id, run.reused, variant)
      .Run();
}

// Counts the experiment's cells.
void CountCells(Transaction& t, int64_t id) {
  Statement(
      t.db,
      "UPDATE experiments SET (queued, leased, done, diverged, failed, cancelled) = (SELECT "
      "coalesce(sum(shown = 0), 0), coalesce(sum(shown = 1), 0), coalesce(sum(shown = 2), 0), "
      "coalesce(sum(shown = 3), 0), coalesce(sum(shown = 4), 0), coalesce(sum(shown = 5), 0) FROM "
      "cells JOIN runs ON runs.id = cells.run WHERE experiment = ?1) WHERE id = ?1",
      id)
      .Run();
  SettleExperiment(t, id);
}

// Has the experiment's runs granted by its priority, and charges its owner for those that no other
// experiment has.
void ClaimRuns(Transaction& t, int64_t id, const NewExperiment& experiment) {
  Statement(t.db,
            "UPDATE runs SET priority = ?2 WHERE id IN (SELECT run FROM cells WHERE experiment = "
            "?1) AND state = 0 AND priority = ?3 AND charged = ?4",
            id, experiment.priority, kPausedPriority, experiment.owner)
      .Run();
  std::vector<int64_t> others;
  {
    Statement row(t.db,
                  "SELECT DISTINCT run FROM cells JOIN runs ON runs.id = cells.run WHERE "
                  "experiment = ?1 AND (priority, charged) != (?2, ?3)",
                  id, experiment.priority, experiment.owner);
    while (row.Row()) others.push_back(row.Int(0));
  }
  for (const int64_t run : others) {
    const std::optional<Claim> claim = LiveClaim(t.db, run);
    if (claim.has_value()) SetClaim(t, run, *claim);
  }
}

absl::StatusOr<std::optional<CreatedExperiment>> FindAnswer(Connection& db, absl::string_view owner,
                                                            absl::string_view id,
                                                            absl::string_view hash) {
  Statement found(db, "SELECT id, name, request_hash FROM experiments WHERE request_id = ?1",
                  RequestKey(owner, id));
  if (!found.Row()) return std::optional<CreatedExperiment>();
  if (found.View(2) != hash) {
    return absl::AlreadyExistsError(absl::StrCat("request_id: '", id,
                                                 "' was used for another experiment. Use a new "
                                                 "one"));
  }
  CreatedExperiment answer;
  answer.id = found.Text(1);
  answer.repeated = true;
  Statement cell(db,
                 "SELECT runs.name, reused FROM cells JOIN runs ON runs.id = cells.run WHERE "
                 "experiment = ?1 ORDER BY cells.place",
                 found.Int(0));
  while (cell.Row()) {
    answer.cells.push_back({cell.Text(0), cell.Int(1) != 0});
    if (answer.cells.back().reused) ++answer.reused;
  }
  return answer;
}

absl::Status CheckOpenRuns(Connection& db, const NewExperiment& experiment) {
  if (!experiment.max_open_runs.has_value()) return absl::OkStatus();
  const uint64_t open = OpenRuns(db, experiment.owner);
  if (open <= static_cast<uint64_t>(*experiment.max_open_runs)) return absl::OkStatus();
  return TooManyOpenRuns(experiment.owner, open, *experiment.max_open_runs);
}

// Archives the extended experiment, if there is one, and takes over the labels of its analyses.
absl::Status Extend(Transaction& t, int64_t id, const NewExperiment& experiment) {
  if (experiment.extends.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto extended, FindExperimentRow(t.db, experiment.extends));
  Statement other(t.db,
                  "SELECT name FROM experiments WHERE extends = ?1 AND extends <> '' AND deleted = "
                  "0 AND id <> ?2",
                  experiment.extends, id);
  if (other.Row()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "extends: ", experiment.extends, " is extended by ", other.View(0), "; extend that one"));
  }
  Statement(t.db, "UPDATE experiments SET archived = 1 WHERE id = ?1", extended).Run();
  Statement(t.db,
            "INSERT INTO analysis_labels SELECT ?1, label, signature FROM analysis_labels WHERE "
            "experiment = ?2 AND instr(?3, char(10) || label || char(10)) = 0",
            id, extended, absl::StrCat("\n", EncodeLines(experiment.labels)))
      .Run();
  return absl::OkStatus();
}

// Returns true if the cells of an experiment are those of the new one with their newest runs.
bool HasCells(Connection& db, absl::string_view name, const NewExperiment& experiment,
              const std::unordered_map<std::string, std::string>& newest) {
  Statement cell(db,
                 "SELECT cells.name, runs.name FROM cells JOIN experiments ON experiments.id = "
                 "cells.experiment JOIN runs ON runs.id = cells.run WHERE experiments.name = ?1 "
                 "ORDER BY cells.place",
                 name);
  size_t place = 0;
  for (; cell.Row(); ++place) {
    if (place == experiment.cells.size()) return false;
    const NewCell& wanted = experiment.cells[place];
    if (cell.View(0) != wanted.name || cell.View(1) != newest.at(wanted.fingerprint)) return false;
  }
  return place == experiment.cells.size();
}

// Finds an experiment that the new one would only repeat, such as that of a submission at the same
// time.
std::optional<CreatedExperiment> FindRepeated(Connection& db, const NewExperiment& experiment) {
  if (experiment.repeats == nullptr) return std::nullopt;
  std::vector<int64_t> ids;
  {
    Statement row(db,
                  "SELECT id FROM experiments WHERE title = ?1 AND owner = ?2 AND private_to = ?3 "
                  "AND deleted = 0 ORDER BY archived, id DESC LIMIT 20",
                  experiment.name, experiment.owner, experiment.private_to);
    while (row.Row()) ids.push_back(row.Int(0));
  }
  std::vector<std::string> candidates;
  for (const int64_t id : ids) {
    const std::optional<ExperimentRecord> found = LoadExperiment(db, id);
    if (found.has_value() && experiment.repeats(*found)) candidates.push_back(found->id);
  }
  if (candidates.empty()) return std::nullopt;
  std::unordered_map<std::string, std::string> newest;  // name of the run by fingerprint
  for (const NewRun& run : experiment.runs) {
    Statement found(db,
                    "SELECT name FROM runs WHERE fingerprint = ?1 ORDER BY generation DESC LIMIT 1",
                    run.fingerprint);
    if (!found.Row()) return std::nullopt;
    newest[run.fingerprint] = found.Text(0);
  }
  for (const std::string& candidate : candidates) {
    if (!HasCells(db, candidate, experiment, newest)) continue;
    CreatedExperiment same;
    same.id = candidate;
    same.identical = true;
    return same;
  }
  return std::nullopt;
}

// Cells and imported points that one transaction adds: some 30 ms, for which other writes wait.
constexpr size_t kCellsAtOnce = 500;
constexpr size_t kPointsAtOnce = 1 << 18;

size_t PointsOf(const NewRun& run) {
  size_t points = 0;
  if (run.result == nullptr) return points;
  for (const Column& column : run.result->series) points += column.values.size();
  return points;
}

bool FitsOneTransaction(const NewExperiment& experiment) {
  size_t points = 0;
  for (const NewRun& run : experiment.runs) points += PointsOf(run);
  return experiment.cells.size() <= kCellsAtOnce && points <= kPointsAtOnce;
}

// Creates one experiment in steps, each a transaction's work: Begin, AddCells until it is complete,
// Finish. A step that fails has changed this object, so that only Abandon may follow.
class Creation {
 public:
  // `experiment` must outlive it.
  explicit Creation(const NewExperiment& experiment)
      : experiment_(experiment), at_once_(FitsOneTransaction(experiment)) {
    for (const NewRun& run : experiment.runs) wanted_[run.fingerprint] = &run;
  }

  // Begins a hidden experiment. Returns an answer instead if it exists already.
  absl::StatusOr<std::optional<CreatedExperiment>> Begin(Transaction& t);
  bool at_once() const { return at_once_; }
  bool complete() const { return added_ == experiment_.cells.size(); }
  // Adds up to kCellsAtOnce cells with their runs, fewer once there are kPointsAtOnce points.
  absl::Status AddCells(Transaction& t);
  // Makes it visible.
  absl::StatusOr<CreatedExperiment> Finish(Transaction& t);
  void Abandon(Transaction& t) const {
    storage::Abandon(t.db, id_);
    t.needs_maintenance = true;
  }
  // Returns why it would exceed a quota; OK if it wouldn't. The transaction has another error then,
  // because RESOURCE_EXHAUSTED would mean a full disk.
  const absl::Status& refused() const { return refused_; }

 private:
  // Queues the runs again that have failed or were cancelled, before the new ones.
  void QueueEndedRunsAgain(Transaction& t);

  const NewExperiment& experiment_;
  const bool at_once_;                                     // all steps are one transaction
  std::unordered_map<std::string, const NewRun*> wanted_;  // by fingerprint
  CreatedExperiment created_;
  int64_t id_ = 0;
  uint64_t begun_ = 0;  // change number; its new runs have later ones
  size_t added_ = 0;    // number of cells
  absl::Status refused_;
  ChosenRuns runs_;
  VariantNumbers variants_;
};

absl::StatusOr<std::optional<CreatedExperiment>> Creation::Begin(Transaction& t) {
  ASSIGN_OR_RETURN(auto known, FindAnswer(t.db, experiment_.owner, experiment_.request_id,
                                          experiment_.request_hash));
  if (known.has_value()) return known;
  RETURN_IF_ERROR(CheckGrid(experiment_));
  if (auto same = FindRepeated(t.db, experiment_); same.has_value()) return same;
  // Runs name public data only once it is that.
  for (const std::string& upload : experiment_.uploads) RETURN_IF_ERROR(UseUpload(t, upload));
  begun_ = t.NextChange();
  id_ = InsertHidden(t, experiment_, &created_.id);
  return std::optional<CreatedExperiment>();
}

absl::Status Creation::AddCells(Transaction& t) {
  const size_t end = std::min(experiment_.cells.size(), added_ + kCellsAtOnce);
  size_t points = 0;
  for (; added_ < end && points <= kPointsAtOnce; ++added_) {
    const NewCell& cell = experiment_.cells[added_];
    auto chosen = runs_.find(cell.fingerprint);
    if (chosen == runs_.end()) {
      const NewRun& wanted = *wanted_.at(cell.fingerprint);
      ASSIGN_OR_RETURN(auto run, ChooseRun(t, wanted, experiment_));
      // While it is hidden, nobody would need the run.
      if (run.ended && at_once_) {
        QueueRunAgain(t, run.id, wanted);
        run.reused = false;
      }
      if (!run.reused) points += PointsOf(wanted);
      SetFirstExperiment(t, run.id, id_);
      chosen = runs_.emplace(cell.fingerprint, std::move(run)).first;
    }
    InsertCell(t, id_, added_, cell, chosen->second, variants_.Of(cell.labels));
  }
  return absl::OkStatus();
}

void Creation::QueueEndedRunsAgain(Transaction& t) {
  std::vector<std::pair<int64_t, std::string>> ended;
  {
    Statement row(t.db,
                  "SELECT DISTINCT runs.id, fingerprint FROM cells JOIN runs ON runs.id = "
                  "cells.run WHERE experiment = ?1 AND runs.state IN (?2, ?3)",
                  id_, static_cast<int>(RunState::kFailed), static_cast<int>(RunState::kCancelled));
    while (row.Row()) ended.emplace_back(row.Int(0), row.Text(1));
  }
  for (const auto& [run, fingerprint] : ended) {
    QueueRunAgain(t, run, *wanted_.at(fingerprint));
    Statement(t.db, "UPDATE runs SET place = ?2 WHERE id = ?1", run, begun_).Run();
    Statement(t.db, "UPDATE cells SET reused = 0 WHERE experiment = ?1 AND run = ?2", id_, run)
        .Run();
    runs_.at(fingerprint).reused = false;
  }
}

absl::StatusOr<CreatedExperiment> Creation::Finish(Transaction& t) {
  // A repetition may have been faster.
  ASSIGN_OR_RETURN(auto known, FindAnswer(t.db, experiment_.owner, experiment_.request_id,
                                          experiment_.request_hash));
  if (!known.has_value() && !at_once_) known = FindRepeated(t.db, experiment_);
  if (known.has_value()) {
    Abandon(t);
    return *std::move(known);
  }
  Show(t, id_, experiment_);
  RETURN_IF_ERROR(Extend(t, id_, experiment_));
  QueueEndedRunsAgain(t);
  AddCellFields(t, id_, experiment_.private_to, variants_.labels(), experiment_.fields);
  CountCells(t, id_);
  ClaimRuns(t, id_, experiment_);
  refused_ = CheckOpenRuns(t.db, experiment_);
  if (!refused_.ok()) return absl::AbortedError("a quota would be exceeded");
  for (const NewCell& cell : experiment_.cells) {
    const ChosenRun& run = runs_.at(cell.fingerprint);
    created_.cells.push_back({run.name, run.reused});
    if (run.reused) ++created_.reused;
  }
  return std::move(created_);
}

absl::StatusOr<CreatedExperiment> CreateAtOnce(Transaction& t, Creation* creation) {
  ASSIGN_OR_RETURN(auto answer, creation->Begin(t));
  if (answer.has_value()) return *std::move(answer);
  RETURN_IF_ERROR(creation->AddCells(t));
  return creation->Finish(t);
}

}  // namespace

void RemoveHalfCreated(Connection& db) {
  std::vector<int64_t> ids;
  {
    Statement hidden(db, "SELECT id FROM experiments WHERE deleted = ?1", kHidden);
    while (hidden.Row()) ids.push_back(hidden.Int(0));
  }
  for (const int64_t id : ids) Abandon(db, id);
}

absl::StatusOr<CreatedExperiment> Store::CreateExperiment(const NewExperiment& experiment) {
  Creation creation(experiment);
  const auto refusal = [&creation](absl::StatusOr<CreatedExperiment> created) {
    if (!creation.refused().ok()) created = creation.refused();
    return created;
  };
  if (creation.at_once()) {
    return refusal(db_->Write([&](Transaction& t) { return CreateAtOnce(t, &creation); }));
  }
  ASSIGN_OR_RETURN(auto answer, db_->Write([&](Transaction& t) { return creation.Begin(t); }));
  if (answer.has_value()) return *std::move(answer);
  const auto complete = [&]() -> absl::StatusOr<CreatedExperiment> {
    while (!creation.complete()) {
      RETURN_IF_ERROR(db_->Write([&](Transaction& t) { return creation.AddCells(t); }));
    }
    return db_->Write([&](Transaction& t) { return creation.Finish(t); });
  };
  absl::StatusOr<CreatedExperiment> created = complete();
  if (created.ok()) return created;
  const auto abandon = [&](Transaction& t) {
    creation.Abandon(t);
    return absl::OkStatus();
  };
  db_->Free(abandon).IgnoreError();  // otherwise it is removed when the store is opened again
  return refusal(std::move(created));
}

absl::StatusOr<std::optional<CreatedExperiment>> Store::FindRequest(absl::string_view owner,
                                                                    absl::string_view id,
                                                                    absl::string_view hash) {
  return db_->Read([&](Connection& db) { return FindAnswer(db, owner, id, hash); });
}

}  // namespace ablate::storage
