// Tests where the client looks for the server.
#include "client/personal_server.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "base/socket_path.h"
#include "gtest/gtest.h"
#include "tests/test_folder.h"

namespace ablate::client {
namespace {

Environment Of(std::map<std::string, std::string> values) {
  return [values](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(FindHomeTest, GoesFromTheMostSpecificToTheUsual) {
  const std::map<std::string, std::string> all = {
      {"ABLATE_HOME", "/a"}, {"XDG_DATA_HOME", "/x"}, {"HOME", "/h"}};
  EXPECT_EQ(FindHome("/f/../g", Of(all))->folder, "/g");
  EXPECT_EQ(FindHome("", Of(all))->folder, "/a");
  EXPECT_EQ(FindHome("", Of({{"XDG_DATA_HOME", "/x"}, {"HOME", "/h"}}))->folder, "/x/ablate");
  EXPECT_EQ(FindHome("", Of({{"XDG_DATA_HOME", "x"}, {"HOME", "/h"}}))->folder,
            "/h/.local/share/ablate");
  EXPECT_EQ(FindHome("", Of({{"HOME", "/h"}}))->folder, "/h/.local/share/ablate");
  EXPECT_EQ(FindHome("", Of({})).status().message(),
            "no folder for the personal server: set ABLATE_HOME or HOME");
}

TEST(FindHomeTest, NamesTheServersFiles) {
  const absl::StatusOr<Home> home = FindHome("/a", Of({}));
  EXPECT_EQ(home->address_file, "/a/run/address");
  EXPECT_EQ(home->pid_file, "/a/run/ablated.pid");
  EXPECT_EQ(home->log_file, "/a/log/ablated.log");
}

TEST(FindServerTest, TakesAddressesOnThisMachineAndNamesOfLogins) {
  for (const char* address : {"unix:/s", "localhost:1", "127.0.0.1:1", "[::1]:1"}) {
    EXPECT_EQ(FindServer(Of({{"ABLATE_SERVER", address}}))->address, address);
  }
  EXPECT_EQ(FindServer(Of({{"ABLATE_SERVER", "example.org:1"}})).status().message(),
            "ABLATE_SERVER or --server: \"example.org:1\" is not a server; expected unix:PATH, "
            "localhost:PORT, personal, or the name of a login. A server on another machine needs "
            "`ablate login --join FILE` first.");
  EXPECT_EQ(FindServer(Of({{"ABLATE_SERVER", "box"}, {"HOME", "/none"}})).status().message(),
            "no server is named \"box\"; expected personal. `ablate login --join FILE` adds one.");
}

class HomesAddressTest : public ::testing::Test {
 protected:
  HomesAddressTest() { std::filesystem::create_directories(home_ + "/run"); }

  static void Announce(const std::string& home, const std::string& address) {
    std::ofstream(home + "/run/address") << address << "\n";
  }
  static absl::StatusOr<ServerAddress> Find(const std::string& home) {
    return FindServer(Of({{"ABLATE_HOME", home}}));
  }

  const TestFolder folder_;
  const std::string parent_ = folder_.path();
  const std::string home_ = parent_ + "/home";
};

TEST_F(HomesAddressTest, IsThereWhileAServerServes) {
  EXPECT_EQ(Find(home_).status(),
            absl::UnavailableError("no server runs in " + home_ + ": run `ablate up`"));
  Announce(home_, "unix:" + home_ + "/run/ablate.sock");
  EXPECT_EQ(Find(home_)->address, "unix:" + home_ + "/run/ablate.sock");
  Announce(home_, "elsewhere:1");
  EXPECT_TRUE(absl::IsUnavailable(Find(home_).status()));
}

TEST_F(HomesAddressTest, IsNotThereInACopiedOrMovedFolder) {
  Announce(home_, "unix:" + home_ + "/run/ablate.sock");
  std::filesystem::copy(home_, parent_ + "/copy", std::filesystem::copy_options::recursive);
  EXPECT_TRUE(absl::IsUnavailable(Find(parent_ + "/copy").status()));
  std::filesystem::create_directory_symlink(home_, parent_ + "/link");
  EXPECT_EQ(Find(parent_ + "/link")->address, "unix:" + home_ + "/run/ablate.sock");
}

TEST_F(HomesAddressTest, IsTheServersWhereThePathIsTooLongForASocket) {
  const std::string deep = home_ + "/" + std::string(110, 'd'), copy = deep + "-copy";
  std::filesystem::create_directories(deep + "/run");
  const std::string address =
      "unix:/run/user/1/" + process::SocketNameElsewhere(Home(deep), process::kClientSocket);
  Announce(deep, address);
  EXPECT_EQ(Find(deep)->address, address);
  std::filesystem::copy(deep, copy, std::filesystem::copy_options::recursive);
  EXPECT_EQ(Find(copy).status(),
            absl::UnavailableError("no server runs in " + copy + ": run `ablate up`"));
}

}  // namespace
}  // namespace ablate::client
