// What the parts of the access store share: times as they are stored, rows of the audit log.
#ifndef ABLATE_STORAGE_SQLITE_ACCESS_ROWS_H_
#define ABLATE_STORAGE_SQLITE_ACCESS_ROWS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/access_store.h"

namespace ablate::storage {

// As a time is after it was stored.
inline absl::Time WholeMicros(absl::Time time) {
  return absl::FromUnixMicros(absl::ToUnixMicros(time));
}

// The row of a change that is made here and succeeds; `details`: what was changed.
Audit MakeAudit(const Actor& actor, absl::Time time, absl::string_view change,
                absl::string_view resource, absl::string_view details);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ACCESS_ROWS_H_
