#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/points.h"
#include "storage/sqlite/summaries.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// A page ends after so many points or row groups, which bounds its memory and its transaction.
constexpr size_t kPagePoints = 65536;
constexpr int kPageGroups = 512;
constexpr size_t kPageRuns = 200;  // whose summaries are looked at in one read

using KeyCounts = std::map<std::string, uint64_t>;

// Points of a series that are read at once.
struct SeriesPage {
  SeriesPosition next;  // after them
  bool at_end = false;
  std::vector<uint32_t> steps;
  std::vector<double> values;
};

// A run of which something is read.
struct ReadRun {
  int64_t id = 0;
  absl::string_view name;
};

// That the run's summaries can't be read, and why.
absl::Status DamagedSummaries(absl::string_view run, const absl::Status& why) {
  return absl::DataLossError(absl::StrCat("run ", run, ": ", why.message()));
}

absl::Status ReadChunks(Connection& db, const ReadRun& run, uint32_t key, uint32_t last_step,
                        SeriesPage* page) {
  Statement chunk(db,
                  "SELECT data, first_step, last_step FROM chunks WHERE run = ?1 AND key = ?2 "
                  "AND last_step >= ?3 AND first_step <= ?4 ORDER BY first_step",
                  run.id, key, page->next.next_step, last_step);
  while (page->steps.size() < kPagePoints && chunk.Row()) {
    const absl::Status status = AppendPoints(
        ChunkPlace(run.name, key, chunk.As<uint32_t>(1), chunk.As<uint32_t>(2)), chunk.View(0), key,
        static_cast<uint32_t>(page->next.next_step), last_step, &page->steps, &page->values);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Row groups are later than every chunk of the same run.
absl::Status ReadGroups(Connection& db, const ReadRun& run, uint32_t key, uint32_t last_step,
                        SeriesPage* page) {
  Statement group(db,
                  "SELECT id, iif(last_step >= ?3 AND first_step <= ?4, data, NULL), first_step, "
                  "last_step FROM row_groups WHERE run = ?1 AND id > ?2 ORDER BY id LIMIT ?5",
                  run.id, page->next.last_group, page->next.next_step, last_step, kPageGroups);
  int groups = 0;
  while (page->steps.size() < kPagePoints && group.Row()) {
    ++groups;
    page->next.last_group = group.As<uint64_t>(0);
    const absl::string_view data = group.View(1);
    if (data.empty()) continue;
    const absl::Status status = AppendPoints(
        GroupPlace(run.name, page->next.last_group, group.As<uint32_t>(2), group.As<uint32_t>(3)),
        data, key, static_cast<uint32_t>(page->next.next_step), last_step, &page->steps,
        &page->values);
    if (!status.ok()) return status;
  }
  page->at_end = page->steps.size() < kPagePoints && groups < kPageGroups;
  return absl::OkStatus();
}

void Advance(SeriesPage* page) {
  if (!page->steps.empty()) page->next.next_step = uint64_t{page->steps.back()} + 1;
}

absl::StatusOr<RunSummaries> ReadSummaries(Connection& db, absl::string_view run) {
  const auto id = FindRunRow(db, run);
  if (!id.ok()) return id.status();
  RunSummaries summaries;
  auto stored = LoadSummaries(db, *id, run);
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
absl::Status AddKeys(Connection& db, const ReadRun& run, KeyCounts* counts) {
  const auto stored = LoadSummaries(db, run.id, run.name);
  if (!stored.ok()) return stored.status();
  for (const KeySummary& entry : *stored) (*counts)[entry.summary.key] += entry.summary.count;
  return absl::OkStatus();
}

// Row and name of each of an experiment's runs.
absl::StatusOr<std::vector<std::pair<int64_t, std::string>>> RunsOfExperiment(
    Connection& db, absl::string_view experiment) {
  const auto id = FindExperimentRow(db, experiment);
  if (!id.ok()) return id.status();
  std::vector<std::pair<int64_t, std::string>> runs;
  Statement row(db,
                "SELECT id, name FROM runs WHERE id IN "
                "(SELECT run FROM cells WHERE experiment = ?1) ORDER BY id",
                *id);
  while (row.Row()) runs.emplace_back(row.Int(0), row.Text(1));
  return runs;
}

// Notes whether the run has changed since the first page.
void NoteChange(Connection& db, int64_t run, SeriesPage* page) {
  Statement row(db, "SELECT change FROM runs WHERE id = ?1", run);
  const uint64_t change = row.Row() ? row.As<uint64_t>(0) : 0;
  if (page->next.change == 0) page->next.change = change;
  page->next.steady = page->next.steady && page->next.change == change;
}

// Whether all of a series was found, where that is known: points that a damaged index or step hides
// are not read, so that their own checksums tell nothing. A run that changes between two pages may
// have begun anew.
absl::Status CheckCount(const SeriesQuery& query, const FoundKey& key, const SeriesPage& page) {
  const bool whole = query.first_step == 0 && query.last_step >= key.last_step;
  if (!whole || !page.next.steady || page.next.points == key.count) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(page.next.points, " of ", key.count, " are there"));
}

absl::Status ReadPoints(Connection& db, const ReadRun& run, const SeriesQuery& query,
                        const FoundKey& key, SeriesPage* page) {
  absl::Status status = ReadChunks(db, run, key.number, query.last_step, page);
  // Points of row groups that became chunks meanwhile come from there: only what is left after the
  // last chunk is looked for here.
  Advance(page);
  if (status.ok() && page->steps.size() < kPagePoints && page->next.next_step <= query.last_step) {
    status = ReadGroups(db, run, key.number, query.last_step, page);
    Advance(page);
  }
  page->next.points += page->steps.size();
  return status;
}

// Replaces the points in `page` by the next ones. NOT_FOUND if the run is not there (any more),
// DATA_LOSS that names run and key if they are damaged.
absl::Status ReadPage(Connection& db, const SeriesQuery& query, SeriesPage* page) {
  page->steps.clear();
  page->values.clear();
  const auto id = FindRunRow(db, query.run);
  if (!id.ok()) return id.status();
  const ReadRun run{*id, query.run};
  const auto key = LoadKey(db, *id, query.run, query.key);
  if (!key.ok()) return DamagedSummaries(query.run, key.status());
  NoteChange(db, *id, page);
  page->at_end = !key->has_value() || page->next.next_step > query.last_step;
  if (!key->has_value()) return absl::OkStatus();
  absl::Status status;
  if (!page->at_end) status = ReadPoints(db, run, query, **key, page);
  if (status.ok() && page->at_end) status = CheckCount(query, **key, *page);
  if (status.ok()) return status;
  return absl::DataLossError(absl::StrCat("run ", query.run, ": points of ", query.key,
                                          " are damaged in the database: ", status.message()));
}

}  // namespace

absl::StatusOr<std::vector<RunSummaries>> Store::Summaries(const std::vector<std::string>& runs) {
  std::vector<RunSummaries> summaries;
  summaries.reserve(runs.size());
  for (size_t begin = 0; begin < runs.size(); begin += kPageRuns) {
    const size_t end = std::min(begin + kPageRuns, runs.size());
    const absl::Status status = db_->Read([&](Connection& db) {
      for (size_t i = begin; i < end; ++i) {
        auto found = ReadSummaries(db, runs[i]);
        if (!found.ok()) return found.status();
        summaries.push_back(*std::move(found));
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return summaries;
}

absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> Store::RunKeys(
    absl::string_view run) {
  KeyCounts counts;
  const absl::Status read = db_->Read([&](Connection& db) {
    const auto row = FindRunRow(db, run);
    if (!row.ok()) return row.status();
    const absl::Status added = AddKeys(db, {*row, run}, &counts);
    return added.ok() ? added : DamagedSummaries(run, added);
  });
  if (!read.ok()) return read;
  return std::vector<std::pair<std::string, uint64_t>>(counts.begin(), counts.end());
}

absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> Store::ExperimentKeys(
    absl::string_view experiment) {
  const auto runs = db_->Read([&](Connection& db) { return RunsOfExperiment(db, experiment); });
  if (!runs.ok()) return runs.status();
  KeyCounts counts;
  for (size_t begin = 0; begin < runs->size(); begin += kPageRuns) {
    const size_t end = std::min(begin + kPageRuns, runs->size());
    const absl::Status status = db_->Read([&](Connection& db) {
      for (size_t i = begin; i < end; ++i) {
        // What is damaged is told by whoever reads it.
        const auto& [id, name] = (*runs)[i];
        AddKeys(db, {id, name}, &counts).IgnoreError();
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return std::vector<std::pair<std::string, uint64_t>>(counts.begin(), counts.end());
}

absl::Status Store::ReadSeries(const SeriesQuery& query, const SeriesPiece& piece) {
  SeriesPosition position;
  return ReadSeries(query, piece, &position);
}

absl::Status Store::ReadSeries(const SeriesQuery& query, const SeriesPiece& piece,
                               SeriesPosition* position) {
  SeriesPage page;
  page.next = *position;
  page.next.next_step = std::max<uint64_t>(page.next.next_step, query.first_step);
  while (!page.at_end) {
    const absl::Status status =
        db_->Read([&](Connection& db) { return ReadPage(db, query, &page); });
    if (!status.ok()) return status;
    *position = page.next;
    if (page.steps.empty()) continue;
    if (!piece(page.steps, page.values)) return absl::CancelledError("the reader has enough");
  }
  return absl::OkStatus();
}

}  // namespace ablate::storage
