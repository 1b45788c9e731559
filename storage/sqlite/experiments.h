// Reads and changes the rows of experiments.
#ifndef ABLATE_STORAGE_SQLITE_EXPERIMENTS_H_
#define ABLATE_STORAGE_SQLITE_EXPERIMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/records.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Encodes texts for a column that holds a list of them: each ends with a line feed.
std::string EncodeLines(const std::vector<std::string>& lines);

// Reads an experiment that isn't deleted by its row number.
std::optional<ExperimentRecord> LoadExperiment(Connection& db, int64_t id);

// Leaves what the end of a process has kept from being created to Maintenance. Call it before any
// experiment is created.
void RemoveHalfCreated(Connection& db);

// Cancels an active experiment if it has as many FAILED cells as its limit. Leases of its runs are
// withdrawn after the commit.
void CancelIfTooManyFailed(Transaction& t, int64_t experiment);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_EXPERIMENTS_H_
