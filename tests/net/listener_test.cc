// Tests addresses to listen on, and grouping of connections by address.
#include "server/net/listener.h"

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

TEST(ListenerTest, ListensOnAPortThatIsFree) {
  const auto listener = ListenTcp("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_GT(PortOf(listener->get()), 0);
}

TEST(ListenerTest, RefusesAddressesThatCannotBe) {
  const std::pair<const char*, const char*> cases[] = {
      {"localhost",
       "can't listen on localhost: without a port: HOST:PORT, such as box.example.org:7433"},
      {"::1:7", "can't listen on ::1:7: an IPv6 address with a port needs brackets: [::1]:7433"},
      {"127.0.0.1:", "can't listen on 127.0.0.1:: the port is a number from 0 to 65535"},
  };
  for (const auto& [address, message] : cases) {
    const absl::Status status = ListenTcp(address).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address;
    EXPECT_EQ(status.message(), message);
  }
}

TEST(ListenerTest, SaysWhenAnAddressIsTaken) {
  const auto first = ListenTcp("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string taken = "127.0.0.1:" + std::to_string(PortOf(first->get()));
  const absl::Status status = ListenTcp(taken).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), "can't listen on " + taken + ": Address already in use");
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
