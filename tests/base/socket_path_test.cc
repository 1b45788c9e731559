// Tests SocketInRunFolder and SocketAddress.
#include "base/socket_path.h"

#include <gtest/gtest.h>

namespace ablate::process {
namespace {

TEST(SocketInRunFolderTest, HasNoPathThatIsTooLongForASocket) {
  const HomeFiles home("/h");
  const std::string longest(kMaxSocketPath - std::string("/h/run/").size(), 's');
  EXPECT_EQ(SocketInRunFolder(home, kClientSocket), "/h/run/ablate.sock");
  EXPECT_TRUE(SocketInRunFolder(home, longest).has_value());
  EXPECT_FALSE(SocketInRunFolder(home, longest + "s").has_value());
}

TEST(SocketNameElsewhereTest, DiffersBetweenHomes) {
  EXPECT_EQ(SocketNameElsewhere(HomeFiles("/a"), "s"), SocketNameElsewhere(HomeFiles("/a"), "s"));
  EXPECT_NE(SocketNameElsewhere(HomeFiles("/a"), "s"), SocketNameElsewhere(HomeFiles("/b"), "s"));
}

TEST(SocketAddressTest, WritesWhatIsNoPartOfAPathInAUriAsBytes) {
  EXPECT_EQ(SocketAddress("/home/a-b_c.d~e/run/ablate.sock"),
            "unix:/home/a-b_c.d~e/run/ablate.sock");
  EXPECT_EQ(SocketAddress("/a%20b c?d#e\nf\xc3\xbc"), "unix:/a%2520b%20c%3Fd%23e%0Af%C3%BC");
}

}  // namespace
}  // namespace ablate::process
