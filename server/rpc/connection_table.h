// Who is connected to the public port, for calls that reach gRPC through a pair of sockets.
#ifndef ABLATE_SERVER_RPC_CONNECTION_TABLE_H_
#define ABLATE_SERVER_RPC_CONNECTION_TABLE_H_

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

namespace ablate::rpc {

// The header that names a call's connection. Its value is a secret of the server: with another's a
// client could stand for it.
inline constexpr absl::string_view kConnectionHeader = "ablate-connection";

// Thread-safe.
class ConnectionTable {
 public:
  // `on_let_in` is called, from any thread, when UserOf would say something else of a connection.
  explicit ConnectionTable(std::function<void()> on_let_in) : on_let_in_(std::move(on_let_in)) {}
  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  // Adds a stranger's connection and returns its id: 32 random characters.
  std::string Add(absl::string_view address);
  void Remove(const std::string& id);
  // Whose calls have been let in: nobody's, so that it is a stranger's, or of one that is gone;
  // one user's; or "", several users'.
  std::optional<std::string> UserOf(const std::string& id) const;
  // Lets a call of this user in. RESOURCE_EXHAUSTED, with the reason USER_LIMIT, if the connection
  // is a stranger's and would be one too many of the user's.
  absl::Status LetIn(const std::string& id, const std::string& user);
  // A call was refused. How many of this connection, of which none has been let in; 0 if one has.
  int CountRefused(const std::string& id);
  // The "ADDRESS:PORT" of a connection; none if it is none of these.
  std::optional<std::string> Find(const std::string& id) const;

 private:
  struct Connection {
    std::string address;
    std::optional<std::string> user = {};  // as UserOf says it
    int refused = 0;
  };

  const std::function<void()> on_let_in_;
  mutable Mutex mutex_;
  std::map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
};

using CallMetadata = grpc::AuthMetadataProcessor::InputMetadata;
// Whose a call is that comes from `address`, by its metadata, or why it is refused. Must not block:
// gRPC 1.51 lets calls that come at once wait for a second now and then if asking may.
using Judge =
    std::function<absl::StatusOr<std::string>(const CallMetadata&, const std::string& address)>;

// Asks `judge` for every call, and lets the connections in whose calls it accepts. The last call
// that a stranger may make is told so. Calls without a connection of the table are refused with
// UNAUTHENTICATED.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeDoor(Judge judge,
                                                      std::shared_ptr<ConnectionTable> table);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_CONNECTION_TABLE_H_
