// Who is connected to the public port, for calls that reach gRPC through a pair of sockets.
#ifndef ABLATE_SERVER_RPC_CONNECTION_TABLE_H_
#define ABLATE_SERVER_RPC_CONNECTION_TABLE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/server_context.h"
#include "sync/mutex.h"

namespace ablate::rpc {

// The header that names a call's connection. Its value is a secret of the server: with another's a
// client could stand for it.
inline constexpr absl::string_view kConnectionHeader = "ablate-connection";

// Thread-safe.
class ConnectionTable {
 public:
  // `on_let_in` is called, from any thread, when a connection is no stranger's any more.
  explicit ConnectionTable(std::function<void()> on_let_in) : on_let_in_(std::move(on_let_in)) {}
  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  // Adds a stranger's connection and returns its id: 32 random characters.
  std::string Add(absl::string_view address);
  void Remove(const std::string& id);
  bool IsStranger(const std::string& id) const;
  bool Contains(const std::string& id) const;
  void LetIn(const std::string& id);
  // Where a call comes from, "ADDRESS:PORT"; empty if it did not come through the public port.
  std::string AddressOf(const grpc::ServerContextBase& context) const;

 private:
  struct Connection {
    std::string address;
    bool stranger = true;
  };

  const std::function<void()> on_let_in_;
  mutable Mutex mutex_;
  std::map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
};

// Asks `inner` for every call, and lets the connections in whose calls it accepts. Calls without
// a connection of the table are refused with UNAUTHENTICATED.
std::shared_ptr<grpc::AuthMetadataProcessor> LettingIn(
    std::shared_ptr<grpc::AuthMetadataProcessor> inner, std::shared_ptr<ConnectionTable> table);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_CONNECTION_TABLE_H_
