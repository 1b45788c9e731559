// The rows of leases, and what their ends and their events share.
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

// At most 4,000 bytes of a worker's words, cut between characters; in full they are in its log.
absl::string_view ShortenMessage(absl::string_view message);

// A failure of the run: back into the queue, or FAILED if it is one too many. Saves.
void FailRun(Transaction& t, RunRow* run, absl::string_view message);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_LEASES_H_
