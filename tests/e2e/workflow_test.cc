// Tests the way from a file to trained numbers and back, with the real programs.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

constexpr char kTwoNorms[] =
    "axes:\n"
    "  - {name: norm, settings: [{label: pre}, {label: none, set: {model.norm.placement: none, "
    "model.norm.final: false}}]}\n"
    "seeds: {first: 1, count: 2}\n";

class WorkflowTest : public ::testing::Test {
 protected:
  void SetUp() override { server_.Up({"--lanes", "2"}); }

  std::string Submit(const std::string& yaml, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"submit", "-", "--wait", "--json"};
    command.insert(command.end(), more.begin(), more.end());
    return server_.Json(command, yaml)["experiment"]["name"];
  }

  PersonalServer server_;
};

TEST_F(WorkflowTest, TrainsAGridAndKeepsEveryPoint) {
  const std::string experiment = Submit(SmallNames("small", 120, kTwoNorms));
  EXPECT_THAT(experiment, StartsWith("experiments/small-"));

  const nlohmann::json runs = server_.Json({"runs", experiment, "--json"});
  ASSERT_THAT(runs["rows"], SizeIs(4));
  EXPECT_EQ(runs["rows"][0]["cell"], "pre-s1");
  EXPECT_EQ(runs["rows"][3]["cell"], "none-s2");
  for (const nlohmann::json& row : runs["rows"]) {
    EXPECT_EQ(row["state"], "DONE");
    EXPECT_EQ(row["step"], 120);
  }

  const Output csv = server_.Ablate({"metrics", experiment, "--key", "train/loss", "--csv"});
  EXPECT_EQ(csv.exit_code, 0) << csv.err;
  const std::vector<std::string> lines = Lines(csv.out);
  ASSERT_EQ(lines.size(), 1 + 4 * 120u);
  EXPECT_EQ(lines[0], "cell,step,value");
  EXPECT_THAT(lines[1], StartsWith("pre-s1,0,"));
  EXPECT_THAT(lines[480], StartsWith("none-s2,119,"));

  const Output both =
      server_.Ablate({"metrics", experiment, "--key", "train/loss", "--key", "eval/loss", "--csv"});
  EXPECT_EQ(Lines(both.out)[0], "cell,key,step,value");
  EXPECT_EQ(Lines(both.out).size(), 1 + 4 * (120 + 4u)) << "evaluations at 0, 50, 100 and the end";
}

TEST_F(WorkflowTest, ReusesRunsOfAnEarlierExperimentAndTrainsOnlyWhatIsNew) {
  Submit(SmallNames("first", 60, kTwoNorms));
  const std::string yaml = SmallNames("second", 60, kTwoNorms);
  const nlohmann::json planned =
      server_.Json({"submit", "-", "--dry-run", "--json", "--seeds", "1..3"}, yaml);
  EXPECT_EQ(planned["reused"], 4);
  EXPECT_THAT(planned["cells"], SizeIs(6));
  const nlohmann::json created =
      server_.Json({"submit", "-", "--wait", "--json", "--seeds", "1..3"}, yaml);
  EXPECT_EQ(created["reused"], 4);

  const nlohmann::json fresh = server_.Json({"submit", "-", "--wait", "--json", "--fresh"}, yaml);
  EXPECT_EQ(fresh["reused"], 0);
  EXPECT_THAT(std::string(fresh["cells"][0]["run"]), HasSubstr(".2"));
}

