// Tests that each host has one spelling, and that names invalid in certificates or addresses are
// refused.
#include "base/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status_message.h"

namespace ablate::text {
namespace {

using testing::HasSubstr;

TEST(HostTest, ReadsNamesAndAddressesInOneSpelling) {
  const std::vector<std::pair<std::string, Host>> cases = {
      {"Box.Example.org", {"box.example.org", ""}},
      {"localhost", {"localhost", ""}},
      {"3com.example", {"3com.example", ""}},
      {"xn--bcher-kva.example", {"xn--bcher-kva.example", ""}},
      {"10.0.0.7", {"10.0.0.7", std::string("\x0A\0\0\x07", 4)}},
      {"::1", {"::1", std::string(15, '\0') + '\x01'}},
      {"[0:0:0:0:0:0:0:1]", {"::1", std::string(15, '\0') + '\x01'}},
      {"2001:DB8::7",
       {"2001:db8::7", std::string("\x20\x01\x0D\xB8", 4) + std::string(11, '\0') + '\x07'}},
  };
  for (const auto& [text, expected] : cases) {
    const auto host = ParseHost(text);
    ASSERT_TRUE(host.ok()) << text << ": " << host.status();
    EXPECT_EQ(*host, expected) << text << " is " << host->text;
  }
}

TEST(HostTest, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "1 to 253 characters"},
      {std::string(254, 'a'), "1 to 253 characters"},
      {std::string("a\0b", 3), "1 to 253 characters"},
      {"10.0.0.256", "IPv4"},
      {"10.0.0", "IPv4"},
      {"10.0.0.07", "IPv4"},
      {"box.", "IPv4"},
      {"fe80::1%eth0", "IPv6"},
      {"[10.0.0.7]", "IPv6"},
      {"[]", "IPv6"},
      {"[", "IPv6"},
      {"a:b", "IPv6"},
      {"box..org", "DNS name"},
      {"-box.org", "DNS name"},
      {"box_1.org", "DNS name"},
      {"*.example.org", "DNS name"},
      {"b\xC3\xBC"
       "cher.example",
       "DNS name"},
      {std::string(64, 'a') + ".org", "DNS name"},
      {"a b", "DNS name"},
  };
  for (const auto& [text, what] : cases) {
    const auto host = ParseHost(text);
    EXPECT_EQ(host.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(Message(host.status()), HasSubstr(what)) << text;
  }
}

TEST(HostTest, ReadsAPortBesideAHost) {
  const auto name = ParseHostPort("box.example.org:7433");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->host.text, "box.example.org");
  EXPECT_EQ(name->port, 7433);
  const auto ipv6 = ParseHostPort("[::1]:65535");
  ASSERT_TRUE(ipv6.ok()) << ipv6.status();
  EXPECT_EQ(ipv6->host.text, "::1");
  EXPECT_EQ(ipv6->port, 65535);
}

TEST(HostTest, RefusesWhatIsNoHostAndPort) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"box", "without a port"},
      {"box:", "the port is"},
      {"box:0", "the port is"},
      {"box:65536", "the port is"},
      {"box:+1", "the port is"},
      {"box: 1", "the port is"},
      {"box:99999999999999999999", "the port is"},
      {"::1:7433", "needs brackets"},
      {":7433", "1 to 253"},
      {"unix:/run/x:1", "needs brackets"}};
  for (const auto& [text, what] : cases) {
    EXPECT_THAT(Message(ParseHostPort(text).status()), HasSubstr(what)) << text;
  }
}

}  // namespace
}  // namespace ablate::text
