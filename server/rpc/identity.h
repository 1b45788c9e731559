// Who calls: what the port that a call came through has found out, and what callers may change.
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

// Who calls, by the token that the call brings; UNAUTHENTICATED if that is none, any more. Without
// a token, through a port that has no credentials, which is the unix socket that only the server's
// owner reaches: `owner`, an admin. Of each call anew, for gRPC has no place to keep it: what an
// AuthMetadataProcessor adds to the context is there for every call of the connection, whose ever.
// Never waits for the disk: that the token is used is noted at the door.
// `store` is null where nobody has tokens.
absl::StatusOr<storage::Caller> FindCaller(const grpc::ServerContextBase& context,
                                           const std::string& owner,
                                           const storage::AccessStore* store, absl::Time now);

// The secret of "authorization: Bearer SECRET", exactly one. UNAUTHENTICATED says what is wrong.
absl::StatusOr<absl::string_view> SecretIn(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

// Whether it came through the unix socket.
bool IsLocal(const storage::Caller& caller);

// OK for an admin, and for the member whose it is; PERMISSION_DENIED, saying whose `resource` is.
absl::Status CheckMayChange(const storage::Caller& caller, absl::string_view owner,
                            absl::string_view resource);

storage::Actor ActorOf(const storage::Caller& caller);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_IDENTITY_H_
