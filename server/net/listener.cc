#include "server/net/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/host.h"

namespace ablate::net {
namespace {

constexpr size_t kGroupBytes = 8;  // of an IPv6 address

absl::Status BadAddress(absl::string_view address, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("can't listen on ", address, ": ", why));
}

absl::Status CantListen(absl::string_view address) {
  return absl::UnavailableError(
      absl::StrCat("can't listen on ", address, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<process::FileDescriptor> ListenTcp(absl::string_view address) {
  const absl::StatusOr<text::HostPort> parts = text::ParseHostPort(address, /*least_port=*/0);
  if (!parts.ok()) return BadAddress(address, parts.status().message());
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(parts->host.text.c_str(), absl::StrCat(parts->port).c_str(), &hints, &found);
  if (failed != 0) return BadAddress(address, gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  process::FileDescriptor listener(
      socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  // A restarted server must not wait until its old connections have ended.
  if (!listener.open() ||
      setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
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

Peer PeerOf(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof(host), port,
              sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  if (address.ss_family != AF_INET6) return {absl::StrCat(host, ":", port), host};
  const in6_addr& bytes = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(&bytes);
  return {absl::StrCat("[", host, "]:", port),
          is_ipv4 ? host : std::string(reinterpret_cast<const char*>(&bytes), kGroupBytes)};
}

}  // namespace ablate::net
