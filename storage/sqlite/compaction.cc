#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/maintenance.h"
#include "storage/sqlite/points.h"
#include "storage/sqlite/runs.h"

namespace ablate::storage {
namespace {

constexpr size_t kSlicePoints = 1 << 20;
constexpr int kMaxSlices = 64;  // of short runs in one transaction
constexpr size_t kChunkPoints = 1 << 16;

struct Chunk {
  uint32_t key = 0;
  uint32_t first_step = 0;
  uint32_t last_step = 0;
  std::string data;
};

// The oldest row groups of one run, as chunks.
struct CompactedSlice {
  int64_t run = 0;
  std::string name;
  uint64_t last_group = 0;
  size_t points = 0;
  std::vector<Chunk> chunks;
  std::string unreadable;  // why the run can't be compacted; then there are no chunks
};

struct Series {
  std::vector<uint32_t> steps;
  std::vector<double> values;
};

void Cut(uint32_t key, const Series& series, CompactedSlice* slice) {
  for (size_t begin = 0; begin < series.steps.size(); begin += kChunkPoints) {
    const size_t end = std::min(begin + kChunkPoints, series.steps.size());
    const auto from = static_cast<std::ptrdiff_t>(begin);
    const auto to = static_cast<std::ptrdiff_t>(end);
    const std::vector<uint32_t> steps(series.steps.begin() + from, series.steps.begin() + to);
    const std::vector<double> values(series.values.begin() + from, series.values.begin() + to);
    const std::string place = ChunkPlace(slice->name, key, steps.front(), steps.back());
    slice->chunks.push_back(
        {key, steps.front(), steps.back(), EncodePoints(place, {{key, &steps, &values}})});
  }
}

// Collects row groups until there are enough points. Sets the slice's last group and points.
absl::StatusOr<std::map<uint32_t, Series>> Collect(Connection& db, CompactedSlice* slice) {
  std::map<uint32_t, Series> all;
  Statement group(
      db, "SELECT id, data, first_step, last_step FROM row_groups WHERE run = ?1 ORDER BY id",
      slice->run);
  while (slice->points < kSlicePoints && group.Row()) {
    slice->last_group = group.As<uint64_t>(0);
    ASSIGN_OR_RETURN(const auto columns,
                     DecodePoints(GroupPlace(slice->name, slice->last_group, group.As<uint32_t>(2),
                                             group.As<uint32_t>(3)),
                                  group.View(1)));
    for (const DecodedColumn& column : columns) {
      Series& series = all[column.key];
      series.steps.insert(series.steps.end(), column.steps.begin(), column.steps.end());
      series.values.insert(series.values.end(), column.values.begin(), column.values.end());
      slice->points += column.steps.size();
    }
  }
  return all;
}

CompactedSlice MakeSlice(Connection& db, int64_t run, std::string name) {
  CompactedSlice slice;
  slice.run = run;
  slice.name = std::move(name);
  const auto series = Collect(db, &slice);
  if (!series.ok()) {
    // If it were retried, all later runs would never get their turn.
    slice.unreadable =
        absl::StrCat("its points are damaged in the database: ", series.status().message());
    return slice;
  }
  for (const auto& [key, points] : *series) Cut(key, points, &slice);
  return slice;
}

// Returns the next slices, each of one run, with so many points in total; none if every ended run
// is compacted. Only reads, so that the encoding isn't done on the writer's thread.
absl::StatusOr<std::vector<CompactedSlice>> NextSlices(Connection& db) {
  std::vector<CompactedSlice> slices;
  size_t points = 0;
  Statement next(db,
                 "SELECT run, coalesce(name, '') FROM uncompacted LEFT JOIN runs ON runs.id = "
                 "uncompacted.run ORDER BY run LIMIT ?1",
                 kMaxSlices);
  while (points < kSlicePoints && next.Row()) {
    slices.push_back(MakeSlice(db, next.Int(0), next.Text(1)));
    points += slices.back().points;
  }
  return slices;
}

// Replaces the row groups by the chunks, unless the run is gone. Unreadable points stay as they are
// and are noted in the run's history.
void StoreSlice(Transaction& t, const CompactedSlice& slice) {
  if (!Statement(t.db, "SELECT 1 FROM uncompacted WHERE run = ?1", slice.run).Row()) return;
  if (!slice.unreadable.empty()) {
    Statement(t.db, "DELETE FROM uncompacted WHERE run = ?1", slice.run).Run();
    const std::optional<RunRow> run = LoadRun(t.db, slice.run);
    if (run.has_value()) RecordEvent(t, *run, "damaged", slice.unreadable);
    return;
  }
  for (const Chunk& chunk : slice.chunks) {
    Statement(
        t.db,
        "INSERT INTO chunks (run, key, first_step, last_step, data) VALUES (?1, ?2, ?3, ?4, ?5)",
        slice.run, chunk.key, chunk.first_step, chunk.last_step, Bytes{chunk.data})
        .Run();
  }
  Statement(t.db, "DELETE FROM row_groups WHERE run = ?1 AND id <= ?2", slice.run, slice.last_group)
      .Run();
  if (Statement(t.db, "SELECT 1 FROM row_groups WHERE run = ?1", slice.run).Row()) return;
  Statement(t.db, "DELETE FROM uncompacted WHERE run = ?1", slice.run).Run();
}

}  // namespace

absl::Status Maintenance::CompactAll() {
  while (!stopping()) {
    const absl::StatusOr<std::vector<CompactedSlice>> slices = db_->Read(NextSlices);
    if (!slices.ok() || slices->empty()) return slices.status();
    RETURN_IF_ERROR(db_->Write([&](Transaction& t) {
      for (const CompactedSlice& slice : *slices) StoreSlice(t, slice);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

}  // namespace ablate::storage
