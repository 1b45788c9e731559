// Analyses that go with the runs that they are of.
#ifndef ABLATE_STORAGE_SQLITE_ANALYSES_H_
#define ABLATE_STORAGE_SQLITE_ANALYSES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Removes analyses that have a subject of this run, whatever their other subjects are and with all
// that they name; at most `limit`. How many it were.
int RemoveAnalyses(Transaction& t, int64_t run, int limit);

// QUEUED or RUNNING → CANCELLED; nothing of one that has ended or is gone.
void CancelIfOpen(Transaction& t, absl::string_view name);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ANALYSES_H_
