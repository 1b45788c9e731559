// Where the server is looked for.
#include "client/personal_server.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

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
            "ABLATE_SERVER or --server is \"example.org:1\"; allowed: unix:PATH, localhost:PORT, "
            "personal, or the name of a login (a server elsewhere needs one: `ablate login --join "
            "FILE`)");
  EXPECT_EQ(FindServer(Of({{"ABLATE_SERVER", "box"}, {"HOME", "/none"}})).status().message(),
            "no server is known as \"box\"; known: personal; `ablate login --join FILE` adds one");
}

TEST(FindServerTest, ReadsTheHomesAddress) {
  const std::filesystem::path parent = ::testing::TempDir();
  const std::string folder = parent / absl::StrCat("home-", getpid());
  std::filesystem::create_directories(folder + "/run");
  const Environment environment = Of({{"ABLATE_HOME", folder}});
  EXPECT_EQ(FindServer(environment).status(),
            absl::UnavailableError("no server runs in " + folder + ": run `ablate up`"));
  std::ofstream(folder + "/run/address") << "unix:/some/socket\n";
  EXPECT_EQ(FindServer(environment)->address, "unix:/some/socket");
  std::ofstream(folder + "/run/address") << "elsewhere:1\n";
  EXPECT_TRUE(absl::IsUnavailable(FindServer(environment).status()));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ablate::client
