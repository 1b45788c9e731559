// Reads cells with the state of their runs.
#ifndef ABLATE_STORAGE_SQLITE_CELLS_H_
#define ABLATE_STORAGE_SQLITE_CELLS_H_

#include <cstdint>
#include <optional>

#include "storage/records.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// Reads a cell by its experiment and its place in the grid.
std::optional<CellRecord> LoadCell(Connection& db, int64_t experiment, uint32_t place);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_CELLS_H_
