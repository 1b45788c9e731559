#include "server/rpc/identity.h"

#include <grpc/grpc_security_constants.h>

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "grpcpp/security/auth_context.h"
#include "server/lookup/errors.h"

namespace ablate::rpc {
namespace {

constexpr char kAuthorization[] = "authorization";
constexpr absl::string_view kBearer = "Bearer ";
// gRPC's name for the security of a port without credentials.
constexpr absl::string_view kInsecure = "insecure";

// Returns true if the call came through a port without credentials.
bool IsOfUnixSocket(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) return true;
  const auto types = auth->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return types.empty() || (types.size() == 1 && types[0] == grpc::string_ref(kInsecure.data()));
}

}  // namespace

absl::StatusOr<absl::string_view> SecretIn(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  const size_t count = metadata.count(kAuthorization);
  if (count == 0) {
    return absl::UnauthenticatedError(
        "the call has no token. Run `ablate login` with a join file from this server's admin");
  }
  if (count > 1) return absl::UnauthenticatedError("authorization: given twice; expected once");
  const grpc::string_ref& value = metadata.find(kAuthorization)->second;
  absl::string_view secret(value.data(), value.size());
  // The scheme is case-insensitive (RFC 9110, section 11.1).
  if (absl::StartsWithIgnoreCase(secret, kBearer)) return secret.substr(kBearer.size());
  return absl::UnauthenticatedError("authorization: wrong form; expected \"Bearer TOKEN\"");
}

absl::StatusOr<storage::Caller> FindCaller(const grpc::ServerContextBase& context,
                                           const std::string& owner,
                                           const storage::AccessStore* store, absl::Time now) {
  const bool has_token = context.client_metadata().count(kAuthorization) > 0;
  if (!has_token && IsOfUnixSocket(context)) {
    return storage::Caller{owner, storage::Role::kAdmin, ""};
  }
  ASSIGN_OR_RETURN(const auto secret, SecretIn(context.client_metadata()));
  if (store == nullptr) return absl::UnauthenticatedError("this server has no tokens");
  return store->Identify(secret, now);
}

bool IsLocal(const storage::Caller& caller) { return caller.token.empty() && !caller.user.empty(); }

absl::Status CheckMayChange(const storage::Caller& caller, absl::string_view owner,
                            absl::string_view resource) {
  if (caller.role == storage::Role::kAdmin) return absl::OkStatus();
  if (caller.role == storage::Role::kMember && caller.user == owner) return absl::OkStatus();
  return lookup::WithReason(
      absl::PermissionDeniedError(
          absl::StrCat(resource, " is ", owner, "'s: only ", owner, " or an admin may change it")),
      "NOT_YOURS");
}

storage::Actor ActorOf(const storage::Caller& caller) { return {caller.user, caller.token}; }

}  // namespace ablate::rpc
