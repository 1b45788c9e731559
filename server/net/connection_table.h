// Tracks who is connected to the public port, for calls that reach gRPC through a pair of sockets.
#ifndef ABLATE_SERVER_NET_CONNECTION_TABLE_H_
#define ABLATE_SERVER_NET_CONNECTION_TABLE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/server_context.h"

namespace ablate::net {

// The header that names a call's connection. Its value is a secret of the server: a client that
// knew another connection's could act as that one.
inline constexpr absl::string_view kConnectionHeader = "ablate-connection";

// Maps each connection's id to its address and user. Thread-safe.
class ConnectionTable {
 public:
  // `on_let_in` is called, from any thread, when UserOf's result changes for a connection.
  explicit ConnectionTable(std::function<void()> on_let_in) : on_let_in_(std::move(on_let_in)) {}
  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  // Adds an unauthenticated connection and returns its id: 32 random characters.
  std::string Add(absl::string_view address);
  void Remove(const std::string& id);
  // Returns the user whose tokens the calls of this connection had; "" if of several users; nothing
  // if no call had a valid one (the connection is unauthenticated) or the connection is gone.
  std::optional<std::string> UserOf(const std::string& id) const;
  // Notes a call with this user's token. RESOURCE_EXHAUSTED with the reason USER_LIMIT if the
  // connection is unauthenticated and the user has the maximum of connections.
  absl::Status LetIn(const std::string& id, const std::string& user);
  // Counts a refused call. Returns the number of refused calls of this connection; 0 if one of its
  // calls had a valid token.
  int CountRefused(const std::string& id);
  // Returns the "ADDRESS:PORT" of a connection; nothing if it isn't in the table.
  std::optional<std::string> AddressOf(const std::string& id) const;

 private:
  struct Connection {
    std::string address;
    std::optional<std::string> user = {};  // as UserOf returns it
    int refused = 0;
  };

  const std::function<void()> on_let_in_;
  mutable Mutex mutex_;
  std::map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
};

using CallMetadata = grpc::AuthMetadataProcessor::InputMetadata;

struct CheckedCall {
  std::string user;     // whose valid token the call has; empty if it has none
  absl::Status status;  // OK if the call may go on
};
// Checks a call from `address` by its metadata. Must not block: if it may, gRPC 1.51 sometimes
// delays calls that arrive together by a second.
using AuthenticateCall =
    std::function<CheckedCall(const CallMetadata&, const std::string& address)>;

// Returns a processor that asks `authenticate` about every call and accepts the connections of
// calls with a valid token, also if it refuses these calls. The error of an unauthenticated peer's
// last permitted call says so. Calls without a connection in the table get UNAUTHENTICATED.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallAuthenticator(
    AuthenticateCall authenticate, std::shared_ptr<ConnectionTable> table);

}  // namespace ablate::net

#endif  // ABLATE_SERVER_NET_CONNECTION_TABLE_H_
