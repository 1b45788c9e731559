// Calls that change something: who makes them, and the note of it that a shared server keeps.
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

// Sets `resource` to what it changes as soon as it knows, such as experiments/names-norm-7f3k.
using Change =
    absl::FunctionRef<absl::Status(const storage::Caller& caller, std::string* resource)>;

// Makes it and answers with its status. A server with users has it in the audit log, also where it
// failed: `method` is Service.Method. What can't be noted is made all the same, and logged. Blocks
// on the store.
absl::Status MakeChange(const Backend& backend, const grpc::ServerContextBase& context,
                        absl::string_view method, Change change);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_CHANGES_H_
