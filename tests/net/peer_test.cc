// Tests grouping of connections by address.
#include "server/net/peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace ablate::net {
namespace {

Peer V6(const char* address) {
  sockaddr_storage storage = {};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(7);
  EXPECT_EQ(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
  return PeerOf(storage, sizeof(v6));
}

Peer V4(const char* address) {
  sockaddr_storage storage = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(7);
  EXPECT_EQ(inet_pton(AF_INET, address, &v4.sin_addr), 1);
  return PeerOf(storage, sizeof(v4));
}

TEST(PeerTest, CountsAHouseholdsIpv6AddressesAsOne) {
  EXPECT_EQ(V6("2001:db8::1").address, "[2001:db8::1]:7");
  EXPECT_EQ(V6("2001:db8::1").group, V6("2001:db8::ffff:1").group);
  EXPECT_NE(V6("2001:db8::1").group, V6("2001:db8:0:1::1").group);
}

TEST(PeerTest, CountsIpv4AddressesOneByOne) {
  EXPECT_EQ(V4("10.0.0.1").address, "10.0.0.1:7");
  EXPECT_NE(V4("10.0.0.1").group, V4("10.0.0.2").group);
  EXPECT_NE(V6("::ffff:10.0.0.1").group, V6("::ffff:10.0.0.2").group);
}

}  // namespace
}  // namespace ablate::net
