// Public ids: finds their rows, searches by prefix, and reports unknown ones.
#ifndef ABLATE_STORAGE_SQLITE_IDS_H_
#define ABLATE_STORAGE_SQLITE_IDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// Returns NOT_FOUND: "there is no `what` 'id'".
absl::Status NotFound(absl::string_view what, absl::string_view id);
// Return the row of an id; NOT_FOUND.
absl::StatusOr<int64_t> FindExperimentRow(Connection& db, absl::string_view id);
absl::StatusOr<int64_t> FindRunRow(Connection& db, absl::string_view id);
// Returns a text above every id that begins with `prefix`.
std::string PrefixEnd(absl::string_view prefix);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_IDS_H_
