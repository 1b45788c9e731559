// Public ids: making new ones, searching by prefix, saying that one is unknown.
#ifndef ABLATE_STORAGE_SQLITE_IDS_H_
#define ABLATE_STORAGE_SQLITE_IDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ablate::storage {

// The title, a hyphen and four random characters of a-z2-7.
std::string NewExperimentName(absl::string_view title);
// Above every id that begins with `prefix`.
std::string PrefixEnd(absl::string_view prefix);
// NOT_FOUND: there is no `what` 'id'.
absl::Status NotFound(absl::string_view what, absl::string_view id);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_IDS_H_
