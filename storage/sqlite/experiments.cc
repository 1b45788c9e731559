#include "storage/sqlite/experiments.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "storage/sqlite/analysis_progress.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/experiment_analyses.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/runs.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

std::vector<std::string> DecodeLines(absl::string_view text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// Reads the columns queued, leased, done, diverged, failed and cancelled from `first` on.
RunCounts ReadCounts(const Statement& row, int first) {
  RunCounts counts;
  uint32_t* fields[] = {&counts.queued,   &counts.running, &counts.done,
                        &counts.diverged, &counts.failed,  &counts.cancelled};
  for (int i = 0; i < 6; ++i) *fields[i] = row.As<uint32_t>(first + i);
  return counts;
}

// Columns as in the statement below.
ExperimentRecord ReadExperiment(Connection& db, const Statement& row) {
  ExperimentRecord record;
  record.id = row.Text(1);
  record.name = row.Text(2);
  record.owner = row.Text(3);
  record.spec = row.Text(4);
  record.state = row.As<ExperimentState>(5);
  record.counts = ReadCounts(row, 6);
  record.create_time = row.Int(12);
  record.end_time = row.Int(13);
  record.analyses = CountAnalyses(db, row.Int(0), row.As<int>(14), row.Text(15));
  record.private_to = row.Text(16);
  record.tags = DecodeLines(row.View(17));
  record.note = row.Text(18);
  record.archived = row.Int(19) != 0;
  record.extends = row.Text(20);
  record.changes = DecodeLines(row.View(21));
  record.why_cancelled = row.Text(22);
  record.paused = row.Int(23) != 0;
  record.priority = row.As<int>(24);
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
                "tags, note, archived, extends, changes, why_cancelled, paused, priority FROM "
                "experiments WHERE id < ?1 AND deleted = 0 AND (?3 OR private_to IN ('', ?4)) AND "
                "?5 IN ('', owner) AND "
                "(?6 = '' OR instr(char(10) || tags, ?6) > 0) AND (?7 OR archived = 0 OR state = "
                "0) ORDER BY id DESC LIMIT ?2",
                before, limit, viewer.sees_all, viewer.user, filter.owner,
                filter.tag.empty() ? "" : absl::StrCat("\n", filter.tag, "\n"), filter.archived);
  while (row.Row()) records.push_back(ReadExperiment(db, row));
  return records;
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

// Cancels an active experiment, with its runs that no other one needs. Adds their leases to
// `withdrawals`.
void CancelWithRuns(Transaction& t, int64_t experiment, absl::string_view why,
                    std::vector<Withdrawal>* withdrawals) {
  Statement(t.db,
            "UPDATE experiments SET state = 2, end_time = ?2, why_cancelled = ?3 WHERE id = ?1",
            experiment, t.now, why)
      .Run();
  t.NextChange();  // for watchers, even if other experiments need all of its runs
  for (const int64_t run : LiveRuns(t.db, experiment)) {
    const std::optional<Claim> claim = LiveClaim(t.db, run);
    if (claim.has_value()) {
      SetClaim(t, run, *claim);
    } else {
      CancelRun(t, run, withdrawals);
    }
  }
}

// Pauses the experiment or lets it proceed, and changes its priority, as the update says.
void ChangePriority(Transaction& t, int64_t experiment, const ExperimentUpdate& update) {
  Statement(t.db,
            "UPDATE experiments SET paused = iif(?2, ?3, paused), priority = iif(?4, ?5, priority) "
            "WHERE id = ?1",
            experiment, update.paused.has_value(), update.paused.value_or(false),
            update.priority.has_value(), update.priority.value_or(0))
      .Run();
  for (const int64_t run : LiveRuns(t.db, experiment)) {
    const std::optional<Claim> claim = LiveClaim(t.db, run);
    if (claim.has_value()) SetClaim(t, run, *claim);
  }
  t.NextChange();  // for watchers
}

// Gives the experiment's queued runs the place before or after all others.
void MoveTo(Transaction& t, int64_t experiment, ExperimentUpdate::Place place) {
  auto new_place = static_cast<int64_t>(t.NextChange());
  if (place == ExperimentUpdate::Place::kFirst) {
    Statement first(t.db, "SELECT min(place) FROM runs WHERE state = 0");
    new_place = first.Row() ? first.Int(0) - 1 : 0;
  }
  Statement(t.db,
            "UPDATE runs SET place = ?2 WHERE state = 0 AND id IN (SELECT run FROM cells WHERE "
            "experiment = ?1)",
            experiment, new_place)
      .Run();
}

}  // namespace

