// Tests that a longer run continues a shorter one, with the real programs.
#include <sstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;

constexpr char kTwoOptimizers[] =
    "axes:\n"
    "  - {name: optimizer, field: training.optimizer, values: [adamw, sgd]}\n"
    "seeds: {first: 1, count: 2}\n";

// Returns an experiment that evaluates at 0, 50, … and at its end.
std::string Yaml(int steps) { return SmallNames("grown", steps, kTwoOptimizers); }

class GrowingTest : public ::testing::Test {
 protected:
  void SetUp() override { server_.Up({"--lanes", "2"}); }

  std::string Submit(int steps, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"submit", "-", "--json"};
    command.insert(command.end(), more.begin(), more.end());
    return server_.Json(command, Yaml(steps))["experiment"]["name"];
  }
  void Wait(const std::string& experiment) {
    const Output waited = server_.Ablate({"wait", experiment});
    EXPECT_EQ(waited.exit_code, 0) << waited.err;
  }
  // Returns every point, without the name of its run.
  std::string Points(const std::string& experiment) {
    const std::string path = server_.home() + "/points.csv";
    const Output exported =
        server_.Ablate({"export", experiment, "--format", "csv", "-o", path, "--force"});
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    std::istringstream lines(ReadFile(path));
    std::string points;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string field;
      for (int i = 0; std::getline(fields, field, ','); ++i) {
        if (i != 3) points += field + ',';  // cell, optimizer, seed, run, key, step, value
      }
      points += '\n';
    }
    return points;
  }
  // Returns the bytes of the checkpoint of a cell.
  std::string Weights(const std::string& experiment, const std::string& step) {
    const std::string path = server_.home() + "/model.safetensors";
    const Output got = server_.Ablate({"artifact", "get", experiment + "/sgd-s2", "checkpoint",
                                       "--step", step, "-o", path, "--force"});
    EXPECT_EQ(got.exit_code, 0) << got.err;
    return ReadFile(path);
  }
  void ExpectAsIfTrainedAtOnce(const std::string& grown, int steps) {
    const std::string fresh = Submit(steps, {"--fresh"});
    Wait(fresh);
    for (const auto& row : server_.Json({"runs", fresh, "--json"})["rows"]) {
      EXPECT_EQ(row["continued_step"], 0);
    }
    EXPECT_EQ(Points(grown), Points(fresh));
    EXPECT_EQ(Weights(grown, "0"), Weights(fresh, "0"));
    EXPECT_EQ(Weights(grown, std::to_string(steps)), Weights(fresh, std::to_string(steps)));
  }

  PersonalServer server_;
};

TEST_F(GrowingTest, GivesTheNumbersOfARunThatWasTrainedAtOnce) {
  Wait(Submit(30));
  const Output dry = server_.Ablate({"submit", "-", "--dry-run"}, Yaml(60));
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out + dry.err, HasSubstr("4 runs continue from step 30 of shorter runs"));
  const std::string grown = Submit(60);
  Wait(grown);
  EXPECT_THAT(server_.Ablate({"show", grown}).out,
              HasSubstr("4 runs continued from step 30 of shorter runs"));
  EXPECT_THAT(server_.Ablate({"logs", grown + "/adamw-s1"}).out, HasSubstr("from step 30 of run "));
  const std::string page = server_.home() + "/report.html";
  EXPECT_EQ(server_.Ablate({"report", grown, "-o", page}).exit_code, 0);
  EXPECT_THAT(ReadFile(page), HasSubstr("4 runs continued from step 30 of shorter runs"));
  ExpectAsIfTrainedAtOnce(grown, 60);
  // Again, from an evaluation on.
  const std::string again = Submit(100);
  Wait(again);
  EXPECT_THAT(server_.Ablate({"show", again}).out, HasSubstr("from step 60"));
  ExpectAsIfTrainedAtOnce(again, 100);
}

TEST_F(GrowingTest, GoesOnAfterTheServerAndItsWorkersDied) {
  Wait(Submit(30));
  const int trainer = server_.WorkerPid();
  PersonalServer::Kill(server_.ServerPid());
  PersonalServer::Kill(trainer);
  server_.Up({"--lanes", "2"});
  const std::string grown = Submit(400);
  PersonalServer::Kill(server_.ServerPid());
  server_.Up({"--lanes", "2"});
  Wait(grown);
  for (const auto& row : server_.Json({"runs", grown, "--json"})["rows"]) {
    EXPECT_EQ(row["continued_step"], 30);
  }
  ExpectAsIfTrainedAtOnce(grown, 400);
}

TEST_F(GrowingTest, TrainsFromTheStartWhenTheShorterRunsAreRemovedOrNothingIsKept) {
  const std::string shorter = Submit(30);
  Wait(shorter);
  EXPECT_EQ(server_.Ablate({"rm", shorter, "--yes"}).exit_code, 0);
  Wait(Submit(40));
  EXPECT_EQ(server_.Ablate({"down"}).exit_code, 0);
  server_.Up({"--lanes", "2", "--last-states", "0"});
  // The saved states are deleted in the background.
  EXPECT_TRUE(Eventually([&] {
    const Output dry = server_.Ablate({"submit", "-", "--dry-run"}, Yaml(60));
    return dry.exit_code == 0 && !absl::StrContains(dry.out + dry.err, "continue from");
  }));
}

}  // namespace
}  // namespace ablate::e2e
