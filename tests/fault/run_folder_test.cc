// The folder by which others find the server, removed under it.
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;

TEST(RunFolderTest, EndsTheServerWhenItIsRemoved) {
  PersonalServer server;
  server.Up({"--lanes", "1"});
  const std::string experiment =
      server.Json({"submit", "-", "--json"},
                  SmallNames("hidden", 10000000, "seeds: {count: 1}\n"))["experiment"]["name"];
  const auto step = [&] {
    return server.Json({"runs", experiment, "--json"})["rows"][0]["step"].get<uint64_t>();
  };
  ASSERT_TRUE(Eventually([&] { return step() > 0; }));
  const uint64_t before = step();
  const std::vector<int> pids = {server.ServerPid(), server.WorkerPid(), server.AnalystPid()};
  std::filesystem::remove_all(server.home() + "/run");
  for (const int pid : pids) {
    ASSERT_GT(pid, 0);
    EXPECT_TRUE(Eventually([&] { return !PersonalServer::Lives(pid); })) << pid;
  }
  EXPECT_THAT(ReadFile(server.home() + "/log/ablated.log"),
              HasSubstr("nobody reaches this server"));
  server.Up({"--lanes", "1"});
  EXPECT_TRUE(Eventually([&] { return step() > before; }));
  EXPECT_EQ(server.Ablate({"down"}).exit_code, 0);
  EXPECT_EQ(server.ServerPid(), 0);
}

TEST(RunFolderTest, IsMendedWhereOnlyNamesAreMissing) {
  PersonalServer server;
  server.Up({"--lanes", "1"});
  const int pid = server.ServerPid();
  for (const std::string name : {"ablated.pid", "address"}) {
    std::filesystem::remove(server.home() + "/run/" + name);
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(server.home() + "/run/" + name); }))
        << name;
  }
  EXPECT_EQ(server.ServerPid(), pid);
  EXPECT_EQ(server.Ablate({"down"}).exit_code, 0);
  EXPECT_FALSE(PersonalServer::Lives(pid));
}

}  // namespace
}  // namespace ablate::e2e
