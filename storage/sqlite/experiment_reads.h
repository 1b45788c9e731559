// What is asked about experiments and their cells.
#ifndef ABLATE_STORAGE_SQLITE_EXPERIMENT_READS_H_
#define ABLATE_STORAGE_SQLITE_EXPERIMENT_READS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// The row of an experiment that is asked for: NOT_FOUND otherwise.
absl::StatusOr<int64_t> FindExperimentRow(Connection& db, absl::string_view name);
absl::StatusOr<ExperimentRecord> GetExperiment(Connection& db, absl::string_view name);
std::vector<std::string> FindExperiments(Connection& db, absl::string_view prefix, uint32_t limit);
absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(Connection& db,
                                                              absl::string_view after,
                                                              uint32_t limit);
absl::StatusOr<std::vector<CellRecord>> ListCells(Connection& db, absl::string_view experiment,
                                                  uint32_t first, uint32_t limit);
// At most `limit`, and those that share the last one's change number, so that it can be the next
// `after`.
absl::StatusOr<std::vector<CellRecord>> ChangedCells(Connection& db, absl::string_view experiment,
                                                     uint64_t after, uint32_t limit);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_EXPERIMENT_READS_H_
