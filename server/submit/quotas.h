// Quotas of a shared server's users and their use, and the right to submit programs.
#ifndef ABLATE_SERVER_SUBMIT_QUOTAS_H_
#define ABLATE_SERVER_SUBMIT_QUOTAS_H_

#include <cstdint>
#include <string>

#include "ablate/v1/spec.pb.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/submit/backend.h"
#include "storage/access_store.h"
#include "storage/records.h"

namespace ablate::submit {

// Returns a user's quota; without limits if there is no such user. Doesn't read the disk.
// Thread-safe, like everything here.
storage::Quota QuotaOf(const Backend& backend, const std::string& user);

// The addition that a request would make.
struct Demand {
  uint64_t runs = 0;   // to be queued, or queued or training for others
  uint64_t bytes = 0;  // to be stored
};

// Returns RESOURCE_EXHAUSTED, with the present use and the quota, if the user would then exceed it.
// Other calls may add at the same time; for runs, the store checks again as it queues them. Blocks
// on the store.
absl::Status CheckQuota(const Backend& backend, const std::string& user, const Demand& demand);

// Returns PERMISSION_DENIED, with the command that helps, if the spec's runs are programs and the
// caller has no right to submit these. Doesn't read the disk.
absl::Status CheckMayRunPrograms(const Backend& backend, const storage::Viewer& caller,
                                 const v1::ExperimentSpec& spec);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_QUOTAS_H_
