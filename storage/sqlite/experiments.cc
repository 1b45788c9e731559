#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "storage/sqlite/analysis_progress.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/cell_fields.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/datasets.h"
#include "storage/sqlite/experiment_analyses.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/origins.h"
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
};
using ChosenRuns = std::unordered_map<std::string, ChosenRun>;

std::string EncodeLines(const std::vector<std::string>& lines) {
  return lines.empty() ? "" : absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

std::vector<std::string> DecodeLines(absl::string_view text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

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

// Returns the row of the data set that a run reads: one that is private as the run is, or public.
absl::StatusOr<std::optional<int64_t>> FindDatasetRow(Transaction& t, const NewRun& run,
                                                      const std::string& private_to) {
  if (run.dataset_blob.empty()) return std::optional<int64_t>();
  Statement dataset(t.db,
                    "SELECT id FROM datasets WHERE sha256 = ?1 AND private_to IN ('', ?2) ORDER BY "
                    "private_to DESC LIMIT 1",
                    run.dataset_blob, private_to);
  if (!dataset.Row()) return NotFound("data set with hash", run.dataset_blob);
  return std::optional<int64_t>(dataset.Int(0));
}

absl::StatusOr<ChosenRun> InsertRun(Transaction& t, const NewRun& run, int64_t generation,
                                    const NewExperiment& experiment) {
  ASSIGN_OR_RETURN(const auto dataset, FindDatasetRow(t, run, experiment.private_to));
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
      "trainer, private_to, expected_bytes, charged, initial_blob, lanes) VALUES (?1, ?2, ?3, ?4, "
      "?5, ?6, ?7, ?8, ?9, nullif(?10, 0), 0, ?11, ?12, ?13, ?12, ?14, ?15, ?16, ?17, ?18, ?19, "
      "?20, ?21) RETURNING id",
      chosen.name, run.fingerprint, generation, run.trajectory, run.seed, run.steps, run.parameters,
      run.device_kind, run.shape, dataset.value_or(0), experiment.priority, change, t.now,
      run.numerics_version, run.growth, run.trainer, experiment.private_to, run.expected_bytes,
      experiment.owner, run.initial_blob, run.lanes);
  if (insert.Row()) chosen.id = insert.Int(0);
  insert.Run();
  Statement(t.db, "INSERT INTO run_specs VALUES (?1, ?2)", chosen.id, Bytes{run.spec}).Run();
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
  RecordEvent(t, *run, "queued");
}

absl::StatusOr<ChosenRun> ChooseRun(Transaction& t, const NewRun& run,
                                    const NewExperiment& experiment) {
  Statement newest(t.db,
                   "SELECT id, name, state, generation, private_to FROM runs WHERE fingerprint = "
                   "?1 ORDER BY generation DESC LIMIT 1",
                   run.fingerprint);
  const bool exists = newest.Row();
  if (exists && newest.View(4) != experiment.private_to) {
    return absl::InternalError(
        absl::StrCat("fingerprint '", run.fingerprint,
                     "' belongs to another user's private run (a bug of the server)"));
  }
  if (!exists || experiment.fresh) {
    return InsertRun(t, run, exists ? newest.Int(3) + 1 : 1, experiment);
  }
  ChosenRun chosen{newest.Int(0), newest.Text(1), /*reused=*/true};
  const auto state = newest.As<RunState>(2);
  if (state == RunState::kFailed || state == RunState::kCancelled) {
    QueueRunAgain(t, chosen.id, run);
    chosen.reused = false;
  }
  return chosen;
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

int64_t InsertExperiment(Transaction& t, const NewExperiment& experiment, std::string* name) {
  *name = NewExperimentName(experiment.name);
  while (Statement(t.db, "SELECT 1 FROM experiments WHERE name = ?1", *name).Row()) {
    *name = NewExperimentName(experiment.name);
  }
  Statement insert(
      t.db,
      "INSERT INTO experiments (name, title, owner, request_id, request_hash, spec, priority, "
      "state, create_time, analyses, private_to, described, tags, note, extends, changes) VALUES "
      "(?1, ?2, ?3, nullif(?4, ''), ?5, ?6, ?7, 0, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) RETURNING "
      "id",
      *name, experiment.name, experiment.owner, RequestKey(experiment.owner, experiment.request_id),
      Bytes{experiment.request_hash}, Bytes{experiment.spec}, experiment.priority, t.now,
      experiment.analyses, experiment.private_to, !experiment.fields.common.empty(),
      EncodeLines(experiment.tags), experiment.note, experiment.extends,
      EncodeLines(experiment.changes));
  const int64_t id = insert.Row() ? insert.Int(0) : 0;
  insert.Run();
  return id;
}

void InsertCells(Transaction& t, int64_t id, const NewExperiment& experiment,
                 const ChosenRuns& runs, CreatedExperiment* created) {
  int64_t place = 0;
  VariantNumbers variants;
  for (const NewCell& cell : experiment.cells) {
    const ChosenRun& run = runs.at(cell.fingerprint);
    Statement(
        t.db,
        "INSERT INTO cells SELECT ?1, ?2, ?3, ?4, ?5, id, ?7, change, ?8 FROM runs WHERE id = ?6",
        id, place++, cell.name, Bytes{EncodeLabels(cell.labels)}, cell.seed, run.id, run.reused,
        variants.Of(cell.labels))
        .Run();
    created->cells.push_back({run.name, run.reused});
    if (run.reused) ++created->reused;
  }
  for (const auto& [fingerprint, run] : runs) {
    Statement(t.db,
              "UPDATE runs SET first_experiment = coalesce((SELECT min(first_experiment) FROM runs "
              "AS same WHERE same.growth = runs.growth AND same.growth <> '' AND "
              "same.first_experiment > 0), ?2) WHERE id = ?1 AND first_experiment = 0",
              run.id, id)
        .Run();
  }
  AddCellFields(t, id, experiment.private_to, variants.labels(), experiment.fields);
}

// Counts the new experiment's cells, gives its runs its priority, and charges its owner for those
// that no other experiment has.
void CountCells(Transaction& t, int64_t id, const ChosenRuns& runs) {
  Statement(
      t.db,
      "UPDATE experiments SET (queued, leased, done, diverged, failed, cancelled) = (SELECT "
      "coalesce(sum(state = 0), 0), coalesce(sum(state = 1), 0), coalesce(sum(state = 2), 0), "
      "coalesce(sum(state = 3), 0), coalesce(sum(state = 4), 0), coalesce(sum(state = 5), 0) FROM "
      "cells JOIN runs ON runs.id = cells.run WHERE experiment = ?1) WHERE id = ?1",
      id)
      .Run();
  SettleExperiment(t, id);
  for (const auto& entry : runs) {
    const std::optional<Claim> claim = LiveClaim(t.db, entry.second.id);
    if (claim.has_value()) SetClaim(t, entry.second.id, *claim);
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

// Columns as in the statement below.
ExperimentRecord ReadExperiment(Connection& db, const Statement& row) {
  ExperimentRecord record;
  record.id = row.Text(1);
  record.name = row.Text(2);
  record.owner = row.Text(3);
  record.spec = row.Text(4);
  record.state = row.As<ExperimentState>(5);
  RunCounts& counts = record.counts;
  uint32_t* fields[] = {&counts.queued,   &counts.running, &counts.done,
                        &counts.diverged, &counts.failed,  &counts.cancelled};
  for (int i = 0; i < 6; ++i) *fields[i] = row.As<uint32_t>(6 + i);
  record.create_time = row.Int(12);
  record.end_time = row.Int(13);
  record.analyses = CountAnalyses(db, row.Int(0), row.As<int>(14), row.Text(15));
  record.private_to = row.Text(16);
  record.tags = DecodeLines(row.View(17));
  record.note = row.Text(18);
  record.archived = row.Int(19) != 0;
  record.extends = row.Text(20);
  record.changes = DecodeLines(row.View(21));
  return record;
}

// Reads experiments with ids below `before`, newest first.
std::vector<ExperimentRecord> ReadBefore(Connection& db, const Viewer& viewer,
                                         const ExperimentFilter& filter, int64_t before,
                                         uint32_t limit) {
  std::vector<ExperimentRecord> records;
  Statement row(db,
                "SELECT id, name, title, owner, spec, state, queued, leased, done, diverged, "
                "failed, cancelled, create_time, end_time, analyses, analyses_failure, private_to, "
                "tags, note, archived, extends, changes FROM experiments WHERE id < ?1 AND deleted "
                "= 0 AND (?3 OR private_to IN ('', ?4)) AND ?5 IN ('', owner) AND (?6 = '' OR "
                "instr(char(10) || tags, ?6) > 0) AND (?7 OR archived = 0 OR state = 0) ORDER BY "
                "id DESC LIMIT ?2",
                before, limit, viewer.sees_all, viewer.user, filter.owner,
                filter.tag.empty() ? "" : absl::StrCat("\n", filter.tag, "\n"), filter.archived);
  while (row.Row()) records.push_back(ReadExperiment(db, row));
  return records;
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
  std::unordered_map<std::string, std::string> newest;  // name of the run by fingerprint
  for (const NewRun& run : experiment.runs) {
    Statement found(db,
                    "SELECT name FROM runs WHERE fingerprint = ?1 ORDER BY generation DESC LIMIT 1",
                    run.fingerprint);
    if (!found.Row()) return std::nullopt;
    newest[run.fingerprint] = found.Text(0);
  }
  std::vector<int64_t> candidates;
  {
    Statement row(db,
                  "SELECT id FROM experiments WHERE title = ?1 AND owner = ?2 AND private_to = ?3 "
                  "AND deleted = 0 ORDER BY archived, id DESC LIMIT 20",
                  experiment.name, experiment.owner, experiment.private_to);
    while (row.Row()) candidates.push_back(row.Int(0));
  }
  for (const int64_t id : candidates) {
    const std::vector<ExperimentRecord> found = ReadBefore(db, kServer, {}, id + 1, 1);
    if (found.empty() || !experiment.repeats(found.front())) continue;
    if (!HasCells(db, found.front().id, experiment, newest)) continue;
    CreatedExperiment same;
    same.id = found.front().id;
    same.identical = true;
    return same;
  }
  return std::nullopt;
}

absl::StatusOr<CreatedExperiment> Create(Transaction& t, const NewExperiment& experiment) {
  ASSIGN_OR_RETURN(auto known, FindAnswer(t.db, experiment.owner, experiment.request_id,
                                          experiment.request_hash));
  if (known.has_value()) return *std::move(known);
  RETURN_IF_ERROR(CheckGrid(experiment));
  if (std::optional<CreatedExperiment> same = FindRepeated(t.db, experiment)) {
    return *std::move(same);
  }
  for (const std::string& upload : experiment.uploads) {
    if (const absl::Status used = UseUpload(t, upload); !used.ok()) return used;
  }
  ChosenRuns runs;
  for (const NewRun& run : experiment.runs) {
    ASSIGN_OR_RETURN(auto chosen, ChooseRun(t, run, experiment));
    runs.emplace(run.fingerprint, std::move(chosen));
  }
  CreatedExperiment created;
  const int64_t id = InsertExperiment(t, experiment, &created.id);
  RETURN_IF_ERROR(Extend(t, id, experiment));
  InsertCells(t, id, experiment, runs, &created);
  CountCells(t, id, runs);
  RETURN_IF_ERROR(CheckOpenRuns(t.db, experiment));
  return created;
}

// Columns as in the three statements below.
CellRecord ReadCell(const Statement& row) {
  CellRecord cell;
  cell.index = row.As<uint32_t>(0);
  cell.name = row.Text(1);
  cell.labels = DecodeLabels(row.View(2));
  cell.seed = row.As<uint32_t>(3);
  cell.run = row.Text(4);
  cell.reused = row.Int(5) != 0;
  cell.state = row.As<RunState>(6);
  cell.step = row.As<uint32_t>(7);
  cell.steps = row.As<uint32_t>(8);
  cell.failure = row.Text(9);
  cell.change = row.As<uint64_t>(10);
  cell.origin = row.Text(11);
  cell.origin_step = row.As<uint32_t>(12);
  return cell;
}

// Reads cells with after < change <= last.
void ReadChanged(Connection& db, int64_t experiment, uint64_t after, uint64_t last, uint32_t offset,
                 uint32_t limit, std::vector<CellRecord>* cells) {
  Statement row(db,
                "SELECT cells.place, cells.name, labels, cells.seed, runs.name, reused, state, "
                "runs.step, steps, failure, cells.change, origins.name, origins.step FROM cells "
                "JOIN runs ON runs.id = cells.run LEFT JOIN origins ON origins.run = runs.id WHERE "
                "experiment = ?1 AND cells.change > ?2 AND cells.change <= ?3 ORDER BY "
                "cells.change, cells.place LIMIT ?5 OFFSET ?4",
                experiment, after, last, offset, limit);
  while (row.Row()) cells->push_back(ReadCell(row));
}

struct ExperimentRow {
  int64_t id = 0;
  ExperimentState state = ExperimentState::kActive;
};

std::optional<ExperimentRow> FindExperiment(Connection& db, absl::string_view name) {
  Statement row(db, "SELECT id, state FROM experiments WHERE name = ?1 AND deleted = 0", name);
  if (!row.Row()) return std::nullopt;
  return ExperimentRow{row.Int(0), row.As<ExperimentState>(1)};
}

std::vector<int64_t> LiveRuns(Connection& db, int64_t experiment) {
  std::vector<int64_t> runs;
  Statement row(db,
                "SELECT DISTINCT run FROM cells JOIN runs ON runs.id = cells.run WHERE experiment "
                "= ?1 AND runs.state IN (0, 1)",
                experiment);
  while (row.Row()) runs.push_back(row.Int(0));
  return runs;
}

// Stops a run that no experiment needs any more.
void CancelRun(Transaction& t, int64_t id, std::vector<Withdrawal>* withdrawals) {
  std::optional<RunRow> run = LoadRun(t.db, id);
  if (!run.has_value()) return;
  if (run->state == RunState::kLeased) {
    withdrawals->push_back({run->lease, run->worker});
  }
  RecordEvent(t, *run, "cancelled");
  run->lease.clear();
  EndRun(t, &*run, RunState::kCancelled);
}

}  // namespace

std::optional<CellRecord> LoadCell(Connection& db, int64_t experiment, uint32_t place) {
  Statement row(
      db,
      "SELECT cells.place, cells.name, labels, cells.seed, runs.name, reused, state, runs.step, "
      "steps, failure, cells.change, origins.name, origins.step FROM cells JOIN runs ON runs.id = "
      "cells.run LEFT JOIN origins ON origins.run = runs.id WHERE experiment = ?1 AND cells.place "
      "= ?2",
      experiment, place);
  if (!row.Row()) return std::nullopt;
  return ReadCell(row);
}

absl::StatusOr<CreatedExperiment> Store::CreateExperiment(const NewExperiment& experiment) {
  return db_->Write([&](Transaction& t) { return Create(t, experiment); });
}

absl::StatusOr<std::optional<CreatedExperiment>> Store::FindRequest(absl::string_view owner,
                                                                    absl::string_view id,
                                                                    absl::string_view hash) {
  return db_->Read([&](Connection& db) { return FindAnswer(db, owner, id, hash); });
}

absl::StatusOr<ExperimentRecord> Store::GetExperiment(absl::string_view id) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<ExperimentRecord> {
    ASSIGN_OR_RETURN(const auto row, FindExperimentRow(db, id));
    std::vector<ExperimentRecord> found = ReadBefore(db, kServer, {}, row + 1, 1);
    if (found.empty()) return NotFound("experiment", id);
    return std::move(found.front());
  });
}

absl::StatusOr<std::vector<std::string>> Store::FindExperiments(const Viewer& viewer,
                                                                absl::string_view prefix,
                                                                uint32_t limit) {
  return db_->Read([&](Connection& db) {
    std::vector<std::string> names;
    // By an index with private_to, so that others' names aren't read.
    Statement row(db,
                  "SELECT name FROM (SELECT name FROM experiments WHERE ?4 AND name >= ?1 AND name "
                  "< ?2 AND deleted = 0 UNION ALL SELECT name FROM experiments INDEXED BY "
                  "experiments_visible WHERE NOT ?4 AND private_to IN ('', ?5) AND name >= ?1 AND "
                  "name < ?2 AND deleted = 0) ORDER BY name != ?1, name LIMIT ?3",
                  prefix, PrefixEnd(prefix), limit, viewer.sees_all, viewer.user);
    while (row.Row()) names.push_back(row.Text(0));
    return names;
  });
}

absl::StatusOr<std::vector<ExperimentRecord>> Store::ListExperiments(const Viewer& viewer,
                                                                     const ExperimentFilter& filter,
                                                                     absl::string_view after,
                                                                     uint32_t limit) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<ExperimentRecord>> {
    if (after.empty()) return ReadBefore(db, viewer, filter, INT64_MAX, limit);
    Statement last(db, "SELECT id, private_to FROM experiments WHERE name = ?1 AND deleted = 0",
                   after);
    const bool visible = last.Row() && Sees(viewer, last.Text(1));
    if (!visible) return NotFound("experiment", after);
    return ReadBefore(db, viewer, filter, last.Int(0), limit);
  });
}

