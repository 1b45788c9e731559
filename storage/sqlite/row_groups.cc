#include "storage/sqlite/row_groups.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "storage/sqlite/points.h"
#include "storage/sqlite/summaries.h"

namespace ablate::storage {
namespace {

// Adds the columns to the run's summaries and returns them for encoding.
absl::StatusOr<std::vector<EncodedColumn>> AddToSummaries(Transaction& t, const NamedRun& run,
                                                          const std::vector<Column>& columns) {
  ASSIGN_OR_RETURN(auto summaries, LoadSummaries(t.db, run.id, run.name));
  ASSIGN_OR_RETURN(const auto numbers, NumberKeys(columns, &summaries));
  std::vector<EncodedColumn> encoded;
  encoded.reserve(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const uint32_t number = numbers[i];
    AddPoints(columns[i], &summaries[number]);
    encoded.push_back({number, &columns[i].steps, &columns[i].values});
  }
  SaveSummaries(t.db, run.id, run.name, summaries);
  return encoded;
}

}  // namespace

absl::Status AddRowGroup(Transaction& t, const NamedRun& run, uint64_t change,
                         const std::vector<Column>& columns) {
  ASSIGN_OR_RETURN(const auto encoded, AddToSummaries(t, run, columns));
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
  for (const Column& column : columns) {
    first = std::min(first, column.steps.front());
    last = std::max(last, column.steps.back());
  }
  Statement(t.db, "INSERT INTO row_groups VALUES (?1, ?2, ?3, ?4, ?5)", change, run.id, first, last,
            Bytes{EncodePoints(GroupPlace(run.name, change, first, last), encoded)})
      .Run();
  return absl::OkStatus();
}

}  // namespace ablate::storage
