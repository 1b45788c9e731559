// Authenticates the public port's calls: finds the token of a call and whether its user may call
// the method.
#ifndef ABLATE_SERVER_RPC_AUTHENTICATOR_H_
#define ABLATE_SERVER_RPC_AUTHENTICATOR_H_

#include <functional>
#include <string>

#include "ablate/v1/access.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/net/authentication_log.h"
#include "server/net/connection_table.h"
#include "storage/access_store.h"

namespace ablate::rpc {

// Returns the access rule of the method at `path`, "/package.Service/Method": the method's option
// (access). For gRPC's own health and reflection services: any role, and readers. UNIMPLEMENTED if
// none of our programs has such a method, and for Health.Watch; INTERNAL if it has no rule.
absl::StatusOr<v1::Access> RuleOf(absl::string_view path);

// Returns OK if the role suffices; otherwise PERMISSION_DENIED with the role that is needed. Rules
// for the unix socket only are refused to every role.
absl::Status CheckRole(const v1::Access& rule, storage::Role role, absl::string_view path);

// Accepts a call if it has exactly one "authorization: Bearer TOKEN" of a user whose role the
// method's rule admits, before any of its message is read. UNAUTHENTICATED and PERMISSION_DENIED
// name the problem and are noted in the log; the latter is of a known user. KEDA's external scaler
// checks the tokens in its requests itself. Reads memory only. Thread-safe.
class Authenticator {
 public:
  // `store` and `log` must outlive this object.
  Authenticator(const storage::AccessStore* store, net::AuthenticationLog* log,
                std::function<absl::Time()> now);

  // Has the signature of AuthenticateCall (connection_table.h).
  net::CheckedCall Check(const net::CallMetadata& metadata, const std::string& address) const;

 private:
  const storage::AccessStore* const store_;
  net::AuthenticationLog* const log_;
  const std::function<absl::Time()> now_;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_AUTHENTICATOR_H_