absl::StatusOr<std::vector<std::string>> Store::ExperimentIdsAndNames(const Viewer& viewer,
                                                                      uint32_t limit) {
  return db_->Read([&](Connection& db) {
    std::vector<std::string> names;
    Statement row(db,
                  "SELECT name, title FROM experiments WHERE deleted = 0 AND (?2 OR private_to IN "
                  "('', ?3)) ORDER BY id DESC LIMIT ?1",
                  limit, viewer.sees_all, viewer.user);
    while (row.Row()) names.insert(names.end(), {row.Text(0), row.Text(1)});
    return names;
  });
}

absl::StatusOr<std::vector<NamedExperiment>> Store::ExperimentsNamed(const Viewer& viewer,
                                                                     absl::string_view name,
                                                                     uint32_t limit) {
  return db_->Read([&](Connection& db) {
    std::vector<NamedExperiment> named;
    Statement row(db,
                  "SELECT name, archived FROM (SELECT id, name, archived FROM experiments WHERE ?3 "
                  "AND title = ?1 AND deleted = 0 UNION ALL SELECT id, name, archived FROM "
                  "experiments INDEXED BY experiments_visible_title WHERE NOT ?3 AND private_to IN "
                  "('', ?4) AND title = ?1 AND deleted = 0) ORDER BY archived, id DESC LIMIT ?2",
                  name, limit, viewer.sees_all, viewer.user);
    while (row.Row()) named.push_back({row.Text(0), row.Int(1) != 0});
    return named;
  });
}

