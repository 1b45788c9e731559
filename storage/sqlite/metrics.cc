// Series from chunks and row groups; keys and summaries.
#include "storage/sqlite/metrics.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/experiment_reads.h"
#include "storage/sqlite/points.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/statement.h"
#include "storage/sqlite/summaries.h"

namespace ablate::storage {
namespace {

// A page ends after so many points or row groups, which bounds its memory and its transaction.
constexpr size_t kPagePoints = 65536;
constexpr int kPageGroups = 512;

absl::StatusOr<KeySummaries> Load(Connection& db, int64_t run) {
  Statement stored(db, "SELECT data FROM summaries WHERE run = ?1", run);
  if (!stored.Row()) return KeySummaries();
  return DecodeSummaries(stored.View(0));
}

absl::StatusOr<std::optional<uint32_t>> KeyNumber(Connection& db, int64_t run,
                                                  absl::string_view key) {
  Statement stored(db, "SELECT data FROM summaries WHERE run = ?1", run);
  if (!stored.Row()) return std::optional<uint32_t>();
  return FindKey(stored.View(0), key);
}

absl::Status ReadChunks(Connection& db, int64_t run, uint32_t key, uint32_t last_step,
                        SeriesPage* page) {
  Statement chunk(db,
                  "SELECT data FROM chunks WHERE run = ?1 AND key = ?2 AND last_step >= ?3 "
                  "AND first_step <= ?4 ORDER BY first_step",
                  run, key, page->next_step, last_step);
  while (page->steps.size() < kPagePoints && chunk.Row()) {
    const absl::Status status =
        AppendPoints(chunk.View(0), key, static_cast<uint32_t>(page->next_step), last_step,
                     &page->steps, &page->values);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Row groups are later than every chunk of the same run.
absl::Status ReadGroups(Connection& db, int64_t run, uint32_t key, uint32_t last_step,
                        SeriesPage* page) {
  Statement group(db,
                  "SELECT id, iif(last_step >= ?3 AND first_step <= ?4, data, NULL) "
                  "FROM row_groups WHERE run = ?1 AND id > ?2 ORDER BY id LIMIT ?5",
                  run, page->last_group, page->next_step, last_step, kPageGroups);
  int groups = 0;
  while (page->steps.size() < kPagePoints && group.Row()) {
    ++groups;
    page->last_group = group.As<uint64_t>(0);
    const absl::string_view data = group.View(1);
    if (data.empty()) continue;
    const absl::Status status = AppendPoints(data, key, static_cast<uint32_t>(page->next_step),
                                             last_step, &page->steps, &page->values);
    if (!status.ok()) return status;
  }
  page->at_end = page->steps.size() < kPagePoints && groups < kPageGroups;
  return absl::OkStatus();
}

void Advance(SeriesPage* page) {
  if (!page->steps.empty()) page->next_step = uint64_t{page->steps.back()} + 1;
}

}  // namespace

absl::Status DamagedSummaries(absl::string_view run, const absl::Status& why) {
  return absl::DataLossError(
      absl::StrCat("run ", run, ": its summaries are damaged in the database: ", why.message()));
}

absl::StatusOr<RunSummaries> ReadSummaries(Connection& db, absl::string_view run) {
  const auto id = FindRunRow(db, run);
  if (!id.ok()) return id.status();
  RunSummaries summaries;
  auto stored = Load(db, *id);
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

absl::Status AddKeys(Connection& db, int64_t run, std::map<std::string, uint64_t>* counts) {
  const auto stored = Load(db, run);
  if (!stored.ok()) return stored.status();
  for (const KeySummary& entry : *stored) (*counts)[entry.summary.key] += entry.summary.count;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> RunsOfExperiment(Connection& db,
                                                      absl::string_view experiment) {
  const auto id = FindExperimentRow(db, experiment);
  if (!id.ok()) return id.status();
  std::vector<int64_t> runs;
  Statement row(db, "SELECT DISTINCT run FROM cells WHERE experiment = ?1 ORDER BY run", *id);
  while (row.Row()) runs.push_back(row.Int(0));
  return runs;
}

absl::Status ReadPage(Connection& db, const SeriesQuery& query, SeriesPage* page) {
  page->steps.clear();
  page->values.clear();
  const auto run = FindRunRow(db, query.run);
  if (!run.ok()) return run.status();
  const auto found = KeyNumber(db, *run, query.key);
  if (!found.ok()) return DamagedSummaries(query.run, found.status());
  if (!found->has_value() || page->next_step > query.last_step) {
    page->at_end = true;
    return absl::OkStatus();
  }
  const uint32_t key = **found;
  absl::Status status = ReadChunks(db, *run, key, query.last_step, page);
  // Points of row groups that became chunks meanwhile come from there: only what is left after the
  // last chunk is looked for here.
  Advance(page);
  if (status.ok() && page->steps.size() < kPagePoints && page->next_step <= query.last_step) {
    status = ReadGroups(db, *run, key, query.last_step, page);
    Advance(page);
  }
  if (status.ok()) return status;
  return absl::DataLossError(absl::StrCat("run ", query.run, ": points of ", query.key,
                                          " are damaged in the database: ", status.message()));
}

}  // namespace ablate::storage
