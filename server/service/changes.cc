#include "server/service/changes.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/lookup/cancelled.h"
#include "server/rpc/identity.h"

namespace ablate::service {

absl::StatusOr<storage::Caller> Backend::FindCaller(const grpc::ServerContextBase& context) const {
  return rpc::FindCaller(context, owner, sharing == nullptr ? nullptr : &sharing->store(),
                         absl::Now());
}

lookup::View Backend::ViewOf(const storage::Caller& caller) const {
  return {store, {caller.user, caller.role == storage::Role::kAdmin}};
}

absl::StatusOr<lookup::View> Backend::FindView(const grpc::ServerContextBase& context) const {
  ASSIGN_OR_RETURN(const auto caller, FindCaller(context));
  return ViewOf(caller);
}

absl::StatusOr<lookup::View> Backend::FindView(grpc::ServerContextBase* context) const {
  absl::StatusOr<lookup::View> view = FindView(*context);
  if (view.ok()) view->call = context;
  return view;
}

grpc::ServerUnaryReactor* Backend::Answer(
    grpc::CallbackServerContext* context,
    std::function<absl::Status(const lookup::View&)> work) const {
  return rpc::Answer(pool, context, [this, context, work = std::move(work)] {
    const auto view = FindView(context);
    return view.ok() ? work(*view) : view.status();
  });
}

grpc::ServerUnaryReactor* Backend::AnswerByComparing(
    grpc::CallbackServerContext* context,
    std::function<absl::Status(const lookup::View&, const lookup::Cancelled& cancelled)> work) {
  return rpc::Answer(comparing, context, [this, context, work = std::move(work)] {
    ASSIGN_OR_RETURN(const auto view, FindView(context));
    rpc::LiveCall call(&comparisons, context);
    if (!call.accepted().ok()) return call.accepted();
    return work(view, [&call] { return call.ended(); });
  });
}

grpc::ServerUnaryReactor* Backend::AnswerChange(
    grpc::CallbackServerContext* context, std::string method,
    std::function<absl::Status(const storage::Caller&, std::string*)> work) const {
  return rpc::Answer(pool, context,
                     [this, context, method = std::move(method), work = std::move(work)] {
                       return MakeChange(*this, *context, method, work);
                     });
}

absl::Status MakeChange(const Backend& backend, const grpc::ServerContextBase& context,
                        absl::string_view method, Change change) {
  ASSIGN_OR_RETURN(const auto caller, backend.FindCaller(context));
  std::string resource;
  const absl::Status made = change(caller, &resource);
  if (backend.sharing == nullptr || !backend.sharing->store().HasUsers()) return made;
  storage::Audit audit;
  audit.time = absl::Now();
  audit.user = caller.user;
  audit.token = caller.token;
  audit.method = std::string(method);
  audit.resource = resource;
  audit.outcome = absl::StatusCodeToString(made.code());
  const absl::Status noted = backend.sharing->store().Record(audit);
  if (!noted.ok()) {
    spdlog::error("{} of {} by {} is not in the audit log: {}", audit.method, audit.resource,
                  audit.user, noted.ToString());
  }
  return made;
}

}  // namespace ablate::service
