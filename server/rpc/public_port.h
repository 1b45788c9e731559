// The port for clients on the network: TLS, calls with tokens, and limits on what anybody can make
// the server hold or do. docs/adr/0010 says why gRPC does not listen there itself.
#ifndef ABLATE_SERVER_RPC_PUBLIC_PORT_H_
#define ABLATE_SERVER_RPC_PUBLIC_PORT_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/mutex.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/connection_table.h"
#include "server/rpc/frame_gate.h"
#include "server/rpc/listener.h"
#include "server/rpc/tls_context.h"
#include "server/rpc/tls_pipe.h"

namespace ablate::rpc {

struct PublicPortOptions {
  std::string address;            // "HOST:PORT", "[HOST]:PORT" for IPv6; port 0: one that is free
  std::string certificate_chain;  // PEM, the server's own first
  std::string private_key;        // PEM
  // Asked for every call before any of its message is read. A call that it accepts lets its
  // connection in, so it should accept none without a token, not even for health.
  Judge judge;
  // Told in a sentence, from the port's thread and at most every kSayHangUpsEvery, whom the port
  // hung up on and why: a log that everybody could fill would be a weapon. May be empty.
  std::function<void(const std::string&)> on_hang_ups;
};

// Listens, ends TLS, and hands gRPC one end of a pair of sockets for each connection. One thread
// does all of it. The methods are for one thread, but for UseCertificate; the table is thread-safe.
class PublicPort {
 public:
  // Binds the address. INVALID_ARGUMENT for one that can't be, or for a certificate or key that
  // can't be read or do not belong together; UNAVAILABLE if listening fails.
  static absl::StatusOr<std::unique_ptr<PublicPort>> Listen(const PublicPortOptions& options);
  // Cuts all connections off. The gRPC server should have been shut down before.
  ~PublicPort();
  PublicPort(const PublicPort&) = delete;
  PublicPort& operator=(const PublicPort&) = delete;

  // Sets what a server needs that serves this port alone: limits, and where its connections come
  // from. Before BuildAndStart.
  void Prepare(grpc::ServerBuilder* builder);
  // Lets clients in: after BuildAndStart.
  void Serve();
  // Closes the port for whoever is new; those who are here stay. Before the gRPC server's Shutdown.
  void StopAccepting();
  // Serves who connects from now on with another certificate; who is here keeps the old one. Errors
  // as Listen's, and then the old one stays. Thread-safe.
  absl::Status UseCertificate(const std::string& certificate_chain, const std::string& private_key);
  int port() const { return port_; }

 private:
  // What the connections of one address share, and those of one user.
  struct Group {
    size_t connections = 0;
    size_t strangers = 0;  // of an address
    Rate calls;
    absl::Duration left;  // when the last of them ended
  };
  using Groups = std::map<std::string, Group>;
  struct Connection {
    std::string id;
    std::string peer;
    Group* address;
    Group* user = nullptr;  // of one that is no stranger's, and of one user
    absl::Duration let_in_by;
    absl::Duration due;  // when it gets a turn even if nothing happens
    bool stranger = true;
    std::unique_ptr<TlsPipe> pipe;
  };
  using Connections = std::vector<std::unique_ptr<Connection>>;  // the oldest first

  PublicPort(TlsContext context, process::FileDescriptor listener, process::FileDescriptor wake,
             int port, const PublicPortOptions& options);

  void Run();
  // Waits until something happens or is due; gives those a turn that it is about.
  void Turn();
  void AcceptWaiting(absl::Duration now);
  TlsSession NewSession();
  void Admit(process::FileDescriptor client, const Peer& peer, absl::Duration now);
  static Group& GroupOf(const std::string& name, absl::Duration now, Groups* groups);
  // Ends a stranger's connection where one more would be too many. False if there is none to end.
  bool MakeRoom(const Group& address, absl::Duration now);
  void NoteHangUp(const std::string& peer, absl::string_view why);
  void SayHangUps(absl::Duration now);
  void Pump(Connection* connection, absl::Duration now);
  // Counts a connection's calls with those of whom the table says it is.
  void NoteUser(Connection* connection, absl::Duration now);
  // The connection is no stranger's any more.
  void LetIn(Connection* connection);
  // Takes a connection out of its user's.
  static void LeaveUser(Connection* connection, absl::Duration now);
  // Ends what is late or has no pipe any more, and forgets whom nobody comes from or is.
  void Sweep(absl::Duration now);
  void End(Connection* connection, absl::Duration now);
  process::FileDescriptor ConnectToServer();
  void Wake() const;

  Mutex mutex_;
  TlsContext context_ ABSL_GUARDED_BY(mutex_);
  const process::FileDescriptor wake_;
  const int port_;
  const std::shared_ptr<ConnectionTable> table_;
  const std::shared_ptr<grpc::AuthMetadataProcessor> door_;
  const std::function<void(const std::string&)> on_hang_ups_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::atomic<bool> accepting_ = true;
  std::atomic<bool> stopping_ = false;
  // The thread's own.
  process::FileDescriptor listener_;
  Groups addresses_;
  Groups users_;
  Connections connections_;
  size_t strangers_ = 0;
  absl::Duration accept_after_;  // descriptors were short until then
  size_t hang_ups_ = 0;          // not said yet
  std::string last_hang_up_;
  absl::Duration said_hang_ups_;
  std::thread thread_;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_PUBLIC_PORT_H_
