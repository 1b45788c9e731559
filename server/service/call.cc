// Answers unary calls without blocking a reaction.
#include "server/service/call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/errors.h"
#include "server/service/limits.h"

namespace ablate::service {

absl::Status TooBusy() {
  return absl::ResourceExhaustedError(absl::StrCat("the server is busy: ", kMostWaitingCalls,
                                                   " calls wait already; try again later"));
}

grpc::ServerUnaryReactor* Answer(WorkPool* pool, grpc::CallbackServerContext* context,
                                 std::function<absl::Status()> work) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const bool accepted = pool->TryPost([context, reactor, work = std::move(work)] {
    reactor->Finish(context->IsCancelled() ? grpc::Status::CANCELLED : ToGrpc(work()));
  });
  if (!accepted) reactor->Finish(ToGrpc(TooBusy()));
  return reactor;
}

}  // namespace ablate::service
