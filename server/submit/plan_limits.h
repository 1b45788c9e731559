// Checks a plan against the limits of its spec, the disk and the user's quota.
#ifndef ABLATE_SERVER_SUBMIT_PLAN_LIMITS_H_
#define ABLATE_SERVER_SUBMIT_PLAN_LIMITS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "server/submit/backend.h"
#include "server/submit/plan.h"
#include "storage/store.h"

namespace ablate::submit {

// Adds problems for the spec's limits on time and bytes, and for too many analyses. `trained` is
// the number of runs that will be trained. A guessed time may be wrong by several times, so it only
// adds a note.
void CheckLimits(size_t trained, Plan* plan);

// Compares the plan's bytes with the room that is free now, because the size stored while other
// experiments train is unknown. Sets no_room, or adds a note for a large share.
absl::Status CheckRoom(const storage::Store& store, Plan* plan);

// Sets no_room if the plan is beyond the user's quota.
absl::Status CheckUsersQuota(const Backend& backend, const std::string& user, Plan* plan);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_PLAN_LIMITS_H_
