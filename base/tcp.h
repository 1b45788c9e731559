// Resolves addresses of servers, and listens for TCP connections.
#ifndef ABLATE_BASE_TCP_H_
#define ABLATE_BASE_TCP_H_

#include <sys/socket.h>

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/host.h"

namespace ablate::net {

struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// Returns the endpoints of a server, at least one, in the order in which to try them. UNAVAILABLE
// with the resolver's reason. It has no time limit: a name server that is down blocks for seconds.
// Thread-safe.
absl::StatusOr<std::vector<Endpoint>> Resolve(const text::HostPort& server);

// Listens on "HOST:PORT" or "[HOST]:PORT", at the first address of HOST; accepting does not block.
// INVALID_ARGUMENT for an invalid address, UNAVAILABLE if listening fails. Thread-safe.
absl::StatusOr<process::FileDescriptor> ListenTcp(absl::string_view address);
// Returns the port that a socket is bound to.
int PortOf(int socket);

}  // namespace ablate::net

#endif  // ABLATE_BASE_TCP_H_
