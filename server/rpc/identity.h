// Identifies the caller by what the port has established, and checks what callers may change.
#ifndef ABLATE_SERVER_RPC_IDENTITY_H_
#define ABLATE_SERVER_RPC_IDENTITY_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/string_ref.h"
#include "storage/access_store.h"

namespace ablate::rpc {

// Returns OK if programs of these releases, each MAJOR.MINOR.PATCH, work together: they have the
// same major version and are at most one minor release apart. Otherwise FAILED_PRECONDITION with
// the reason RELEASES_DIFFER, which names both and what to do.
absl::Status CheckReleases(absl::string_view server, absl::string_view caller);

// Returns the caller by the token of the call; UNAUTHENTICATED if the token isn't valid (any more).
// Without a token, through a port without credentials (the unix socket, which only the server's
// owner reaches), returns `owner` as an admin. Looks it up for each call, because gRPC has no place
// per call to keep it: what an AuthMetadataProcessor adds to the context applies to every call of
// the connection, whoever's. Never waits for the disk; the authenticator notes the use of tokens.
// As CheckReleases if the call's metadata name a release that doesn't work with this server's.
// `store` is null if nobody has tokens.
absl::StatusOr<storage::Caller> FindCaller(const grpc::ServerContextBase& context,
                                           const std::string& owner,
                                           const storage::AccessStore* store, absl::Time now);

// Returns the secret of exactly one "authorization: Bearer SECRET". UNAUTHENTICATED names the
// problem.
absl::StatusOr<absl::string_view> SecretIn(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

// Returns true for a caller through the unix socket.
bool IsLocal(const storage::Caller& caller);

// Returns OK for an admin and for the member who owns `resource`; otherwise PERMISSION_DENIED,
// which names the owner.
absl::Status CheckMayChange(const storage::Caller& caller, absl::string_view owner,
                            absl::string_view resource);

storage::Actor ActorOf(const storage::Caller& caller);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_IDENTITY_H_
