// The events of a lease: what a worker did, applied in order, each exactly once.
#ifndef ABLATE_STORAGE_SQLITE_EVENTS_H_
#define ABLATE_STORAGE_SQLITE_EVENTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/blobs.h"
#include "storage/leases.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// One answer each. INVALID_ARGUMENT or FAILED_PRECONDITION (a blob is not there) for an event that
// no worker of ours sends; nothing is applied then. `blobs` is null in memory, where blobs are not
// looked for.
absl::StatusOr<std::vector<Applied>> Apply(Transaction& t, Blobs* blobs,
                                           absl::string_view incarnation,
                                           const std::vector<LeaseEvent>& events);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_EVENTS_H_
