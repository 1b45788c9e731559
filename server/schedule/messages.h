// Checks a worker's messages and converts them to the store's types. A worker is trusted with its
// leases, not with the server's health.
#ifndef ABLATE_SERVER_SCHEDULE_MESSAGES_H_
#define ABLATE_SERVER_SCHEDULE_MESSAGES_H_

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/lease_store.h"

namespace ablate::schedule {

// Returns INVALID_ARGUMENT: "FIELD is VALUE; expected ALLOWED".
absl::Status WrongField(absl::string_view field, absl::string_view value,
                        absl::string_view allowed);

// Return INVALID_ARGUMENT naming the field and the allowed values.
absl::Status CheckHeartbeat(const worker::v1::Heartbeat& heartbeat);
absl::Status CheckHello(const worker::v1::Hello& hello);
absl::StatusOr<storage::LeaseEvent> ToLeaseEvent(const worker::v1::Event& event);

// Returns true if the lease ends with this event.
bool EndsRun(const storage::LeaseEvent& event);
// Returns the blob that the event names; empty if it names none.
absl::string_view NamedBlob(const storage::LeaseEvent& event);

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_MESSAGES_H_
