#include "server/rpc/call.h"

#include <grpc/grpc.h>
#include <malloc.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/lookup/errors.h"

namespace ablate::rpc {

void EndNow(grpc::CallbackServerContext* context, const absl::Status& status) {
  const grpc::Status end = lookup::ToGrpc(status);
  grpc_call_cancel_with_status(context->c_call(), static_cast<grpc_status_code>(end.error_code()),
                               end.error_message().c_str(), nullptr);
}

absl::Status TooSlow(const Pace& pace) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the client reads the stream too slowly; expected ", pace.Terms()));
}

absl::StatusOr<std::shared_ptr<void>> ByteBudget::Take(size_t bytes, const std::string& user) {
  {
    MutexLock lock(&mutex_);
    if (used_ + bytes > max_.total) return lookup::TooManyAtOnce(what_, max_);
    if (!user.empty()) {
      size_t& has = of_users_[user];
      if (has + bytes > max_.per_user) return lookup::TooManyOfUser(what_, user, has, max_);
      has += bytes;
    }
    used_ += bytes;
  }
  return std::shared_ptr<void>(this, [this, bytes, user](void*) { GiveBack(bytes, user); });
}

void ByteBudget::GiveBack(size_t bytes, const std::string& user) {
  MutexLock lock(&mutex_);
  used_ -= bytes;
  const auto found = of_users_.find(user);
  if (found == of_users_.end()) return;
  found->second -= bytes;
  if (found->second == 0) of_users_.erase(found);
}

void GiveMemoryBack() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

grpc::ServerUnaryReactor* Answer(WorkPool* pool, grpc::CallbackServerContext* context,
                                 std::function<absl::Status()> work) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::Status accepted = pool->TryPost(
      [context, reactor, work = std::move(work)] {
        reactor->Finish(context->IsCancelled() ? grpc::Status::CANCELLED : lookup::ToGrpc(work()));
      },
      pool->UserOf(*context));
  if (!accepted.ok()) reactor->Finish(lookup::ToGrpc(accepted));
  return reactor;
}

}  // namespace ablate::rpc
