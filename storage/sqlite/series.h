// Reads a stored series page by page: from chunks, then from row groups.
#ifndef ABLATE_STORAGE_SQLITE_SERIES_H_
#define ABLATE_STORAGE_SQLITE_SERIES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/sqlite/connection.h"
#include "storage/store.h"

namespace ablate::storage {

// Points of a series that are read at once.
struct SeriesPage {
  SeriesPosition next;  // position after them
  bool at_end = false;
  std::vector<uint32_t> steps;
  std::vector<double> values;
};

// Replaces the points in `page` by the next ones. NOT_FOUND if the run doesn't exist (any more);
// DATA_LOSS naming run and key if the points are damaged.
absl::Status ReadPage(Connection& db, const SeriesQuery& query, SeriesPage* page);

// Returns the error for a run whose summaries can't be read, with the reason.
absl::Status DamagedSummaries(absl::string_view run, const absl::Status& why);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_SERIES_H_
