#include "storage/sqlite/experiment_analyses.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/leases.h"
#include "storage/sqlite/runs.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// Ends an experiment once all of its analyses are requested and have ended.
void SettleAnalyses(Transaction& t, int64_t experiment) {
  Statement(t.db,
            "UPDATE experiments SET analyses = 3 WHERE id = ?1 AND analyses = 2 AND NOT EXISTS "
            "(SELECT 1 FROM experiment_analyses AS asked "
            " JOIN analyses ON analyses.id = asked.analysis "
            " WHERE asked.experiment = ?1 AND analyses.state < 2)",
            experiment)
      .Run();
  SettleExperiment(t, experiment);
}

// Returns the last queue place of all its runs; one that is queued again gets a later place.
int64_t LastPlaceOf(Connection& db, int64_t experiment) {
  Statement row(db,
                "SELECT coalesce(max(runs.place), 0) FROM cells JOIN runs ON runs.id = cells.run "
                "WHERE experiment = ?1",
                experiment);
  return row.Row() ? row.Int(0) : 0;
}

}  // namespace

absl::Status LinkAnalysis(Transaction& t, const NewAnalysis& asked, int64_t analysis) {
  ASSIGN_OR_RETURN(const auto experiment, FindExperimentRow(t.db, asked.asked_by));
  if (!Statement(t.db, "SELECT 1 FROM experiments WHERE id = ?1 AND state = 0", experiment).Row()) {
    return absl::FailedPreconditionError(
        absl::StrCat("experiment ", asked.asked_by, " is no longer active"));
  }
  Statement(t.db, "INSERT OR IGNORE INTO experiment_analyses VALUES (?1, ?2, ?3)", experiment,
            asked.asked_as, analysis)
      .Run();
  return absl::OkStatus();
}

bool IsLinked(Connection& db, const NewAnalysis& asked, int64_t analysis) {
  if (asked.asked_by.empty()) return false;
  return Statement(
             db,
             "SELECT 1 FROM experiment_analyses AS asked JOIN experiments ON experiments.id = "
             "asked.experiment WHERE experiments.name = ?1 AND label = ?2 AND analysis = ?3",
             asked.asked_by, asked.asked_as, analysis)
      .Row();
}

bool IsAskedFor(Connection& db, int64_t analysis) {
  return Statement(db, "SELECT 1 FROM experiment_analyses WHERE analysis = ?1 LIMIT 1", analysis)
      .Row();
}

void SettleAskers(Transaction& t, int64_t analysis) {
  std::vector<int64_t> experiments;
  Statement row(t.db, "SELECT DISTINCT experiment FROM experiment_analyses WHERE analysis = ?1",
                analysis);
  while (row.Row()) experiments.push_back(row.Int(0));
  for (const int64_t experiment : experiments) SettleAnalyses(t, experiment);
}

std::vector<std::string> AnalysesOnlyOf(Connection& db, int64_t experiment) {
  std::vector<std::string> names;
  Statement row(db,
                "SELECT DISTINCT analyses.name FROM experiment_analyses AS asked JOIN analyses ON "
                "analyses.id = asked.analysis WHERE asked.experiment = ?1 AND analyses.state < 2 "
                "AND by_hand = 0 AND NOT EXISTS (SELECT 1 FROM experiment_analyses AS other "
                " JOIN experiments ON experiments.id = other.experiment "
                " WHERE other.analysis = asked.analysis AND other.experiment != ?1 "
                " AND experiments.state = 0)",
                experiment);
  while (row.Row()) names.push_back(row.Text(0));
  return names;
}

AnalysisCounts CountAnalyses(Connection& db, int64_t experiment, int state, std::string failure) {
  AnalysisCounts counts;
  if (state == 0) return counts;
  counts.any = true;
  counts.planned = state > 1;
  counts.failure = std::move(failure);
  uint32_t* fields[] = {&counts.queued, &counts.running, &counts.done, &counts.failed,
                        &counts.cancelled};
  Statement row(db,
                "SELECT state, count(*) FROM experiment_analyses AS asked JOIN analyses ON "
                "analyses.id = asked.analysis WHERE experiment = ?1 GROUP BY state",
                experiment);
  while (row.Row()) {
    const int64_t of = row.Int(0);
    if (of >= 0 && of < static_cast<int64_t>(std::size(fields))) *fields[of] = row.As<uint32_t>(1);
  }
  return counts;
}

absl::StatusOr<Unplanned> Store::UnplannedExperiments() {
  return db_->Read([&](Connection& db) {
    Unplanned unplanned;
    Statement row(db,
                  "SELECT name, queued + leased, id FROM experiments WHERE analyses = 1 AND state "
                  "= 0 ORDER BY id");
    while (row.Row()) {
      if (row.Int(1) == 0) {
        unplanned.ready.push_back({row.Text(0), LastPlaceOf(db, row.Int(2))});
      } else {
        unplanned.others = true;
      }
    }
    return unplanned;
  });
}

absl::Status Store::PlannedAnalyses(const UnplannedExperiment& experiment,
                                    const std::string& failure) {
  return db_->Write([&](Transaction& t) -> absl::Status {
    ASSIGN_OR_RETURN(const auto id, FindExperimentRow(t.db, experiment.id));
    if (LastPlaceOf(t.db, id) != experiment.last_place) {
      Statement(t.db, "DELETE FROM experiment_analyses WHERE experiment = ?1", id).Run();
      return absl::OkStatus();
    }
    Statement(t.db,
              "UPDATE experiments SET analyses = 2, analyses_failure = ?2 WHERE id = ?1 AND "
              "analyses = 1 AND state = 0 AND queued + leased = 0",
              id, ShortenMessage(failure))
        .Run();
    SettleAnalyses(t, id);
    t.NextChange();
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<AskedAnalysis>> Store::AskedAnalyses(absl::string_view experiment) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<AskedAnalysis>> {
    ASSIGN_OR_RETURN(const auto id, FindExperimentRow(db, experiment));
    std::vector<AskedAnalysis> asked;
    Statement row(db,
                  "SELECT label, analyses.name, analyses.state FROM experiment_analyses AS asked "
                  "JOIN analyses ON analyses.id = asked.analysis WHERE experiment = ?1 ORDER BY "
                  "label, analysis",
                  id);
    while (row.Row()) asked.push_back({row.Text(0), row.Text(1), row.As<AnalysisState>(2)});
    return asked;
  });
}

absl::StatusOr<std::vector<AnalysisAsker>> Store::AnalysisAskers(absl::string_view analysis) {
  return db_->Read([&](Connection& db) {
    std::vector<AnalysisAsker> askers;
    Statement row(db,
                  "SELECT DISTINCT experiments.name, experiments.owner, experiments.state FROM "
                  "experiment_analyses AS asked JOIN analyses ON analyses.id = asked.analysis JOIN "
                  "experiments ON experiments.id = asked.experiment WHERE analyses.name = ?1 AND "
                  "experiments.deleted = 0 ORDER BY experiments.id",
                  analysis);
    while (row.Row()) askers.push_back({row.Text(0), row.Text(1), row.Int(2) == 0});
    return askers;
  });
}

}  // namespace ablate::storage