std::string EncodeLines(const std::vector<std::string>& lines) {
  return lines.empty() ? "" : absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

std::optional<ExperimentRecord> LoadExperiment(Connection& db, int64_t id) {
  std::vector<ExperimentRecord> found = ReadBefore(db, kServer, {}, id + 1, 1);
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

void CancelIfTooManyFailed(Transaction& t, int64_t experiment) {
  std::string why;
  {
    Statement row(t.db,
                  "SELECT failed, max_failed FROM experiments WHERE id = ?1 AND state = 0 AND "
                  "max_failed > 0 AND failed >= max_failed",
                  experiment);
    if (!row.Row()) return;
    why = absl::StrCat(row.Int(0), row.Int(0) == 1 ? " run" : " runs",
                       " failed; limits.failures is ", row.Int(1));
  }
  CancelWithRuns(t, experiment, why, &t.withdrawals);
}

absl::StatusOr<ExperimentRecord> Store::GetExperiment(absl::string_view id) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<ExperimentRecord> {
    ASSIGN_OR_RETURN(const auto row, FindExperimentRow(db, id));
    std::optional<ExperimentRecord> found = LoadExperiment(db, row);
    if (!found.has_value()) return NotFound("experiment", id);
    return *std::move(found);
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

absl::StatusOr<std::vector<ExperimentNews>> Store::NewsSince(Micros since) {
  return db_->Read([&](Connection& db) {
    std::vector<ExperimentNews> news;
    Statement row(db,
                  "SELECT name, title, owner, state, queued, leased, done, diverged, failed, "
                  "cancelled FROM experiments WHERE deleted = 0 AND private_to = '' AND (state = 0 "
                  "OR end_time >= ?1) ORDER BY id",
                  since);
    while (row.Row()) {
      news.push_back(
          {row.Text(0), row.Text(1), row.Text(2), row.As<ExperimentState>(3), ReadCounts(row, 4)});
    }
    return news;
  });
}

absl::Status Store::UpdateExperiment(absl::string_view id, const ExperimentUpdate& update) {
  return db_->Write([&](Transaction& t) -> absl::Status {
    ASSIGN_OR_RETURN(const auto experiment, FindExperimentRow(t.db, id));
    Statement stored(t.db, "SELECT tags, state FROM experiments WHERE id = ?1", experiment);
    std::set<std::string> tags;
    const bool queues = update.paused.has_value() || update.priority.has_value() ||
                        update.place != ExperimentUpdate::Place::kUnchanged;
    if (stored.Row()) {
      if (queues && stored.As<ExperimentState>(1) != ExperimentState::kActive) {
        return absl::FailedPreconditionError(
            "the experiment has ended; only an active one can be paused, resumed, moved or given a "
            "priority");
      }
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
    if (update.paused.has_value() || update.priority.has_value()) {
      ChangePriority(t, experiment, update);
    }
    if (update.place != ExperimentUpdate::Place::kUnchanged) MoveTo(t, experiment, update.place);
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
    CancelWithRuns(t, experiment->id, "", &cancelled.withdrawals);
    cancelled.analyses = AnalysesOnlyOf(t.db, experiment->id);
    for (const std::string& analysis : cancelled.analyses) CancelIfOpen(t, analysis);
    return cancelled;
  });
}

}  // namespace ablate::storage
