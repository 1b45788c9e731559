// Answers CheckStore: is everything that the database names still there, and whole?
#ifndef ABLATE_SERVER_SERVICE_CHECK_STORE_H_
#define ABLATE_SERVER_SERVICE_CHECK_STORE_H_

#include "ablate/v1/admin.pb.h"
#include "absl/status/status.h"
#include "server/lookup/cancelled.h"
#include "server/lookup/names.h"

namespace ablate::service {

// Reads the whole database and each file that it names: some seconds a GB. Thread-safe.
absl::Status CheckStore(const lookup::View& view, const v1::CheckStoreRequest& request,
                        const lookup::Cancelled& cancelled, v1::CheckStoreResponse* response);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_CHECK_STORE_H_
