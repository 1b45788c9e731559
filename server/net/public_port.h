// Serves clients on the network: TLS, calls with tokens, and limits on what anybody can make the
// server hold or do. docs/adr/0010 says why gRPC does not listen there itself.
#ifndef ABLATE_SERVER_NET_PUBLIC_PORT_H_
#define ABLATE_SERVER_NET_PUBLIC_PORT_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/mutex.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/server_builder.h"
#include "server/net/connection_table.h"
#include "server/net/frame_gate.h"
#include "server/net/peer.h"
#include "server/net/tls_context.h"
#include "server/net/tls_pipe.h"

namespace ablate::net {

struct PublicPortOptions {
  std::string address;            // "HOST:PORT", "[HOST]:PORT" for IPv6; port 0: any free one
  std::string certificate_chain;  // PEM, the server's own certificate first
  std::string private_key;        // PEM
  // Called for every call before any of its message is read. A call with a user authenticates its
  // connection, so accept none without a token, not even for health.
  AuthenticateCall authenticate;
  // Receives a sentence that says which connections the port closed and why; called from the port's
  // thread, at most every kSayHangUpsEvery, so that attackers can't flood the log. May be empty.
  std::function<void(const std::string&)> on_hang_ups;
};

// Listens, terminates TLS, and hands gRPC one end of a pair of sockets for each connection, all on
// one thread. Call the methods from one thread, except UseCertificate; the table is thread-safe.
class PublicPort {
 public:
  // Binds the address. INVALID_ARGUMENT if it is invalid, or if the certificate or key can't be
  // read or do not belong together; UNAVAILABLE if listening fails.
  static absl::StatusOr<std::unique_ptr<PublicPort>> Listen(const PublicPortOptions& options);
  // Closes all connections. The gRPC server should have been shut down before.
  ~PublicPort();
  PublicPort(const PublicPort&) = delete;
  PublicPort& operator=(const PublicPort&) = delete;

  // Sets the limits and the source of connections of a gRPC server for this port alone. Call it
  // before BuildAndStart.
  void Prepare(grpc::ServerBuilder* builder);
  // Begins to accept clients. Call it after BuildAndStart.
  void Serve();
  // Stops accepting new connections; present ones stay. Call it before the gRPC server's Shutdown.
  void StopAccepting();
  // Serves new connections with another certificate; present ones keep the old one. Errors as
  // Listen's; then the old one stays. Thread-safe.
  absl::Status UseCertificate(const std::string& certificate_chain, const std::string& private_key);
  int port() const { return port_; }

 private:
  // Limits shared by the connections of one address, or of one user.
  struct Group {
    size_t connections = 0;
    size_t unauthenticated_peers = 0;  // unauthenticated connections of the address
    Rate calls;
    absl::Duration left;  // when the last of its connections ended
  };
  using Groups = std::map<std::string, Group>;
  struct Connection {
    std::string id;
    std::string peer;
    Group* address;
    Group* user = nullptr;  // its user's group, if authenticated for one user
    absl::Duration let_in_by;
    absl::Duration due = absl::InfiniteDuration();  // time of its next turn if nothing happens
    bool unauthenticated = true;
    short client_events = 0, server_events = 0;  // that epoll reports
    std::unique_ptr<TlsPipe> pipe;
  };
  using Connections = std::vector<std::unique_ptr<Connection>>;  // oldest first

  PublicPort(TlsContext context, process::FileDescriptor listener, process::FileDescriptor wake,
             process::FileDescriptor epoll, int port, const PublicPortOptions& options);

  void Run();
  // Waits until something happens or is due, and gives the connections concerned a turn.
  void Turn();
  // Waits for events or until `until`; adds the connections that have some to `ready`. Returns true
  // if the listener has.
  bool WaitForEvents(absl::Duration until, std::set<Connection*>* ready);
  void SetDue(Connection* connection, absl::Duration due);
  // Has epoll report these events of a descriptor as `of`, in place of `reported`; none: not even
  // that it hung up.
  void Watch(int descriptor, short events, void* of, short* reported) const;
  void AcceptWaiting(absl::Duration now);
  TlsSession NewSession();
  void Admit(process::FileDescriptor client, const Peer& peer, absl::Duration now);
  static Group& GroupOf(const std::string& name, absl::Duration now, Groups* groups);
  // Closes an unauthenticated connection if one more would be too many. Returns false if there is
  // none to close.
  bool MakeRoom(const Group& address, absl::Duration now);
  void NoteHangUp(const std::string& peer, absl::string_view why);
  void SayHangUps(absl::Duration now);
  void Pump(Connection* connection, absl::Duration now);
  // After a call was authenticated: has the table say whose each connection is.
  void NoteUsers(absl::Duration now);
  // Moves a connection to the limits of the user that the table names.
  void NoteUser(Connection* connection, absl::Duration now);
  // Marks the connection as authenticated.
  void LetIn(Connection* connection);
  // Removes a connection from its user's group.
  static void LeaveUser(Connection* connection, absl::Duration now);
  // Ends connections that are late or have no pipe left, and deletes groups without connections.
  void Sweep(absl::Duration now);
  void End(Connection* connection, absl::Duration now);
  process::FileDescriptor ConnectToServer();
  void Wake() const;

  Mutex mutex_;
  TlsContext context_ ABSL_GUARDED_BY(mutex_);
  const process::FileDescriptor wake_;
  const process::FileDescriptor epoll_;
  const int port_;
  const std::shared_ptr<ConnectionTable> table_;
  const std::shared_ptr<grpc::AuthMetadataProcessor> call_authenticator_;
  const std::function<void(const std::string&)> on_hang_ups_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::atomic<bool> accepting_ = true;
  std::atomic<bool> stopping_ = false;
  // Used by the port's thread only.
  process::FileDescriptor listener_;
  short listening_ = 0;  // its events that epoll reports
  Groups addresses_;
  Groups users_;
  Connections connections_;
  std::set<std::pair<absl::Duration, Connection*>> due_;  // connections that haven't ended
  bool ended_ = false;                                    // some connections have
  absl::Duration swept_;
  size_t unauthenticated_peers_ = 0;
  absl::Duration accept_after_;  // no accepting until then: descriptors were short
  size_t hang_ups_ = 0;          // closed connections not yet logged
  std::string last_hang_up_;
  absl::Duration said_hang_ups_;
  std::thread thread_;
};

}  // namespace ablate::net

#endif  // ABLATE_SERVER_NET_PUBLIC_PORT_H_
