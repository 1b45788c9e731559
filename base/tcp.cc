#include "base/tcp.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace ablate::net {
namespace {

absl::Status BadAddress(absl::string_view address, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("can't listen on ", address, ": ", why));
}

absl::Status CantListen(absl::string_view address) {
  return absl::UnavailableError(
      absl::StrCat("can't listen on ", address, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::vector<Endpoint>> Resolve(const text::HostPort& server) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int failed =
      getaddrinfo(server.host.text.c_str(), absl::StrCat(server.port).c_str(), &hints, &first);
  if (failed != 0) return absl::UnavailableError(gai_strerror(failed));
  std::vector<Endpoint> found;
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    Endpoint& endpoint = found.emplace_back();
    endpoint.size = each->ai_addrlen;
    std::memcpy(&endpoint.address, each->ai_addr, each->ai_addrlen);
  }
  freeaddrinfo(first);
  return found;
}

absl::StatusOr<process::FileDescriptor> ListenTcp(absl::string_view address) {
  const absl::StatusOr<text::HostPort> parts = text::ParseHostPort(address, /*least_port=*/0);
  if (!parts.ok()) return BadAddress(address, parts.status().message());
  const absl::StatusOr<std::vector<Endpoint>> found = Resolve(*parts);
  if (!found.ok()) return BadAddress(address, found.status().message());
  const Endpoint& at = found->front();
  process::FileDescriptor listener(
      socket(at.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  // A restarted server must not wait until its old connections have ended.
  if (!listener.open() ||
      setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    return CantListen(address);
  }
  return listener;
}

int PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace ablate::net
