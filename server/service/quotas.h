// What a user of a shared server may have at one time, and what is at their charge.
#ifndef ABLATE_SERVER_SERVICE_QUOTAS_H_
#define ABLATE_SERVER_SERVICE_QUOTAS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/service/services.h"
#include "storage/access_store.h"

namespace ablate::service {

// Without limits for who is no user with a quota. Reads no disk. Thread-safe, as all here.
storage::Quota QuotaOf(const Backend& backend, const std::string& user);

// What would be added.
struct Demand {
  uint64_t runs = 0;   // to be queued, or that others have queued or training
  uint64_t bytes = 0;  // to be stored
};

// RESOURCE_EXHAUSTED, with what there is and the quota, if the user would then have more than that.
// Others may add to it at the same time: for runs, the store looks once more as it queues them.
// Blocks on the store.
absl::Status CheckQuota(const Backend& backend, const std::string& user, const Demand& demand);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_QUOTAS_H_
