// Kills the real server and the real worker in the middle of a grid and compares every number with
// an undisturbed run.
#include <signal.h>

#include <random>
#include <regex>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kMinKills = 6;
constexpr int kGridSeeds = 3;
constexpr int kMaxRounds = 20;

// Another one each round, so that no run is known yet. How often a grid can be disturbed before it
// ends is a matter of the machine: rounds follow until there were enough kills.
std::string Grid(int round) {
  return SmallNames("grid", 20000,
                    "axes:\n"
                    "  - {name: norm, settings: [{label: pre}, {label: post, set: "
                    "{model.norm.placement: post}}]}\n"
                    "seeds: {first: " +
                        std::to_string(7 + round * kGridSeeds) +
                        ", count: " + std::to_string(kGridSeeds) + "}\n");
}

// Why a test gives up.
std::string TooFast(int kills) {
  return "grids end before they can be disturbed: " + std::to_string(kills) + " kills of " +
         std::to_string(kMinKills) + " in " + std::to_string(kMaxRounds) + " grids";
}

// Everything a finished experiment leaves: all points in full precision and the final parameters of
// every cell.
struct Results {
  std::string points;
  std::vector<std::string> parameters;
};

Results Collect(const PersonalServer& server, const std::string& experiment) {
  Results results;
  results.points = server.Ablate({"metrics", experiment, "--csv"}).out;
  const nlohmann::json runs = server.Json({"runs", experiment, "--json"});
  for (const nlohmann::json& row : runs["rows"]) {
    EXPECT_EQ(row["state"], "DONE");
    const std::string cell = row["cell"];
    const std::string file = server.home() + "/../" + cell + ".safetensors";
    EXPECT_EQ(server.Ablate({"artifact", "get", experiment + "/" + cell, "checkpoint", "-o", file})
                  .exit_code,
              0);
    results.parameters.push_back(ReadFile(file));
  }
  return results;
}

Results Undisturbed(const std::string& grid) {
  PersonalServer server;
  server.Up({"--lanes", "2"});
  const std::string experiment =
      server.Json({"submit", "-", "--wait", "--json"}, grid)["experiment"]["name"];
  return Collect(server, experiment);
}

uint64_t StepsStored(const PersonalServer& server, const std::string& experiment) {
  uint64_t steps = 0;
  const nlohmann::json runs = server.Json({"runs", experiment, "--json"});
  for (const nlohmann::json& row : runs["rows"]) {
    steps += row["step"].get<uint64_t>();
  }
  return steps;
}

// Waits until `more` further steps are stored or everything has ended; true while something is left
// to disturb.
bool Advance(const PersonalServer& server, const std::string& experiment, uint64_t more) {
  const uint64_t from = StepsStored(server, experiment);
  bool ended = false;
  EXPECT_TRUE(Eventually([&] {
    const std::string state = server.Json({"show", experiment, "--json"})["state"];
    ended = state != "ACTIVE";
    // A rewind can take the count below where it was.
    const uint64_t now = StepsStored(server, experiment);
    return ended || now >= from + more || now < from;
  }));
  return !ended;
}

