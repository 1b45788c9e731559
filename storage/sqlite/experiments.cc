// Experiments come and go; the runs that their cells share follow.
#include "storage/sqlite/experiments.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/bytes.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/statement.h"

namespace ablate::storage {
namespace {

// The run that an experiment's cells with one fingerprint get.
struct ChosenRun {
  int64_t id = 0;
  std::string name;
  bool reused = false;
};
using ChosenRuns = std::unordered_map<std::string, ChosenRun>;

absl::Status CheckGrid(const NewExperiment& experiment) {
  std::unordered_set<std::string> fingerprints;
  for (const NewRun& run : experiment.runs) {
    if (fingerprints.insert(run.fingerprint).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("runs: fingerprint '", run.fingerprint,
                                                   "' comes twice; each must be distinct"));
  }
  std::unordered_set<std::string> names;
  for (const NewCell& cell : experiment.cells) {
    if (!names.insert(cell.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("cells: name '", cell.name, "' comes twice; names must be distinct"));
    }
    if (fingerprints.count(cell.fingerprint) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("cells: '", cell.name, "' has fingerprint '",
                                                     cell.fingerprint, "', which no run has"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> FindDatasetRow(Transaction& t, const NewRun& run) {
  if (run.dataset_blob.empty()) return std::optional<int64_t>();
  Statement dataset(t.db, "SELECT id FROM datasets WHERE sha256 = ?1", run.dataset_blob);
  if (!dataset.Row()) return NotFound("data set with hash", run.dataset_blob);
  return std::optional<int64_t>(dataset.Int(0));
}

absl::StatusOr<ChosenRun> InsertRun(Transaction& t, const NewRun& run, int64_t generation,
                                    int priority) {
  const auto dataset = FindDatasetRow(t, run);
  if (!dataset.ok()) return dataset.status();
  ChosenRun chosen;
  chosen.name = generation == 1 ? run.fingerprint : absl::StrCat(run.fingerprint, ".", generation);
  const uint64_t change = t.NextChange();
  Statement insert(
      t.db,
      "INSERT INTO runs (name, fingerprint, generation, trajectory, seed, steps, parameters, "
      "device_kind, shape, dataset, state, priority, place, create_time, change, numerics) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, nullif(?10, 0), 0, ?11, ?12, ?13, ?12, ?14) "
      "RETURNING id",
      chosen.name, run.fingerprint, generation, run.trajectory, run.seed, run.steps, run.parameters,
      run.device_kind, run.shape, dataset->value_or(0), priority, change, t.now,
      run.numerics_version);
  if (insert.Row()) chosen.id = insert.Int(0);
  insert.Run();
  Statement(t.db, "INSERT INTO run_specs VALUES (?1, ?2)", chosen.id, Bytes{run.spec}).Run();
  RunRow row;
  row.id = chosen.id;
  Record(t, row, "queued");
  return chosen;
}

void QueueAgain(Transaction& t, int64_t id) {
  std::optional<RunRow> run = LoadRun(t.db, id);
  if (!run.has_value()) return;
  // What made it fail may be in there: from it, it would fail for ever.
  if (run->state == RunState::kFailed) DropResumeState(t, id);
  run->failures = run->losses = 0;
  run->failure.clear();
  run->end_time = 0;
  Requeue(t, &*run);
  Statement(t.db, "UPDATE runs SET place = ?2 WHERE id = ?1", id, t.change).Run();
  Record(t, *run, "queued");
}

absl::StatusOr<ChosenRun> ChooseRun(Transaction& t, const NewRun& run, bool fresh, int priority) {
  Statement newest(t.db,
                   "SELECT id, name, state, generation FROM runs WHERE fingerprint = ?1 "
                   "ORDER BY generation DESC LIMIT 1",
                   run.fingerprint);
  const bool exists = newest.Row();
  if (!exists || fresh) {
    return InsertRun(t, run, exists ? newest.Int(3) + 1 : 1, priority);
  }
  ChosenRun chosen{newest.Int(0), newest.Text(1), /*reused=*/true};
  const auto state = newest.As<RunState>(2);
  if (state == RunState::kFailed || state == RunState::kCancelled) {
    QueueAgain(t, chosen.id);
    chosen.reused = false;
  }
  return chosen;
}

int64_t InsertExperiment(Transaction& t, const NewExperiment& experiment, std::string* name) {
  *name = NewExperimentName(experiment.name);
  while (Statement(t.db, "SELECT 1 FROM experiments WHERE name = ?1", *name).Row()) {
    *name = NewExperimentName(experiment.name);
  }
  Statement insert(
      t.db,
      "INSERT INTO experiments (name, title, owner, request_id, request_hash, spec, priority, "
      "state, create_time) VALUES (?1, ?2, ?3, nullif(?4, ''), ?5, ?6, ?7, 0, ?8) RETURNING id",
      *name, experiment.name, experiment.owner, experiment.request_id,
      Bytes{experiment.request_hash}, Bytes{experiment.spec}, experiment.priority, t.now);
  const int64_t id = insert.Row() ? insert.Int(0) : 0;
  insert.Run();
  return id;
}

void InsertCells(Transaction& t, int64_t id, const NewExperiment& experiment,
                 const ChosenRuns& runs, CreatedExperiment* created) {
  int64_t place = 0;
  for (const NewCell& cell : experiment.cells) {
    const ChosenRun& run = runs.at(cell.fingerprint);
    Statement(
        t.db, "INSERT INTO cells SELECT ?1, ?2, ?3, ?4, ?5, id, ?7, change FROM runs WHERE id = ?6",
        id, place++, cell.name, Bytes{EncodeLabels(cell.labels)}, cell.seed, run.id, run.reused)
        .Run();
    created->cells.push_back({run.name, run.reused});
    if (run.reused) ++created->reused;
  }
}

// Counts the new experiment's cells, and lets its runs have its priority.
void Join(Transaction& t, int64_t id, const ChosenRuns& runs) {
  Statement(t.db,
            "UPDATE experiments SET (queued, leased, done, diverged, failed, cancelled) = "
            "(SELECT coalesce(sum(state = 0), 0), coalesce(sum(state = 1), 0), "
            "coalesce(sum(state = 2), 0), coalesce(sum(state = 3), 0), "
            "coalesce(sum(state = 4), 0), coalesce(sum(state = 5), 0) "
            "FROM cells JOIN runs ON runs.id = cells.run WHERE experiment = ?1) WHERE id = ?1",
            id)
      .Run();
  SettleExperiment(t, id);
  for (const auto& entry : runs) {
    const std::optional<int> priority = LivePriority(t.db, entry.second.id);
    if (priority.has_value()) SetPriority(t, entry.second.id, *priority);
  }
}

}  // namespace

absl::StatusOr<std::optional<CreatedExperiment>> FindRequest(Connection& db, absl::string_view id,
                                                             absl::string_view hash) {
  Statement found(db, "SELECT id, name, request_hash FROM experiments WHERE request_id = ?1", id);
  if (!found.Row()) return std::optional<CreatedExperiment>();
  if (found.View(2) != hash) {
    return absl::AlreadyExistsError(absl::StrCat("request_id '", id,
                                                 "' was used for another experiment; a new "
                                                 "request needs a new one"));
  }
  CreatedExperiment answer;
  answer.id = found.Text(1);
  answer.repeated = true;
  Statement cell(db,
                 "SELECT runs.name, reused FROM cells JOIN runs ON runs.id = cells.run "
                 "WHERE experiment = ?1 ORDER BY cells.place",
                 found.Int(0));
  while (cell.Row()) {
    answer.cells.push_back({cell.Text(0), cell.Int(1) != 0});
    if (answer.cells.back().reused) ++answer.reused;
  }
  return answer;
}

absl::StatusOr<CreatedExperiment> CreateExperiment(Transaction& t,
                                                   const NewExperiment& experiment) {
  auto known = FindRequest(t.db, experiment.request_id, experiment.request_hash);
  if (!known.ok()) return known.status();
  if (known->has_value()) return **std::move(known);
  const absl::Status valid = CheckGrid(experiment);
  if (!valid.ok()) return valid;
  ChosenRuns runs;
  for (const NewRun& run : experiment.runs) {
    auto chosen = ChooseRun(t, run, experiment.fresh, experiment.priority);
    if (!chosen.ok()) return chosen.status();
    runs.emplace(run.fingerprint, *std::move(chosen));
  }
  CreatedExperiment created;
  const int64_t id = InsertExperiment(t, experiment, &created.id);
  InsertCells(t, id, experiment, runs, &created);
  Join(t, id, runs);
  return created;
}

std::string EncodeLabels(const std::vector<std::pair<std::string, std::string>>& labels) {
  std::string bytes;
  for (const auto& [axis, label] : labels) {
    PutText(&bytes, axis);
    PutText(&bytes, label);
  }
  return bytes;
}

std::vector<std::pair<std::string, std::string>> DecodeLabels(absl::string_view bytes) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (ByteReader in(bytes); in.ok() && !in.empty();) {
    std::string axis(in.Text());
    labels.emplace_back(std::move(axis), std::string(in.Text()));
  }
  return labels;
}

}  // namespace ablate::storage
