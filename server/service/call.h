// Answers unary calls without blocking a reaction.
#ifndef ABLATE_SERVER_SERVICE_CALL_H_
#define ABLATE_SERVER_SERVICE_CALL_H_

#include <functional>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/work_pool.h"

namespace ablate::service {

// Does `work` on the pool, unless the call was cancelled or ran past its deadline before it began,
// and finishes the call with its status. Request and response of the call live until then.
grpc::ServerUnaryReactor* Answer(WorkPool* pool, grpc::CallbackServerContext* context,
                                 std::function<absl::Status()> work);

// The error of a call that came while too many waited.
absl::Status TooBusy();

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_CALL_H_
