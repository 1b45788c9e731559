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

// A lease's row stays when its last run has left it, settled, so that events which are sent again
// are known to be repetitions. It goes when the lease is ended, or a day later (PruneLeases). A
// server that trains short runs has hundreds of thousands of those: they are found by name and by
// age, and nothing walks over them.
struct LeaseRow {
  int64_t id = 0;
  std::string incarnation;
  uint64_t acked = 0;
};

std::optional<LeaseRow> FindLease(Connection& db, absl::string_view name);
// Forgets a slice of the leases that settled before `before`. False when there was none.
bool PruneLeases(Transaction& t, Micros before);

// At most 4,000 bytes of a worker's words, cut between characters; in full they are in its log.
absl::string_view ShortenMessage(absl::string_view message);

// A failure of the run: back into the queue, or FAILED if it is one too many. Saves.
void FailRun(Transaction& t, RunRow* run, absl::string_view message);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_LEASES_H_
