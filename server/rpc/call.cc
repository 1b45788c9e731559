#include "server/rpc/call.h"

#include <grpc/grpc.h>
#include <malloc.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/errors.h"
#include "server/rpc/limits.h"

namespace ablate::rpc {

absl::Status TooBusy() {
  return absl::ResourceExhaustedError(absl::StrCat("the server is busy: ", kMaxWaitingCalls,
                                                   " calls wait already; try again later"));
}

void EndNow(grpc::CallbackServerContext* context, const absl::Status& status) {
  const grpc::Status end = ToGrpc(status);
  grpc_call_cancel_with_status(context->c_call(), static_cast<grpc_status_code>(end.error_code()),
                               end.error_message().c_str(), nullptr);
}

absl::Status TooSlow(const Pace& pace) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the client takes what it is sent too slowly: it must take ", pace.Terms()));
}

std::shared_ptr<void> ByteBudget::Take(size_t bytes) {
  size_t used = used_;
  do {
    if (used + bytes > bytes_) return nullptr;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return {this, [this, bytes](void*) { used_ -= bytes; }};
}

void GiveMemoryBack() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
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

}  // namespace ablate::rpc
