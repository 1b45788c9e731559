#include "storage/sqlite/series.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/points.h"
#include "storage/sqlite/row_groups.h"
#include "storage/sqlite/summaries.h"

namespace ablate::storage {
namespace {

// A page ends after so many points or row groups, which bounds its memory and its transaction.
constexpr size_t kPagePoints = 65536;
constexpr int kPageGroups = 512;

absl::Status ReadChunks(Connection& db, const NamedRun& run, uint32_t key, uint32_t last_step,
                        SeriesPage* page) {
  Statement chunk(db,
                  "SELECT data, first_step, last_step FROM chunks WHERE run = ?1 AND key = ?2 AND "
                  "last_step >= ?3 AND first_step <= ?4 ORDER BY first_step",
                  run.id, key, page->next.next_step, last_step);
  while (page->steps.size() < kPagePoints && chunk.Row()) {
    RETURN_IF_ERROR(AppendPoints(
        ChunkPlace(run.name, key, chunk.As<uint32_t>(1), chunk.As<uint32_t>(2)), chunk.View(0), key,
        static_cast<uint32_t>(page->next.next_step), last_step, &page->steps, &page->values));
  }
  return absl::OkStatus();
}

// Row groups are later than every chunk of the same run.
absl::Status ReadGroups(Connection& db, const NamedRun& run, uint32_t key, uint32_t last_step,
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
    RETURN_IF_ERROR(AppendPoints(
        GroupPlace(run.name, page->next.last_group, group.As<uint32_t>(2), group.As<uint32_t>(3)),
        data, key, static_cast<uint32_t>(page->next.next_step), last_step, &page->steps,
        &page->values));
  }
  page->at_end = page->steps.size() < kPagePoints && groups < kPageGroups;
  return absl::OkStatus();
}

void Advance(SeriesPage* page) {
  if (!page->steps.empty()) page->next.next_step = uint64_t{page->steps.back()} + 1;
}

// Records if the run has changed since the first page.
void NoteChange(Connection& db, int64_t run, SeriesPage* page) {
  Statement row(db, "SELECT change FROM runs WHERE id = ?1", run);
  const uint64_t change = row.Row() ? row.As<uint64_t>(0) : 0;
  if (page->next.change == 0) page->next.change = change;
  page->next.steady = page->next.steady && page->next.change == change;
}

// Checks that all of a series was found, if that is known: points hidden by a damaged index or step
// aren't read, so that their own checksums don't show it. A run that changes between two pages may
// have restarted.
absl::Status CheckCount(const SeriesQuery& query, const FoundKey& key, const SeriesPage& page) {
  const bool whole = query.first_step == 0 && query.last_step >= key.last_step;
  if (!whole || !page.next.steady || page.next.points == key.count) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(page.next.points, " of ", key.count, " are there"));
}

absl::Status ReadPoints(Connection& db, const NamedRun& run, const SeriesQuery& query,
                        const FoundKey& key, SeriesPage* page) {
  absl::Status status = ReadChunks(db, run, key.number, query.last_step, page);
  // Points of row groups that have become chunks meanwhile come from there; only the rest after the
  // last chunk is read here.
  Advance(page);
  if (status.ok() && page->steps.size() < kPagePoints && page->next.next_step <= query.last_step) {
    status = ReadGroups(db, run, key.number, query.last_step, page);
    Advance(page);
  }
  page->next.points += page->steps.size();
  return status;
}

}  // namespace

absl::Status DamagedSummaries(absl::string_view run, const absl::Status& why) {
  return absl::DataLossError(absl::StrCat("run ", run, ": ", why.message()));
}

absl::Status ReadPage(Connection& db, const SeriesQuery& query, SeriesPage* page) {
  page->steps.clear();
  page->values.clear();
  ASSIGN_OR_RETURN(const auto id, FindRunRow(db, query.run));
  const NamedRun run{id, query.run};
  const auto key = LoadKey(db, id, query.run, query.key);
  if (!key.ok()) return DamagedSummaries(query.run, key.status());
  NoteChange(db, id, page);
  page->at_end = !key->has_value() || page->next.next_step > query.last_step;
  if (!key->has_value()) return absl::OkStatus();
  absl::Status status;
  if (!page->at_end) status = ReadPoints(db, run, query, **key, page);
  if (status.ok() && page->at_end) status = CheckCount(query, **key, *page);
  if (status.ok()) return status;
  return absl::DataLossError(absl::StrCat("run ", query.run, ": points of ", query.key,
                                          " are damaged in the database: ", status.message()));
}

}  // namespace ablate::storage
