#include "server/service/changes.h"

#include <spdlog/spdlog.h>

#include "absl/time/clock.h"
#include "server/rpc/identity.h"

namespace ablate::service {

absl::StatusOr<storage::Caller> Backend::FindCaller(const grpc::ServerContextBase& context) const {
  return rpc::FindCaller(context, owner, sharing == nullptr ? nullptr : &sharing->store(),
                         absl::Now());
}

absl::Status MakeChange(const Backend& backend, const grpc::ServerContextBase& context,
                        absl::string_view method, Change change) {
  const auto caller = backend.FindCaller(context);
  if (!caller.ok()) return caller.status();
  std::string resource;
  const absl::Status made = change(*caller, &resource);
  if (backend.sharing == nullptr || !backend.sharing->store().HasUsers()) return made;
  storage::Audit audit;
  audit.time = absl::Now();
  audit.user = caller->user;
  audit.token = caller->token;
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
