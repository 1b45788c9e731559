// Pages of experiments and cells.
#include "storage/sqlite/experiment_reads.h"

#include <utility>

#include "storage/sqlite/experiments.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/statement.h"

namespace ablate::storage {
namespace {

// Columns as in the statement below.
ExperimentRecord ReadExperiment(const Statement& row) {
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
  return record;
}

// Experiments with ids below `before`, newest first.
std::vector<ExperimentRecord> ReadBefore(Connection& db, int64_t before, uint32_t limit) {
  std::vector<ExperimentRecord> records;
  Statement row(db,
                "SELECT id, name, title, owner, spec, state, queued, leased, done, diverged, "
                "failed, cancelled, create_time, end_time FROM experiments "
                "WHERE id < ?1 AND deleted = 0 ORDER BY id DESC LIMIT ?2",
                before, limit);
  while (row.Row()) records.push_back(ReadExperiment(row));
  return records;
}

// Columns as in the two statements below.
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
  return cell;
}

// Cells with after < change <= last.
void ReadChanged(Connection& db, int64_t experiment, uint64_t after, uint64_t last, uint32_t offset,
                 uint32_t limit, std::vector<CellRecord>* cells) {
  Statement row(db,
                "SELECT cells.place, cells.name, labels, cells.seed, runs.name, reused, state, "
                "step, steps, failure, cells.change FROM cells JOIN runs ON runs.id = cells.run "
                "WHERE experiment = ?1 AND cells.change > ?2 AND cells.change <= ?3 "
                "ORDER BY cells.change, cells.place LIMIT ?5 OFFSET ?4",
                experiment, after, last, offset, limit);
  while (row.Row()) cells->push_back(ReadCell(row));
}

}  // namespace

absl::StatusOr<int64_t> FindExperimentRow(Connection& db, absl::string_view name) {
  Statement row(db, "SELECT id FROM experiments WHERE name = ?1 AND deleted = 0", name);
  if (!row.Row()) return NotFound("experiment", name);
  return row.Int(0);
}

absl::StatusOr<ExperimentRecord> GetExperiment(Connection& db, absl::string_view name) {
  const auto id = FindExperimentRow(db, name);
  if (!id.ok()) return id.status();
  std::vector<ExperimentRecord> found = ReadBefore(db, *id + 1, 1);
  if (found.empty()) return NotFound("experiment", name);
  return std::move(found.front());
}

std::vector<std::string> FindExperiments(Connection& db, absl::string_view prefix, uint32_t limit) {
  std::vector<std::string> names;
  Statement row(db,
                "SELECT name FROM experiments WHERE name >= ?1 AND name < ?2 AND deleted = 0 "
                "ORDER BY name LIMIT ?3",
                prefix, PrefixEnd(prefix), limit);
  while (row.Row()) names.push_back(row.Text(0));
  return names;
}

absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(Connection& db,
                                                              absl::string_view after,
                                                              uint32_t limit) {
  if (after.empty()) return ReadBefore(db, INT64_MAX, limit);
  const auto id = FindExperimentRow(db, after);
  if (!id.ok()) return id.status();
  return ReadBefore(db, *id, limit);
}

absl::StatusOr<std::vector<CellRecord>> ListCells(Connection& db, absl::string_view experiment,
                                                  uint32_t first, uint32_t limit) {
  const auto id = FindExperimentRow(db, experiment);
  if (!id.ok()) return id.status();
  std::vector<CellRecord> cells;
  Statement row(db,
                "SELECT cells.place, cells.name, labels, cells.seed, runs.name, reused, state, "
                "step, steps, failure, cells.change FROM cells JOIN runs ON runs.id = cells.run "
                "WHERE experiment = ?1 AND cells.place >= ?2 ORDER BY cells.place LIMIT ?3",
                *id, first, limit);
  while (row.Row()) cells.push_back(ReadCell(row));
  return cells;
}

absl::StatusOr<std::vector<CellRecord>> ChangedCells(Connection& db, absl::string_view experiment,
                                                     uint64_t after, uint32_t limit) {
  const auto id = FindExperimentRow(db, experiment);
  if (!id.ok()) return id.status();
  std::vector<CellRecord> cells;
  ReadChanged(db, *id, after, INT64_MAX, 0, limit, &cells);
  if (cells.size() < limit || cells.empty()) return cells;
  // The cells of one run change together and must not be parted.
  const uint64_t last = cells.back().change;
  uint32_t have = 0;
  for (const CellRecord& cell : cells) have += cell.change == last ? 1 : 0;
  ReadChanged(db, *id, last - 1, last, have, UINT32_MAX, &cells);
  return cells;
}

}  // namespace ablate::storage
