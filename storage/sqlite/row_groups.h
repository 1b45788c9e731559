// Adds points to a run: as a row group, and to its summaries.
#ifndef ABLATE_STORAGE_SQLITE_ROW_GROUPS_H_
#define ABLATE_STORAGE_SQLITE_ROW_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// A run's row and name.
struct NamedRun {
  int64_t id = 0;
  absl::string_view name;
};

// Adds columns, at least one, as a row group with this change number. INVALID_ARGUMENT as
// NumberKeys, DATA_LOSS as LoadSummaries; nothing is written then.
absl::Status AddRowGroup(Transaction& t, const NamedRun& run, uint64_t change,
                         const std::vector<Column>& columns);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ROW_GROUPS_H_
