#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/series.h"
#include "storage/sqlite/summaries.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

using KeyCounts = std::map<std::string, uint64_t>;

absl::StatusOr<RunSummaries> ReadSummaries(Connection& db, absl::string_view run) {
  ASSIGN_OR_RETURN(const auto id, FindRunRow(db, run));
  RunSummaries summaries;
  auto stored = LoadSummaries(db, id, run);
  if (!stored.ok()) {
    summaries.damage = std::string(DamagedSummaries(run, stored.status()).message());
    return summaries;
  }
  summaries.keys.reserve(stored->size());
  for (KeySummary& entry : *stored) summaries.keys.push_back(std::move(entry.summary));
  std::sort(summaries.keys.begin(), summaries.keys.end(),
            [](const Summary& a, const Summary& b) { return a.key < b.key; });
  return summaries;
}

// Adds the point counts of a run's keys; DATA_LOSS if they are damaged.
absl::Status AddKeys(Connection& db, int64_t run, absl::string_view name, KeyCounts* counts) {
  ASSIGN_OR_RETURN(const auto stored, LoadSummaries(db, run, name));
  for (const KeySummary& entry : stored) (*counts)[entry.summary.key] += entry.summary.count;
  return absl::OkStatus();
}

// Returns row and name of each of an experiment's runs.
absl::StatusOr<std::vector<std::pair<int64_t, std::string>>> RunsOfExperiment(
    Connection& db, absl::string_view experiment) {
  ASSIGN_OR_RETURN(const auto id, FindExperimentRow(db, experiment));
  std::vector<std::pair<int64_t, std::string>> runs;
  Statement row(db,
                "SELECT id, name FROM runs WHERE id IN (SELECT run FROM cells WHERE experiment = "
                "?1) ORDER BY id",
                id);
  while (row.Row()) runs.emplace_back(row.Int(0), row.Text(1));
  return runs;
}

}  // namespace

absl::StatusOr<std::vector<RunSummaries>> Store::Summaries(const std::vector<std::string>& runs) {
  std::vector<RunSummaries> summaries;
  summaries.reserve(runs.size());
  RETURN_IF_ERROR(db_->ReadEach(runs.size(), [&](Connection& db, size_t i) {
    auto found = ReadSummaries(db, runs[i]);
    if (!found.ok()) return found.status();
    summaries.push_back(*std::move(found));
    return absl::OkStatus();
  }));
  return summaries;
}

absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> Store::RunKeys(
    absl::string_view run) {
  KeyCounts counts;
  RETURN_IF_ERROR(db_->Read([&](Connection& db) {
    const auto row = FindRunRow(db, run);
    if (!row.ok()) return row.status();
    const absl::Status added = AddKeys(db, *row, run, &counts);
    return added.ok() ? added : DamagedSummaries(run, added);
  }));
  return std::vector<std::pair<std::string, uint64_t>>(counts.begin(), counts.end());
}

absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> Store::ExperimentKeys(
    absl::string_view experiment) {
  ASSIGN_OR_RETURN(const auto runs,
                   db_->Read([&](Connection& db) { return RunsOfExperiment(db, experiment); }));
  KeyCounts counts;
  const absl::Status read = db_->ReadEach(runs.size(), [&](Connection& db, size_t i) {
    // Damage is reported to whoever reads the run.
    const auto& [id, name] = runs[i];
    AddKeys(db, id, name, &counts).IgnoreError();
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return std::vector<std::pair<std::string, uint64_t>>(counts.begin(), counts.end());
}

absl::Status Store::ReadSeries(const SeriesQuery& query, const SeriesPiece& piece,
                               SeriesPosition* position) {
  SeriesPosition beginning;
  if (position == nullptr) position = &beginning;
  SeriesPage page;
  page.next = *position;
  page.next.next_step = std::max<uint64_t>(page.next.next_step, query.first_step);
  while (!page.at_end) {
    RETURN_IF_ERROR(db_->Read([&](Connection& db) { return ReadPage(db, query, &page); }));
    *position = page.next;
    if (page.steps.empty()) continue;
    if (!piece(page.steps, page.values)) return absl::CancelledError("the reader has enough");
  }
  return absl::OkStatus();
}

}  // namespace ablate::storage