TEST_F(WorkflowTest, TunesEachSettingOverItsOwnValues) {
  const std::string experiment = Submit(SmallNames("optimizers", 20, R"(axes:
  - {name: optimizer, field: training.optimizer, values: [adamw, sgd]}
  - {name: lr, field: training.learning_rate, tune: true, by: optimizer,
     values: {adamw: [0.003, 0.03], sgd: [0.01, 0.3]}}
seeds: 2
)"));
  const nlohmann::json runs = server_.Json({"runs", experiment, "--json"});
  std::map<std::string, std::map<uint32_t, std::map<std::string, double>>> losses;
  for (const nlohmann::json& row : runs["rows"]) {
    for (const nlohmann::json& summary : row["summaries"]) {
      if (summary["key"] != "eval/loss") continue;
      losses[row["labels"]["optimizer"]][row["seed"]][row["labels"]["lr"]] = summary["last"];
    }
  }
  // With two seeds the value of one is selected on the other.
  const auto tuned = [&losses](const std::string& optimizer, uint32_t seed, uint32_t other) {
    const auto& there = losses[optimizer].at(other);
    const auto best =
        std::min_element(there.begin(), there.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return losses[optimizer].at(seed).at(best->first);
  };
  ASSERT_THAT(losses["sgd"], SizeIs(2));
  EXPECT_THAT(losses["sgd"].begin()->second, SizeIs(2));
  const uint32_t first = losses["sgd"].begin()->first, last = losses["sgd"].rbegin()->first;
  const nlohmann::json rows = server_.Json({"compare", experiment, "--json"})["rows"];
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_NEAR(rows[1]["difference"]["mean"],
              (tuned("sgd", first, last) - tuned("adamw", first, last) + tuned("sgd", last, first) -
               tuned("adamw", last, first)) /
                  2,
              1e-12);
}

TEST_F(WorkflowTest, TriesSwitchesOneAtATime) {
  const std::string axis =
      "axes:\n"
      "  - switches:\n"
      "      - rms: {model.norm.kind: rms}\n"
      "      - silu: {model.feed_forward.activation: silu}\n"
      "      - swiglu: {model.feed_forward.activation: swiglu, "
      "model.feed_forward.match_parameters: true}\n";
  const std::string seeds = "seeds: {first: 1, count: 2}\n";
  const nlohmann::json created =
      server_.Json({"submit", "-", "--wait", "--json"}, SmallNames("switches", 60, axis + seeds));
  EXPECT_EQ(created["cells"][7]["name"], "swiglu-s2");
  EXPECT_THAT(created["notes"].dump(), HasSubstr("swiglu: hidden "));
  const nlohmann::json compared =
      server_.Json({"compare", created["experiment"]["name"], "--json"});
  ASSERT_THAT(compared["rows"], SizeIs(4));
  EXPECT_EQ(compared["rows"][0]["labels"]["switches"], "base");
  EXPECT_EQ(compared["rows"][3]["labels"]["switches"], "swiglu");

  // One more switch keeps the stored runs.
  const nlohmann::json planned = server_.Json(
      {"submit", "-", "--dry-run", "--json"},
      SmallNames("more", 60, axis + "      - tied: {model.tied_head: true}\n" + seeds));
  EXPECT_EQ(planned["reused"], 8);
  EXPECT_THAT(planned["cells"], SizeIs(10));
}

TEST_F(WorkflowTest, ComparesSettingsSeedBySeed) {
  const std::string experiment = Submit(SmallNames("compared", 60, kTwoNorms));
  const nlohmann::json comparison = server_.Json({"compare", experiment, "--json"});
  ASSERT_THAT(comparison["rows"], SizeIs(2));
  const nlohmann::json none = comparison["rows"][1];
  EXPECT_EQ(none["label"], "none");
  EXPECT_EQ(none["labels"]["norm"], "none");
  EXPECT_EQ(none["n"], 2);
  EXPECT_EQ(none["diverged"], 0);
  EXPECT_THAT(none["chosen"], SizeIs(0));
  const double difference = none["difference"]["mean"];
  EXPECT_LE(none["difference"]["low"], difference);
  EXPECT_GE(none["difference"]["high"], difference);
  EXPECT_DOUBLE_EQ(none["p_sign_flip"], none["p_holm"]);

  // The same numbers as the runs themselves.
  const nlohmann::json runs = server_.Json({"runs", experiment, "--json"});
  double sum = 0;
  for (const nlohmann::json& row : runs["rows"]) {
    for (const nlohmann::json& summary : row["summaries"]) {
      if (summary["key"] != "eval/loss") continue;
      sum += (row["labels"]["norm"] == "none" ? 1 : -1) * double(summary["last"]);
    }
  }
  EXPECT_NEAR(difference, sum / 2, 1e-12);

  const Output text = server_.Ablate({"compare", experiment});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(StartsWith("held-out loss"), HasSubstr("Δ vs pre [95 % CI]")));
  const Output table = server_.Ablate({"table", experiment, "--format", "csv"});
  EXPECT_EQ(Lines(table.out).size(), 3u) << table.err;
}

TEST_F(WorkflowTest, ComparesExperimentsAndSaysWhatTheyDifferIn) {
  const std::string shorter = Submit(SmallNames("shorter", 20, kTwoNorms));
  const std::string longer = Submit(SmallNames("longer", 40, kTwoNorms));
  const Output compared = server_.Ablate({"compare", shorter + "/pre", longer});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  const auto id = [](const std::string& name) { return name.substr(name.find('/') + 1); };
  EXPECT_THAT(compared.out, AllOf(HasSubstr("Δ vs " + id(shorter) + "/pre"),
                                  HasSubstr("“" + id(longer) + "/pre”  training.steps 40 (20)")));
  const Output diff = server_.Ablate({"diff", shorter, longer});
  EXPECT_EQ(diff.exit_code, 0) << diff.err;
  EXPECT_EQ(Lines(diff.out).size(), 2u) << diff.out;
  EXPECT_THAT(diff.out, HasSubstr("training.steps"));
  const std::string file = server_.home() + "/../both.svg";
  const Output drawn = server_.Ablate(
      {"figure", shorter + "/pre", "difference", "--with", longer + "/none", "-o", file});
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
}

TEST_F(WorkflowTest, HandsOutCheckpointsThatPythonReads) {
  const std::string experiment = Submit(SmallNames("saved", 20, kTwoNorms));
  const std::string file = server_.home() + "/../pre.safetensors";
  const Output got =
      server_.Ablate({"artifact", "get", experiment + "/pre-s1", "checkpoint", "-o", file});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  const Output read =
      RunProgram({ABLATE_PYTHON, "-c",
                  "import sys, safetensors.numpy as s; f = s.load_file(sys.argv[1]); "
                  "print(f['token_embedding.weight'].shape)",
                  file},
                 "", {});
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_EQ(read.out, "(27, 16)\n");

  const Output first = server_.Ablate(
      {"artifact", "get", experiment + "/pre-s1", "checkpoint", "--step", "0", "-o", file + ".0"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(ReadFile(file), ReadFile(file + ".0"));
}

TEST_F(WorkflowTest, TellsARunsHistory) {
  const std::string experiment = Submit(SmallNames("history", 20, kTwoNorms));
  const Output logs = server_.Ablate({"logs", experiment + "/none-s2"});
  EXPECT_EQ(logs.exit_code, 0) << logs.err;
  EXPECT_THAT(logs.out, AllOf(HasSubstr("queued"), HasSubstr("granted"), HasSubstr("started"),
                              HasSubstr("done")));
}

TEST_F(WorkflowTest, CancelsRemovesAndReportsByExitCode) {
  const nlohmann::json created =
      server_.Json({"submit", "-", "--json"}, SmallNames("long", 1000000, kTwoNorms));
  const std::string experiment = created["experiment"]["name"];
  EXPECT_EQ(server_.Ablate({"rm", experiment, "--yes"}).exit_code, 1) << "it is active";
  EXPECT_EQ(server_.Ablate({"cancel", experiment}).exit_code, 0);
  EXPECT_EQ(server_.Ablate({"wait", experiment}).exit_code, 2);
  const nlohmann::json runs = server_.Json({"runs", experiment, "--json"});
  for (const nlohmann::json& row : runs["rows"]) {
    EXPECT_EQ(row["state"], "CANCELLED");
  }
  EXPECT_EQ(server_.Ablate({"rm", experiment, "--yes"}).exit_code, 0);
  EXPECT_EQ(server_.Ablate({"show", experiment}).exit_code, 1);
  EXPECT_THAT(server_.Json({"ls", "--json"})["experiments"], SizeIs(0));
}

TEST_F(WorkflowTest, CountsADivergedRunAsEndedWell) {
  const nlohmann::json created =
      server_.Json({"submit", "-", "--wait", "--json", "--set", "training.learning_rate=900",
                    "--set", "training.optimizer=sgd"},
                   SmallNames("wild", 50, "seeds: {count: 1}\n"));
  const nlohmann::json rows =
      server_.Json({"runs", std::string(created["experiment"]["name"]), "--json"})["rows"];
  EXPECT_EQ(rows[0]["state"], "DIVERGED");
}

TEST_F(WorkflowTest, KeepsEverythingOverDownAndUp) {
  const std::string experiment = Submit(SmallNames("kept", 40, kTwoNorms));
  const std::string before =
      server_.Ablate({"metrics", experiment, "--key", "train/loss", "--csv"}).out;
  EXPECT_EQ(server_.Ablate({"down"}).exit_code, 0);
  EXPECT_EQ(server_.WorkerPid(), 0) << "down stops the workers too";
  EXPECT_EQ(server_.AnalystPid(), 0);
  EXPECT_NE(server_.Ablate({"ls"}).exit_code, 0);
  server_.Up();
  EXPECT_EQ(server_.Ablate({"metrics", experiment, "--key", "train/loss", "--csv"}).out, before);
}

// Returns a small experiment on another task than documents.
std::string SmallTask(const std::string& name, const std::string& task) {
  return "name: " + name + "\nbase:\n  task: {" + task +
         "}\n"
         "  model: {layers: 1, width: 16, heads: 2}\n"
         "  training: {steps: 20, batch: 4}\n"
         "  evaluation: {every: 10, batches: 2}\n" +
         kTwoNorms;
}

TEST_F(WorkflowTest, TrainsAndComparesRecall) {
  const std::string experiment = Submit(SmallTask("recall", "recall: {pairs: 5}"));
  const nlohmann::json comparison = server_.Json({"compare", experiment, "--json"});
  EXPECT_EQ(comparison["rows"][1]["n"], 2);
  const nlohmann::json runs = server_.Json({"runs", experiment, "--json"});
  for (const nlohmann::json& row : runs["rows"]) EXPECT_EQ(row["state"], "DONE");
  const Output refused = server_.Ablate({"generate", experiment + "/pre-s1"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("expected a run of a documents or text task"));
}

TEST_F(WorkflowTest, TrainsComparesAndWritesAText) {
  const std::string yaml =
      SmallTask("text", "text: {dataset: " ABLATE_SOURCE "/examples/data/tinyshakespeare.txt}");
  const Output planned = server_.Ablate({"submit", "-", "--dry-run"}, yaml);
  EXPECT_THAT(planned.err, HasSubstr("evaluation scores 4,096 tokens in 64 windows"));
  const std::string experiment = Submit(yaml);
  const nlohmann::json comparison = server_.Json({"compare", experiment, "--json"});
  EXPECT_EQ(comparison["rows"][1]["n"], 2);
  const Output written = server_.Ablate(
      {"generate", experiment + "/none-s2", "--prompt", "KING", "--count", "3", "--json"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const std::vector<std::string> lines = Lines(written.out);
  ASSERT_THAT(lines, SizeIs(4));
  const nlohmann::json sample = nlohmann::json::parse(lines[0])["sample"];
  EXPECT_THAT(std::string(sample["text"]), StartsWith("KING"));
  EXPECT_EQ(sample["tokens"], 61) << "and the 4 of the prompt: one more than the context";
  EXPECT_EQ(sample["ended"], false);
}

}  // namespace
}  // namespace ablate::e2e
