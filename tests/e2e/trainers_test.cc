// Tests the same cells with both trainers, with the real programs.
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kSteps = 20;
constexpr char kNorms[] =
    "axes:\n"
    "  - {name: norm, settings: [{label: pre}, {label: none, set: {model.norm.placement: none, "
    "model.norm.final: false}}]}\n";

class TrainersTest : public ::testing::Test {
 protected:
  void SetUp() override { server_.Up({"--lanes", "2"}); }

  // Returns losses by cell, in the order of their steps.
  std::map<std::string, std::vector<double>> Losses(const std::string& experiment) {
    const Output csv = server_.Ablate({"metrics", experiment, "--key", "train/loss", "--csv"});
    EXPECT_EQ(csv.exit_code, 0) << csv.err;
    std::map<std::string, std::vector<double>> losses;
    std::istringstream lines(csv.out);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      const std::string value = line.substr(line.rfind(',') + 1);
      losses[line.substr(0, line.find(','))].push_back(std::strtod(value.c_str(), nullptr));
    }
    return losses;
  }

  PersonalServer server_;
};

TEST_F(TrainersTest, AgreeOnTheFirstSteps) {
  const std::string yaml =
      SmallNames("both", kSteps,
                 std::string(kNorms) + "  - {field: training.trainer, values: [torch, native]}\n");
  const Output dry = server_.Ablate({"submit", "-", "--dry-run"}, yaml);
  EXPECT_THAT(dry.out, HasSubstr("trainer: native 2 runs;\n         torch 2 runs\n"));
  const std::string experiment =
      server_.Json({"submit", "-", "--wait", "--json"}, yaml)["experiment"]["name"];
  auto losses = Losses(experiment);
  ASSERT_THAT(losses, SizeIs(4));
  for (const char* norm : {"pre", "none"}) {
    const std::string cell = std::string(norm) + "-";
    const std::vector<double>& torch = losses[cell + "torch-s0"];
    const std::vector<double>& native = losses[cell + "native-s0"];
    ASSERT_THAT(torch, SizeIs(kSteps)) << norm;
    ASSERT_THAT(native, SizeIs(kSteps)) << norm;
    for (size_t i = 0; i < kSteps; ++i) {
      EXPECT_NEAR(native[i], torch[i], 1e-4) << norm << " at step " << i;
    }
    EXPECT_NE(torch, native) << "another order of sums";
  }
  const std::string page = server_.home() + "/report.html";
  EXPECT_EQ(server_.Ablate({"report", experiment, "-o", page}).exit_code, 0);
  EXPECT_THAT(ReadFile(page), HasSubstr("native (2 cells); torch (2 cells)"));
  EXPECT_THAT(ReadFile(page), ContainsRegex("native, [A-Za-z0-9_]+ \\(2 cells\\); torch 2"));
}

TEST_F(TrainersTest, ReuseTheirOwnRunsOnly) {
  const auto reused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"submit", "-", "--dry-run", "--json"};
    command.insert(command.end(), more.begin(), more.end());
    return server_.Json(command, SmallNames("reused", kSteps, kNorms))["reused"];
  };
  server_.Json({"submit", "-", "--wait", "--json", "--set", "training.trainer=torch"},
               SmallNames("first", kSteps, kNorms));
  EXPECT_EQ(reused({"--set", "training.trainer=torch"}), 2);
  EXPECT_EQ(reused({}), 0) << "native trains them";
  server_.Json({"submit", "-", "--wait", "--json"}, SmallNames("second", kSteps, kNorms));
  EXPECT_EQ(reused({}), 2);
  EXPECT_EQ(reused({"--set", "training.trainer=native"}), 2);
}

// Native has no BatchNorm if the loss reads last positions only.
constexpr char kRecall[] =
    "name: recall\n"
    "base:\n"
    "  task: {recall: {pairs: 4}}\n"
    "  model: {layers: 1, width: 16, heads: 2, context: 9}\n"
    "  training: {steps: 4, batch: 4}\n"
    "  evaluation: {batches: 1}\n"
    "axes:\n"
    "  - {name: norm, field: model.norm.kind, values: [layer, rms, batch]}\n";

TEST_F(TrainersTest, AreOneForAllThatAskForAuto) {
  const std::string grown = std::string(kRecall) + "  - {field: training.batch, values: [4, 8]}\n";
  const std::string exclude = "exclude: [{where: {norm: batch}}]\n";
  const std::string why =
      "the native trainer has no BatchNorm where the loss reads last positions alone (norm=batch)";
  const Output dry = server_.Ablate({"submit", "-", "--dry-run"}, grown);
  EXPECT_THAT(dry.out, HasSubstr("trainer: torch for all 6 runs: " + why + "\n"));
  const auto json = server_.Json({"submit", "-", "--dry-run", "--json"}, kRecall);
  ASSERT_EQ(json["trainers"].size(), 1u);
  EXPECT_EQ(json["trainers"][0]["trainer"], "torch");
  EXPECT_EQ(json["trainers"][0]["runs"], 3);
  EXPECT_EQ(json["trainers"][0]["why_not_native"], why);
  // Without the unsupported part, native trains all.
  EXPECT_THAT(server_.Ablate({"submit", "-", "--dry-run"}, kRecall + exclude).out,
              HasSubstr("trainer: native 2 runs\n"));

  server_.Json({"submit", "-", "--wait", "--json"}, kRecall + exclude);
  const auto experiment = server_.Json({"submit", "-", "--wait", "--json"}, kRecall);
  EXPECT_EQ(experiment["reused"], 0);
  EXPECT_THAT(experiment["notes"].get<std::vector<std::string>>(),
              testing::Contains("2 runs are stored from the native trainer and will be trained "
                                "again by torch, so that one trainer trains them all"));
  const std::string name = experiment["experiment"]["name"];
  const Output compared = server_.Ablate({"compare", name});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out + compared.err, Not(HasSubstr("mix")));
}

}  // namespace
}  // namespace ablate::e2e