absl::StatusOr<std::string> Store::ExtensionOf(absl::string_view id) {
  return db_->Read([&](Connection& db) -> std::string {
    Statement row(
        db,
        "SELECT name FROM experiments WHERE extends = ?1 AND extends <> '' AND deleted = 0 LIMIT 1",
        id);
    return row.Row() ? row.Text(0) : "";
  });
}

absl::Status Store::UpdateExperiment(absl::string_view id, const ExperimentUpdate& update) {
  return db_->Write([&](Transaction& t) -> absl::Status {
    ASSIGN_OR_RETURN(const auto experiment, FindExperimentRow(t.db, id));
    Statement stored(t.db, "SELECT tags FROM experiments WHERE id = ?1", experiment);
    std::set<std::string> tags;
    if (stored.Row()) {
      for (std::string& tag : DecodeLines(stored.View(0))) tags.insert(std::move(tag));
    }
    tags.insert(update.add_tags.begin(), update.add_tags.end());
    for (const std::string& tag : update.remove_tags) tags.erase(tag);
    if (tags.size() > kMaxTags) {
      return absl::InvalidArgumentError(absl::StrCat("add_tags: the experiment would have ",
                                                     tags.size(), " tags; expected at most ",
                                                     kMaxTags));
    }
    Statement(t.db,
              "UPDATE experiments SET title = iif(?2 = '', title, ?2), tags = ?3, note = iif(?4, "
              "?5, note), archived = iif(?6, ?7, archived) WHERE id = ?1",
              experiment, update.name, EncodeLines({tags.begin(), tags.end()}),
              update.note.has_value(), update.note.value_or(""), update.archived.has_value(),
              update.archived.value_or(false))
        .Run();
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<Withdrawal>> Store::LeasedOnlyBy(absl::string_view id) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<Withdrawal>> {
    ASSIGN_OR_RETURN(const auto experiment, FindExperimentRow(db, id));
    std::vector<Withdrawal> runs;
    Statement row(
        db,
        "SELECT DISTINCT lease, worker FROM cells JOIN runs ON runs.id = cells.run WHERE "
        "cells.experiment = ?1 AND runs.state = 1 AND NOT EXISTS (SELECT 1 FROM cells AS other "
        " JOIN experiments ON experiments.id = other.experiment "
        " WHERE other.run = runs.id AND other.experiment != ?1 "
        " AND experiments.state = 0 AND deleted = 0)",
        experiment);
    while (row.Row()) runs.push_back({row.Text(0), row.Text(1)});
    return runs;
  });
}

absl::StatusOr<CancelledExperiment> Store::CancelExperiment(absl::string_view id) {
  return db_->Free([&](Transaction& t) -> absl::StatusOr<CancelledExperiment> {
    const std::optional<ExperimentRow> experiment = FindExperiment(t.db, id);
    if (!experiment.has_value()) return NotFound("experiment", id);
    CancelledExperiment cancelled;
    if (experiment->state != ExperimentState::kActive) return cancelled;
    Statement(t.db, "UPDATE experiments SET state = 2, end_time = ?2 WHERE id = ?1", experiment->id,
              t.now)
        .Run();
    for (const int64_t run : LiveRuns(t.db, experiment->id)) {
      const std::optional<Claim> claim = LiveClaim(t.db, run);
      if (claim.has_value()) {
        SetClaim(t, run, *claim);
      } else {
        CancelRun(t, run, &cancelled.withdrawals);
      }
    }
    cancelled.analyses = AnalysesOnlyOf(t.db, experiment->id);
    for (const std::string& analysis : cancelled.analyses) CancelIfOpen(t, analysis);
    return cancelled;
  });
}

absl::StatusOr<std::vector<CellRecord>> Store::ListCells(absl::string_view experiment,
                                                         uint32_t first, uint32_t limit) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<CellRecord>> {
    ASSIGN_OR_RETURN(const auto id, FindExperimentRow(db, experiment));
    std::vector<CellRecord> cells;
    Statement row(db,
                  "SELECT cells.place, cells.name, labels, cells.seed, runs.name, reused, state, "
                  "runs.step, steps, failure, cells.change, origins.name, origins.step, "
                  "first_experiment FROM cells JOIN runs ON runs.id = cells.run LEFT JOIN origins "
                  "ON origins.run = runs.id WHERE experiment = ?1 AND cells.place >= ?2 ORDER BY "
                  "cells.place LIMIT ?3",
                  id, first, limit);
    while (row.Row()) {
      cells.push_back(ReadCell(row));
      cells.back().first_experiment = row.Int(13);
    }
    return cells;
  });
}

absl::StatusOr<std::vector<CellRecord>> Store::ChangedCells(absl::string_view experiment,
                                                            uint64_t after, uint32_t limit) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<CellRecord>> {
    ASSIGN_OR_RETURN(const auto id, FindExperimentRow(db, experiment));
    std::vector<CellRecord> cells;
    ReadChanged(db, id, after, INT64_MAX, 0, limit, &cells);
    if (cells.size() < limit || cells.empty()) return cells;
    const uint64_t last = cells.back().change;
    uint32_t have = 0;
    for (const CellRecord& cell : cells) have += cell.change == last ? 1 : 0;
    ReadChanged(db, id, last - 1, last, have, UINT32_MAX, &cells);
    return cells;
  });
}

}  // namespace ablate::storage
