// Rows of leases, and code shared by their ends and events.
#ifndef ABLATE_STORAGE_SQLITE_LEASES_H_
#define ABLATE_STORAGE_SQLITE_LEASES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Returns at most 4,000 bytes of a worker's message, cut between characters; its log has all of it.
absl::string_view ShortenMessage(absl::string_view message);

// Records a failure of the run: queues it again, or sets FAILED if there were too many or if this
// one is final. Saves.
void FailRun(Transaction& t, RunRow* run, absl::string_view message, bool is_final = false);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_LEASES_H_
