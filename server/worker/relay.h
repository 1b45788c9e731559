// Relays TCP connections to one server, for workers on machines without a route to it.
#ifndef ABLATE_SERVER_WORKER_RELAY_H_
#define ABLATE_SERVER_WORKER_RELAY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/tcp.h"

namespace ablate::worker {

// Buffer of one connection in each direction.
inline constexpr size_t kRelayBytes = 64 << 10;

struct RelayOptions {
  std::string listen;  // "HOST:PORT", "[HOST]:PORT" for IPv6; port 0: any free one
  std::string to;      // "HOST:PORT" of the server, for messages
  // Returns the endpoints of the server. It may block: Listen calls it, and after failed connects
  // another thread does, which may outlive the relay.
  std::function<absl::StatusOr<std::vector<net::Endpoint>>()> resolve;
  // Receives a sentence about connections that are closed or wait, at most once a minute for each
  // reason. Called on the thread of Listen or Run.
  std::function<void(const std::string&)> on_trouble;
  size_t max_connections = 4096;
  absl::Duration connect_timeout = absl::Seconds(10);  // shared by the endpoints
  // Without it, clients that take nothing or never end could hold all connections.
  absl::Duration client_timeout = absl::Minutes(1);
  absl::Duration resolve_every = absl::Seconds(10);  // at most, and only after failed connects
};

// Passes the bytes of accepted connections to the server and back, unchanged, and the end of each
// direction. Reads at most kRelayBytes ahead of the receiver in each direction. Not thread-safe.
//
// Closes a connection if
// - the server can't be reached, or an end resets it;
// - bytes wait for the client, and it has taken none for a minute;
// - the client doesn't end within a minute of the server's end.
class Relay {
 public:
  // Binds the address. INVALID_ARGUMENT if it is invalid, UNAVAILABLE if listening fails. A server
  // that can't be resolved is only reported: failed connections resolve it again.
  static absl::StatusOr<std::unique_ptr<Relay>> Listen(RelayOptions options);
  int port() const { return net::PortOf(listener_.get()); }
  // Relays until the descriptor `stop` can be read, then closes all connections. INTERNAL if the
  // kernel can't watch descriptors. Call it once.
  absl::Status Run(int stop);

 private:
  using Endpoints = std::vector<net::Endpoint>;
  // One direction of a connection.
  struct Flow {
    std::string held;     // read, not yet taken by the receiver
    uint64_t sent = 0;    // bytes
    bool ended = false;   // the sender sends no more
    bool broken = false;  // because it reset the connection
    bool done = false;    // the receiver has been told of the end, or is gone
  };
  struct Connection {
    process::FileDescriptor client, server;
    bool connected = false;
    size_t tried = 0;                               // endpoints
    absl::Duration due = absl::InfiniteDuration();  // in timers_
    Flow to_server, to_client;
  };

  Relay(RelayOptions options, process::FileDescriptor listener);
  bool Watch(int descriptor, uint64_t id, uint32_t events);
  // Waits until something happens or is due. Returns false once `stop` can be read.
  bool Turn();
  void Accept(absl::Duration now);
  // Starts to connect to the next endpoint. After the last, ends the connection; `error` is the
  // errno of the endpoint before.
  void Connect(uint64_t id, int error, absl::Duration now);
  // Completes the connect, or moves what can be moved.
  void Advance(uint64_t id, absl::Duration now);
  // Returns true if it stopped only to give other connections a turn.
  bool Move(int from, int to, Flow* flow);
  void SetDue(uint64_t id, absl::Duration due);
  void End(uint64_t id);
  // Starts to resolve the server, unless that was done a short time ago.
  void ResolveAgain(absl::Duration now);
  void UseResolved(absl::StatusOr<Endpoints> resolved);
  void Report(const std::string& trouble);

  const RelayOptions options_;
  const process::FileDescriptor listener_, epoll_;
  Endpoints endpoints_;
  std::future<absl::StatusOr<Endpoints>> resolving_;
  absl::Duration resolve_after_;
  std::map<uint64_t, Connection> connections_;
  uint64_t last_id_;
  std::set<uint64_t> again_;                              // connections with more to move
  std::set<std::pair<absl::Duration, uint64_t>> timers_;  // connections by when they are due
  absl::Duration accept_at_ = absl::InfiniteDuration();   // when clients may wait
  std::map<std::string, absl::Duration> reported_;        // when, by trouble
  std::array<char, kRelayBytes> buffer_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_RELAY_H_
