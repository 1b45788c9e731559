// Kills the worker for analyses and the server during computations, and compares the results with
// an undisturbed run's of equal bits.
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

constexpr int kKills = 4;

class ComputationFaultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up(up_);
    for (std::string* cell : {&undisturbed_, &disturbed_}) {
      const nlohmann::json created = server_.Json({"submit", "-", "--wait", "--fresh", "--json"},
                                                  SmallNames("names", 40, "seeds: {count: 1}\n"));
      *cell = std::string(created["experiment"]["name"]) + "/s0";
    }
  }

  // Returns the stored analysis of the one cell's run.
  nlohmann::json Stored(const std::string& cell) const {
    const nlohmann::json list = server_.Json({"analyses", cell, "--json"});
    return list.is_array() ? list[0] : list["analyses"][0];
  }

  // Kills one of them, or both, whenever the analysis has progressed a little.
  void Disturb(const std::string& cell) {
    std::mt19937 random(20261123);
    double progress = 0;
    for (int kills = 0; kills < kKills; ++kills) {
      nlohmann::json seen;
      ASSERT_TRUE(Eventually([&] {
        seen = Stored(cell);
        return seen["state"] == "DONE" || seen.value("progress", 0.0) > progress;
      })) << seen;
      ASSERT_NE(seen["state"], "DONE") << "it ended after " << kills << " kills: make it longer";
      progress = seen.value("progress", 0.0);
      const uint32_t which = random() % 3;
      if (which != 0 && server_.AnalystPid() != 0) PersonalServer::Kill(server_.AnalystPid());
      if (which == 1) continue;
      PersonalServer::Kill(server_.ServerPid());
      server_.Up(up_);
    }
  }

  // Analyzes both runs, disturbing the second, and expects equal results.
  void ExpectTheSame(const std::vector<std::string>& what) {
    const auto command = [&](const std::string& cell, const char* option) {
      std::vector<std::string> arguments = {"analyze", what[0], cell, option};
      arguments.insert(arguments.end(), what.begin() + 1, what.end());
      return arguments;
    };
    const nlohmann::json expected = server_.Json(command(undisturbed_, "--json"));
    ASSERT_EQ(server_.Ablate(command(disturbed_, "--no-wait")).exit_code, 0);
    ASSERT_NO_FATAL_FAILURE(Disturb(disturbed_));
    const nlohmann::json result = server_.Json(command(disturbed_, "--json"));
    EXPECT_EQ(result["state"], "DONE");
    EXPECT_EQ(result["numbers"], expected["numbers"]);
    EXPECT_EQ(result["artifact"], expected["artifact"]);
    EXPECT_NE(result["name"], expected["name"]);
    EXPECT_FALSE(result["numbers"].empty());
  }

  const std::vector<std::string> up_ = {"--lanes", "1", "--resume-every", "0.05"};
  PersonalServer server_;
  std::string undisturbed_, disturbed_;
};

TEST_F(ComputationFaultTest, GivesTheSameHessianWhateverDies) {
  ExpectTheSame(
      {"hessian", "--tokens", "600", "--set", "trace_samples=400", "--set", "iterations=60"});
}

TEST_F(ComputationFaultTest, GivesTheSameLandscapeWhateverDies) {
  ExpectTheSame({"loss_landscape", "--tokens", "4000", "--set", "dims=2", "--set", "points=61"});
}

}  // namespace
}  // namespace ablate::e2e
