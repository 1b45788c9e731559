// The door of the public port: which token a call has, and whether its user may call the method.
#ifndef ABLATE_SERVER_RPC_AUTHENTICATOR_H_
#define ABLATE_SERVER_RPC_AUTHENTICATOR_H_

#include <functional>
#include <string>

#include "ablate/v1/access.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/connection_table.h"
#include "server/rpc/door_log.h"
#include "storage/access_store.h"

namespace ablate::rpc {

// The rule of a method by its path, "/package.Service/Method": the option (access) beside it, and
// for health and reflection, which are gRPC's own, any role and readers. UNIMPLEMENTED if no
// program of ours has such a method, and for Health.Watch; INTERNAL if it has no rule.
absl::StatusOr<v1::Access> RuleOf(absl::string_view path);

// PERMISSION_DENIED, with what is needed, unless the role is enough. Rules that are for the unix
// socket alone are refused to every role.
absl::Status CheckRole(const v1::Access& rule, storage::Role role, absl::string_view path);

// Lets a call in that has exactly one "authorization: Bearer TOKEN" of a user whose role the
// method's rule lets in, before anything of its message is read. UNAUTHENTICATED and
// PERMISSION_DENIED say what is wrong, and are noted in the log. Looks into memory alone.
// Thread-safe.
class Authenticator {
 public:
  // `store` and `log` outlive it.
  Authenticator(const storage::AccessStore* store, DoorLog* log, std::function<absl::Time()> now);

  // The user whose call it is. A Judge (connection_table.h).
  absl::StatusOr<std::string> Check(const CallMetadata& metadata, const std::string& address) const;

 private:
  const storage::AccessStore* const store_;
  DoorLog* const log_;
  const std::function<absl::Time()> now_;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_AUTHENTICATOR_H_
