// A listening socket for TCP, and who comes to it.
#ifndef ABLATE_SERVER_RPC_LISTENER_H_
#define ABLATE_SERVER_RPC_LISTENER_H_

#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace ablate::rpc {

// Listens on "HOST:PORT" or "[HOST]:PORT", the first address that HOST has; does not block.
// INVALID_ARGUMENT for an address that can't be, UNAVAILABLE if listening fails.
absl::StatusOr<process::FileDescriptor> ListenTcp(absl::string_view address);
// The port that a socket is bound to.
int PortOf(int socket);

struct Peer {
  std::string address;  // with its port
  // What counts as one address: IPv4 whole, and of IPv6 the 64 bits that one household gets.
  std::string group;
};
Peer PeerOf(const sockaddr_storage& address, socklen_t size);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_LISTENER_H_
