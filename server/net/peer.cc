#include "server/net/peer.h"

#include <netdb.h>
#include <netinet/in.h>

#include "absl/strings/str_cat.h"

namespace ablate::net {
namespace {

constexpr size_t kGroupBytes = 8;  // of an IPv6 address

}  // namespace

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
