// Tests the removal of the folder by which others find a running server.
#include <signal.h>

#include <filesystem>
#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;

// Returns the processes of the server and of both workers, which a new server may still be
// starting.
std::vector<int> Pids(const PersonalServer& server) {
  EXPECT_TRUE(Eventually([&] { return server.WorkerPid() > 0 && server.AnalystPid() > 0; }));
  return {server.ServerPid(), server.WorkerPid(), server.AnalystPid()};
}

void ExpectToEnd(const std::vector<int>& pids) {
  for (const int pid : pids) {
    ASSERT_GT(pid, 0);
    EXPECT_TRUE(Eventually([&] { return !PersonalServer::Lives(pid); })) << pid;
    PersonalServer::Kill(pid);
  }
}

// Expects that the server answers, that both workers serve it, and that it can be found and
// stopped.
void ExpectToServe(const PersonalServer& server) {
  EXPECT_TRUE(Eventually([&] {
    const nlohmann::json workers = server.Json({"workers", "--json"})["workers"];
    size_t idle = 0;
    for (const nlohmann::json& worker : workers) idle += worker["state"] == "IDLE" ? 1 : 0;
    return idle == 2;
  })) << server.Ablate({"workers"}).out;
  const std::vector<int> pids = Pids(server);
  EXPECT_EQ(server.Ablate({"down"}).exit_code, 0);
  ExpectToEnd(pids);
}

TEST(RunFolderTest, EndsTheServerWhenItIsRemoved) {
  PersonalServer server;
  server.Up({"--lanes", "1"});
  const std::string experiment = SubmitEndlessRun(server, "hidden");
  const auto step = [&] {
    return server.Json({"runs", experiment, "--json"})["rows"][0]["step"].get<uint64_t>();
  };
  ASSERT_TRUE(Eventually([&] { return step() > 0; }));
  const uint64_t before = step();
  const std::vector<int> pids = Pids(server);
  std::filesystem::remove_all(server.home() + "/run");
  ExpectToEnd(pids);
  EXPECT_THAT(ReadFile(server.home() + "/log/ablated.log"),
              HasSubstr("nobody reaches this server"));
  server.Up({"--lanes", "1"});
  EXPECT_TRUE(Eventually([&] { return step() > before; }));
  EXPECT_EQ(server.Ablate({"down"}).exit_code, 0);
  EXPECT_EQ(server.ServerPid(), 0);
}

TEST(RunFolderTest, EndsAServerWhosePlaceAnotherTook) {
  PersonalServer server;
  server.Up();
  const std::vector<int> before = Pids(server);
  std::filesystem::remove_all(server.home());
  server.Up();
  const int after = server.ServerPid();
  ExpectToEnd(before);
  EXPECT_EQ(server.ServerPid(), after);
  ExpectToServe(server);
}

TEST(RunFolderTest, IsLeftAloneByAServerThatHadTheSameName) {
  PersonalServer server;
  server.Up();
  const std::vector<int> before = Pids(server);
  std::filesystem::remove_all(server.home());
  server.Up();
  ASSERT_EQ(::kill(before[0], SIGTERM), 0);
  ExpectToEnd(before);
  ExpectToServe(server);
}

TEST(RunFolderTest, IsNoOrderlyEndOfAServerWhenItIsRemoved) {
  PersonalServer server;
  std::future<Output> end = std::async(std::launch::async, [&] {
    return RunProgram({ABLATE_BIN "/ablated", "--home", server.home(), "--no-workers"}, "", {});
  });
  const std::string run = server.home() + "/run";
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(run + "/address"); }));
  std::filesystem::remove_all(run);
  EXPECT_EQ(end.get().exit_code, 1);
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
