// Shared by the parts of the access store: stored times, and rows of the audit log.
#ifndef ABLATE_STORAGE_SQLITE_ACCESS_ROWS_H_
#define ABLATE_STORAGE_SQLITE_ACCESS_ROWS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/access_store.h"

namespace ablate::storage {

// Returns a time rounded as the store does.
inline absl::Time WholeMicros(absl::Time time) {
  return absl::FromUnixMicros(absl::ToUnixMicros(time));
}

// Makes the audit row of a successful change; `details` describes the change.
Audit MakeAudit(const Actor& actor, absl::Time time, absl::string_view change,
                absl::string_view resource, absl::string_view details);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ACCESS_ROWS_H_
