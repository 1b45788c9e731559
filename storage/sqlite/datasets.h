// Uploads that are kept only if an experiment uses them.
#ifndef ABLATE_STORAGE_SQLITE_DATASETS_H_
#define ABLATE_STORAGE_SQLITE_DATASETS_H_

#include <string>

#include "absl/status/status.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Keeps the data set of this key, which an experiment uses. One that becomes public now is.
// NOT_FOUND if it was deleted; FAILED_PRECONDITION if somebody has published its bytes by another
// ID; ALREADY_EXISTS if another data set has its ID.
absl::Status UseUpload(Transaction& t, const std::string& key);
// Deletes uploads that no experiment has used in time.
void DeleteUnusedUploads(Transaction& t);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_DATASETS_H_