TEST(KillTest, LosesNothingWhenServerAndWorkerAreKilledAtRandomMoments) {
  PersonalServer server;
  server.Up({"--lanes", "2", "--resume-every", "0.1"});
  std::mt19937 random(20261121);
  int kills = 0;
  for (int round = 0; kills < kMinKills; ++round) {
    ASSERT_LT(round, kMaxRounds) << TooFast(kills);
    const Results expected = Undisturbed(Grid(round));
    const std::string experiment =
        server.Json({"submit", "-", "--json"}, Grid(round))["experiment"]["name"];
    while (Advance(server, experiment, 100 + random() % 700)) {
      const bool kill_server = random() % 2 == 0;
      PersonalServer::Kill(kill_server ? server.ServerPid() : server.WorkerPid());
      if (!kill_server && random() % 3 == 0) PersonalServer::Kill(server.ServerPid());
      if (server.ServerPid() == 0) server.Up({"--lanes", "2", "--resume-every", "0.1"});
      ++kills;
    }
    EXPECT_EQ(server.Ablate({"wait", experiment}).exit_code, 0);
    const Results results = Collect(server, experiment);
    EXPECT_EQ(results.points == expected.points, true)
        << "points differ after " << kills << " kills";
    EXPECT_EQ(results.parameters == expected.parameters, true) << "parameters differ";
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(KillTest, CostsNoRunItsLeaseWhenOnlyTheServerIsKilled) {
  PersonalServer server;
  server.Up({"--lanes", "2", "--resume-every", "0.05"});
  int kills = 0;
  for (int round = 0; kills < kMinKills; ++round) {
    ASSERT_LT(round, kMaxRounds) << TooFast(kills);
    const std::string experiment =
        server.Json({"submit", "-", "--json"}, Grid(round))["experiment"]["name"];
    while (Advance(server, experiment, 300)) {
      PersonalServer::Kill(server.ServerPid());
      server.Up({"--lanes", "2", "--resume-every", "0.05"});
      ++kills;
    }
    const nlohmann::json runs = server.Json({"runs", experiment, "--json"});
    for (const nlohmann::json& row : runs["rows"]) {
      EXPECT_EQ(row["state"], "DONE");
      const std::string cell = row["cell"];
      const std::string history = server.Ablate({"logs", experiment + "/" + cell}).out;
      // A grant that was stored but not yet sent costs nothing: the worker never had it.
      const std::regex unsent("lost +0 +cpu-train +the worker does not hold it");
      EXPECT_THAT(std::regex_replace(history, unsent, "unsent"), Not(HasSubstr(" lost ")))
          << history;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(KillTest, ReplacesAWorkerThatIsStopped) {
  PersonalServer server;
  server.Up({"--lanes", "1", "--worker-silence", "2"});
  const std::string experiment =
      server.Json({"submit", "-", "--json"},
                  SmallNames("stopped", 10000000, "seeds: {count: 1}\n"))["experiment"]["name"];
  ASSERT_TRUE(Eventually([&] { return StepsStored(server, experiment) > 0; }));
  const int stopped = server.WorkerPid();
  ASSERT_EQ(::kill(stopped, SIGSTOP), 0);
  ASSERT_TRUE(Eventually([&] { return server.WorkerPid() != 0 && server.WorkerPid() != stopped; }));
  EXPECT_NE(::kill(stopped, 0), 0) << "the stopped process is still there";
  const uint64_t steps = StepsStored(server, experiment);
  EXPECT_TRUE(Eventually([&] { return StepsStored(server, experiment) > steps; }));
  EXPECT_THAT(ReadFile(server.home() + "/log/ablated.log"),
              HasSubstr("worker cpu-train hangs: it sent nothing for 2s; killing its process " +
                        std::to_string(stopped)));
  const std::string cell = server.Json({"runs", experiment, "--json"})["rows"][0]["cell"];
  EXPECT_THAT(server.Ablate({"logs", experiment + "/" + cell}).out,
              HasSubstr("the worker was silent"));
}

TEST(KillTest, FailsARunWhoseWorkerKeepsCrashing) {
  PersonalServer server;
  server.Up({"--lanes", "1"});
  const std::string experiment =
      server.Json({"submit", "-", "--json"},
                  SmallNames("crash", 10000000, "seeds: {count: 1}\n"))["experiment"]["name"];
  const auto state = [&] {
    return std::string(server.Json({"runs", experiment, "--json"})["rows"][0]["state"]);
  };
  for (int crash = 0; crash < 3; ++crash) {
    ASSERT_TRUE(Eventually([&] { return state() == "RUNNING" && server.WorkerPid() != 0; }));
    ::kill(server.WorkerPid(), SIGSEGV);
    ASSERT_TRUE(Eventually([&] { return state() != "RUNNING"; }));
  }
  ASSERT_TRUE(Eventually([&] { return state() == "FAILED"; }));
  EXPECT_EQ(server.Ablate({"wait", experiment}).exit_code, 1);
  const std::string cell = server.Json({"runs", experiment, "--json"})["rows"][0]["cell"];
  EXPECT_THAT(server.Ablate({"logs", experiment + "/" + cell}).out, HasSubstr("SIGSEGV"));
}

}  // namespace
}  // namespace ablate::e2e
