// Tests addresses to listen on and to connect to.
#include "base/tcp.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace ablate::net {
namespace {

TEST(TcpTest, ListensOnAPortThatIsFree) {
  const auto listener = ListenTcp("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_GT(PortOf(listener->get()), 0);
}

TEST(TcpTest, RefusesAddressesThatCannotBe) {
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

TEST(TcpTest, SaysWhenAnAddressIsTaken) {
  const auto first = ListenTcp("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string taken = "127.0.0.1:" + std::to_string(PortOf(first->get()));
  const absl::Status status = ListenTcp(taken).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), "can't listen on " + taken + ": Address already in use");
}

}  // namespace
}  // namespace ablate::net
