#include "server/rpc/identity.h"

#include <grpc/grpc_security_constants.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "grpcpp/security/auth_context.h"
#include "proto/metadata.h"
#include "proto/reflect/text.h"
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

struct Release {
  int major = 0, minor = 0;
};

std::optional<Release> ParseRelease(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  Release release;
  const bool valid = parts.size() == 3 && absl::SimpleAtoi(parts[0], &release.major) &&
                     absl::SimpleAtoi(parts[1], &release.minor);
  constexpr int kMost = 1'000'000;
  const bool sane =
      release.major >= 0 && release.minor >= 0 && release.major < kMost && release.minor < kMost;
  return valid && sane ? std::optional(release) : std::nullopt;
}

}  // namespace

absl::Status CheckReleases(absl::string_view server, absl::string_view caller) {
  const auto ours = ParseRelease(server), theirs = ParseRelease(caller);
  if (!theirs.has_value() || !ours.has_value()) {
    return lookup::InvalidField(kRelease, absl::StrCat(reflect::Quoted(caller), " isn't a release"),
                                "MAJOR.MINOR.PATCH, such as 0.2.0");
  }
  const bool older = std::tie(theirs->major, theirs->minor) < std::tie(ours->major, ours->minor);
  const int apart = std::abs(theirs->minor - ours->minor);
  if (theirs->major == ours->major && apart <= 1) return absl::OkStatus();
  return lookup::WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "the server is of release ", server, ", this program of release ", caller,
          "; they work together if they are at most one minor release apart. ",
          older ? "Install a newer program"
                : "Upgrade the server; a personal one restarts by `ablate down` and `ablate up`")),
      "RELEASES_DIFFER");
}

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
  const auto release = context.client_metadata().find(kRelease);
  if (release != context.client_metadata().end()) {
    RETURN_IF_ERROR(
        CheckReleases(ABLATE_VERSION, {release->second.data(), release->second.size()}));
  }
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
