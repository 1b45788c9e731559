// What a worker sent, checked and turned into the store's terms. A worker is trusted with its
// leases, not with the server's health.
#ifndef ABLATE_SERVER_SCHEDULE_MESSAGES_H_
#define ABLATE_SERVER_SCHEDULE_MESSAGES_H_

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/lease_store.h"

namespace ablate::schedule {

// INVALID_ARGUMENT names the field and what is allowed.
absl::Status CheckHeartbeat(const worker::v1::Heartbeat& heartbeat);
absl::Status CheckHello(const worker::v1::Hello& hello);
absl::StatusOr<storage::LeaseEvent> ToLeaseEvent(const worker::v1::Event& event);

// Whether the lease ends with this event.
bool EndsRun(const storage::LeaseEvent& event);
// The blob that the event names; empty if it names none.
absl::string_view NamedBlob(const storage::LeaseEvent& event);

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_MESSAGES_H_
