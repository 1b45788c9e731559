// Names the peers of accepted connections.
#ifndef ABLATE_SERVER_NET_PEER_H_
#define ABLATE_SERVER_NET_PEER_H_

#include <sys/socket.h>

#include <string>

namespace ablate::net {

struct Peer {
  std::string address;  // with its port
  // Key of the limits per address: a whole IPv4 address; of IPv6 the 64 bits that one household
  // gets.
  std::string group;
};
Peer PeerOf(const sockaddr_storage& address, socklen_t size);

}  // namespace ablate::net

#endif  // ABLATE_SERVER_NET_PEER_H_
