#include "storage/sqlite/cells.h"

#include <vector>

#include "base/status_macros.h"
#include "storage/sqlite/cell_fields.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/ids.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// Selects the columns that ReadCell reads, from cells of the experiment ?1.
#define ABLATE_SELECT_CELLS                                                                     \
  "SELECT cells.place, cells.name, labels, cells.seed, runs.name, reused, shown, runs.step, "   \
  "steps, failure, cells.change, origins.name, origins.step, first_experiment FROM cells JOIN " \
  "runs ON runs.id = cells.run LEFT JOIN origins ON origins.run = runs.id WHERE experiment = ?1 "

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
  cell.first_experiment = row.Int(13);
  return cell;
}

// Reads cells with after < change <= last.
void ReadChanged(Connection& db, int64_t experiment, uint64_t after, uint64_t last, uint32_t offset,
                 uint32_t limit, std::vector<CellRecord>* cells) {
  Statement row(db,
                ABLATE_SELECT_CELLS
                "AND cells.change > ?2 AND cells.change <= ?3 ORDER BY cells.change, cells.place "
                "LIMIT ?5 OFFSET ?4",
                experiment, after, last, offset, limit);
  while (row.Row()) cells->push_back(ReadCell(row));
}

}  // namespace

std::optional<CellRecord> LoadCell(Connection& db, int64_t experiment, uint32_t place) {
  Statement row(db, ABLATE_SELECT_CELLS "AND cells.place = ?2", experiment, place);
  if (!row.Row()) return std::nullopt;
  return ReadCell(row);
}

absl::StatusOr<std::vector<CellRecord>> Store::ListCells(absl::string_view experiment,
                                                         uint32_t first, uint32_t limit) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<CellRecord>> {
    ASSIGN_OR_RETURN(const auto id, FindExperimentRow(db, experiment));
    std::vector<CellRecord> cells;
    Statement row(db, ABLATE_SELECT_CELLS "AND cells.place >= ?2 ORDER BY cells.place LIMIT ?3", id,
                  first, limit);
    while (row.Row()) cells.push_back(ReadCell(row));
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
