// Where a run begins that is the same as a shorter one but for its steps: with what that one did
// before its end, and from its last state.
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
  uint32_t step = 0;   // at which that one was done
  bool taken = false;  // the run has begun from there
};
std::optional<Origin> FindOrigin(Connection& db, int64_t run);
// What the run is to begin from: `wanted.origin`, or step 0 if that is empty or has no last state
// of a run like this (any more). Replaces what was set before.
void SetOrigin(Transaction& t, int64_t run, const NewRun& wanted);
void ForgetOrigin(Transaction& t, int64_t run);

// Puts a run that has nothing yet where its origin ended, as if it had paused there: points and
// checkpoints of the steps before, and the last state as its resume state. Points and a checkpoint
// of that step are its own, if any are due. Copies all points at once: some 50 ms a million. An
// error says why the run can't begin there; then it may be halfway, and is to be rewound to step 0.
absl::Status BeginFromOrigin(Transaction& t, Blobs* blobs, const LeaseHolder& holder,
                             const Origin& origin, absl::string_view name, RunRow* run);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ORIGINS_H_
