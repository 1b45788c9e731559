// Starts a run from a shorter run that is equal except for its steps: with that run's points and
// checkpoints, and from its saved training state.
#ifndef ABLATE_STORAGE_SQLITE_ORIGINS_H_
#define ABLATE_STORAGE_SQLITE_ORIGINS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/lease_store.h"
#include "storage/records.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

struct Origin {
  int64_t run = 0;  // row of the shorter run, which may be gone
  std::string name;
  uint32_t step = 0;   // its number of steps
  bool taken = false;  // the run has started from there
};
std::optional<Origin> FindOrigin(Connection& db, int64_t run);
// Sets the run's origin: `wanted.origin`, or step 0 if that is empty or has no saved training state
// of a matching run (any more). Replaces the previous origin.
void SetOrigin(Transaction& t, int64_t run, const NewRun& wanted);
void ForgetOrigin(Transaction& t, int64_t run);

// Puts a run without points at its origin's end, as if it had paused there: copies points and
// checkpoints of earlier steps, and uses the saved training state as its resume state. The run
// makes points and a checkpoint of that step itself, if due. Copies all points in one transaction,
// some 50 ms per million. An error explains why the run can't start there; it may then be half
// copied, and must be rewound to step 0.
absl::Status BeginFromOrigin(Transaction& t, Blobs* blobs, const LeaseHolder& holder,
                             const Origin& origin, absl::string_view name, RunRow* run);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ORIGINS_H_
