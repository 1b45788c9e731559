// Reading points and summaries.
#ifndef ABLATE_STORAGE_SQLITE_METRICS_H_
#define ABLATE_STORAGE_SQLITE_METRICS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/connection.h"
#include "storage/store.h"

namespace ablate::storage {

absl::StatusOr<RunSummaries> ReadSummaries(Connection& db, absl::string_view run);
// DATA_LOSS that names the run whose summaries can't be read, and why.
absl::Status DamagedSummaries(absl::string_view run, const absl::Status& why);

// Adds the point counts of a run's keys; DATA_LOSS if they are damaged.
absl::Status AddKeys(Connection& db, int64_t run, std::map<std::string, uint64_t>* counts);
// Rows of an experiment's distinct runs.
absl::StatusOr<std::vector<int64_t>> RunsOfExperiment(Connection& db, absl::string_view experiment);

// Where a reader of one series is. Steps ascend strictly within a series, so that the next step
// says it, also while the run's row groups turn into chunks.
struct SeriesPage {
  uint64_t next_step = 0;
  uint64_t last_group = 0;  // row groups up to this one have been read
  bool at_end = false;
  std::vector<uint32_t> steps;
  std::vector<double> values;
};

// Replaces the points in `page` by the next ones. NOT_FOUND if the run is not there (any more),
// DATA_LOSS that names run and key if they are damaged.
absl::Status ReadPage(Connection& db, const SeriesQuery& query, SeriesPage* page);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_METRICS_H_
