#include "storage/sqlite/ids.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace ablate::storage {

absl::Status NotFound(absl::string_view what, absl::string_view id) {
  return absl::NotFoundError(
      absl::StrCat("there is no ", what, " '", absl::CHexEscape(id.substr(0, 200)), "'"));
}

absl::StatusOr<int64_t> FindExperimentRow(Connection& db, absl::string_view id) {
  Statement row(db, "SELECT id FROM experiments WHERE name = ?1 AND deleted = 0", id);
  if (!row.Row()) return NotFound("experiment", id);
  return row.Int(0);
}

absl::StatusOr<int64_t> FindRunRow(Connection& db, absl::string_view id) {
  Statement row(db, "SELECT id FROM runs WHERE name = ?1", id);
  if (!row.Row()) return NotFound("run", id);
  return row.Int(0);
}

std::string PrefixEnd(absl::string_view prefix) { return absl::StrCat(prefix, "\xff"); }

}  // namespace ablate::storage
