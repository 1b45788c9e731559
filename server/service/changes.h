// Runs calls that change something: finds the caller and writes the audit row of a shared server.
#ifndef ABLATE_SERVER_SERVICE_CHANGES_H_
#define ABLATE_SERVER_SERVICE_CHANGES_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "server/service/services.h"
#include "storage/access_store.h"

namespace ablate::service {

// The change; sets `resource` to its object as soon as it is known, as experiments/names-norm-7f3k.
using Change =
    absl::FunctionRef<absl::Status(const storage::Caller& caller, std::string* resource)>;

// Makes the change and answers with its status. A server with users adds it to the audit log,
// failed or not; `method` is Service.Method. If that fails, the change is still made, and the
// failure is logged. Blocks on the store.
absl::Status MakeChange(const Backend& backend, const grpc::ServerContextBase& context,
                        absl::string_view method, Change change);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_CHANGES_H_
