// Listens for TCP connections and accepts them.
#ifndef ABLATE_SERVER_NET_LISTENER_H_
#define ABLATE_SERVER_NET_LISTENER_H_

#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace ablate::net {

// Listens on "HOST:PORT" or "[HOST]:PORT", at the first address of HOST; does not block.
// INVALID_ARGUMENT for an invalid address, UNAVAILABLE if listening fails.
absl::StatusOr<process::FileDescriptor> ListenTcp(absl::string_view address);
// Returns the port that a socket is bound to.
int PortOf(int socket);

struct Peer {
  std::string address;  // with its port
  // Key of the limits per address: a whole IPv4 address; of IPv6 the 64 bits that one household
  // gets.
  std::string group;
};
Peer PeerOf(const sockaddr_storage& address, socklen_t size);

}  // namespace ablate::net

#endif  // ABLATE_SERVER_NET_LISTENER_H_
