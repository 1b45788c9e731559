// Tests analyses with the real programs: numbers, arrays, metrics of the experiment, and that a
// long one doesn't delay a short one.
#include <algorithm>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class AnalysesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up({"--lanes", "1"});
    experiment_ =
        server_.Json({"submit", "-", "--wait", "--json"},
                     SmallNames("names", 60, "seeds: {count: 2}\n"))["experiment"]["name"];
  }

  PersonalServer server_;
  std::string experiment_;
};

TEST_F(AnalysesTest, GivesNumbersOfOneCellAndItsArrays) {
  const std::string file = server_.home() + "/arrays.safetensors";
  const nlohmann::json analysis =
      server_.Json({"analyze", "spectrum", experiment_ + "/s0", "--json", "-o", file});
  EXPECT_EQ(analysis["state"], "DONE");
  EXPECT_GE(analysis["numbers"]["participation_ratio"]["value"], 1);
  EXPECT_THAT(std::string(analysis["artifact"]), SizeIs(64));
  EXPECT_THAT(ReadFile(file), HasSubstr("\"axes.singular_values\":\"direction\""));
  const nlohmann::json again = server_.Json({"analyze", "spectrum", experiment_ + "/s0", "--json"});
  EXPECT_EQ(again, analysis) << "it is stored, not made again";
}

TEST_F(AnalysesTest, MakesEveryKindOfATrainedModel) {
  for (const char* kind :
       {"spectrum", "cka", "activations", "loss_landscape", "hessian", "gradient_flow",
        "gradient_alignment", "norm_jacobian", "norm_statistics", "attention", "remove"}) {
    const nlohmann::json analysis =
        server_.Json({"analyze", kind, experiment_ + "/s0", "--tokens", "300", "--json"});
    EXPECT_EQ(analysis["state"], "DONE") << kind;
    EXPECT_THAT(analysis["numbers"], Not(IsEmpty())) << kind;
  }
  const nlohmann::json weights =
      server_.Json({"analyze", "weights", experiment_ + "/s0", "--json"});
  EXPECT_EQ(weights["state"], "DONE");
  const nlohmann::json response = server_.Json({"analyze", "norm_response", "--json"});
  EXPECT_EQ(response["state"], "DONE");
  const nlohmann::json capture = server_.Json(
      {"analyze", "capture", experiment_ + "/s0", "--set", "sites=[logits]", "--json"});
  EXPECT_EQ(capture["state"], "DONE");
  const std::string way =
      server_.Json({"submit", "-", "--wait", "--json", "--set", "training.checkpoints=[0,20,-1]"},
                   SmallNames("way", 60, "seeds: {count: 1}\n"))["experiment"]["name"];
  const nlohmann::json trajectory = server_.Json(
      {"analyze", "trajectory", way + "/s0", "--set", "points=3", "--tokens", "300", "--json"});
  EXPECT_EQ(trajectory["state"], "DONE");
  EXPECT_THAT(trajectory["subjects"], SizeIs(3)) << "every checkpoint";
  const std::string figure = server_.home() + "/trajectory.svg";
  EXPECT_EQ(server_.Ablate({"figure", way, "trajectory", "-o", figure}).exit_code, 0);
}

TEST_F(AnalysesTest, ReadsSoManyDocumentsAlsoOfAnotherDataSet) {
  const auto tokens_of = [&](const std::vector<std::string>& inputs) {
    std::vector<std::string> command = {"analyze", "capture",        experiment_ + "/s0",
                                        "--set",   "sites=[logits]", "--json"};
    command.insert(command.end(), inputs.begin(), inputs.end());
    return server_.Json(command)["arrays"];
  };
  const nlohmann::json two = tokens_of({"--documents", "2"});
  EXPECT_EQ(two.back()["name"], "lengths");
  EXPECT_EQ(two.back()["shape"][0], "2");
  const std::string file = server_.home() + "/other.txt";
  std::ofstream(file) << "anna\nnan\nanan\n";
  ASSERT_EQ(server_.Ablate({"data", "add", file}).exit_code, 0);
  const nlohmann::json other = tokens_of({"--dataset", "other.txt", "--documents", "3"});
  EXPECT_EQ(other.back()["shape"][0], "3");
  EXPECT_EQ(other[1]["name"], "tokens");
  EXPECT_EQ(other[1]["shape"][0], "14") << "characters, and what opens each document";
  const std::string odd = server_.home() + "/odd.txt";
  std::ofstream(odd) << "anna\nn4n\n";
  ASSERT_EQ(server_.Ablate({"data", "add", odd}).exit_code, 0);
  const Output refused =
      server_.Ablate({"analyze", "spectrum", experiment_ + "/s0", "--dataset", "odd.txt"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("inputs.dataset: document 2 has as character 2 \"4\" U+0034, which is"));
  const Output prompt =
      server_.Ablate({"analyze", "spectrum", experiment_ + "/s0", "--prompt", "n4n", "--dry-run"});
  EXPECT_EQ(prompt.exit_code, 1);
  EXPECT_THAT(prompt.err, HasSubstr("inputs.prompt: character 2, \"4\" U+0034, is not in the "));
}

TEST_F(AnalysesTest, AreMetricsOfTheExperiment) {
  ASSERT_EQ(server_.Ablate({"analyze", "spectrum", experiment_}).exit_code, 0);
  ASSERT_EQ(server_.Ablate({"analyze", "spectrum", experiment_ + "/s0", "--at", "0"}).exit_code, 0);
  const Output metrics =
      server_.Ablate({"metrics", experiment_, "--key", "spectrum/participation_ratio", "--csv"});
  ASSERT_EQ(metrics.exit_code, 0) << metrics.err;
  EXPECT_EQ(std::count(metrics.out.begin(), metrics.out.end(), '\n'), 4) << metrics.out;
  const Output compared = server_.Ablate({"compare", experiment_, "--key", "spectrum/stable_rank"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  const std::string file = server_.home() + "/points.csv";
  const Output exported = server_.Ablate({"export", experiment_, "--format", "csv", "-o", file});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(ReadFile(file), HasSubstr("spectrum/isoscore"));
  const Output twin =
      server_.Ablate({"analyze", "spectrum", experiment_ + "/s0", "--set", "site=embedding"});
  EXPECT_EQ(twin.exit_code, 0);
  EXPECT_THAT(twin.err, HasSubstr("the numbers are spectrum-2/…"));
  EXPECT_EQ(server_.Ablate({"metrics", experiment_, "--key", "spectrum-2/stable_rank"}).exit_code,
            0);
  EXPECT_EQ(server_
                .Ablate({"analyze", "spectrum", experiment_ + "/s0", "--set", "site=embedding",
                         "--label", "embedding-spectrum"})
                .exit_code,
            0);
}

TEST_F(AnalysesTest, AShortOneGoesBetweenThePiecesOfALongOne) {
  const std::vector<std::string> lengthy = {
      "analyze", "hessian", experiment_ + "/s0", "--set", "trace_samples=10000", "--no-wait"};
  ASSERT_EQ(server_.Ablate(lengthy).exit_code, 0);
  EXPECT_EQ(server_.Ablate({"analyze", "spectrum", experiment_ + "/s1"}).exit_code, 0);
  const nlohmann::json list = server_.Json({"analyses", experiment_, "--json"});
  const nlohmann::json& all = list.is_array() ? list : list["analyses"];
  for (const nlohmann::json& analysis : all) {
    if (!analysis["analysis"].contains("hessian")) continue;
    EXPECT_THAT(std::string(analysis["state"]), testing::AnyOf("RUNNING", "QUEUED"));
    EXPECT_EQ(server_.Ablate({"cancel", analysis["name"]}).exit_code, 0);
  }
}

TEST_F(AnalysesTest, AreMadeWhereTheFileAsksForThem) {
  const std::string seeds = "seeds: {count: 2}\n";
  const std::string asked =
      "analyses:\n"
      "  - {name: ranks, spectrum: {site: embedding}, at: [0, -1]}\n"
      "  - {norm_response: {}}\n";
  const nlohmann::json dry =
      server_.Json({"submit", "-", "--dry-run", "--json"}, SmallNames("names", 60, seeds + asked));
  EXPECT_EQ(dry["analyses"], 5);
  const Output submitted =
      server_.Ablate({"submit", "-", "--wait", "--json"}, SmallNames("names", 60, seeds + asked));
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  const nlohmann::json created = nlohmann::json::parse(submitted.out);
  EXPECT_EQ(created["reused"], 2) << "nothing is trained again";
  const std::string id = created["experiment"]["name"];
  const nlohmann::json ended = server_.Json({"show", id, "--json"});
  EXPECT_EQ(ended["state"], "ENDED");
  EXPECT_EQ(ended["analyses"]["done"], 5) << ended.dump();
  const Output metrics =
      server_.Ablate({"metrics", id, "--key", "ranks/participation_ratio", "--csv"});
  EXPECT_EQ(std::count(metrics.out.begin(), metrics.out.end(), '\n'), 5) << metrics.out;
  const std::string page = server_.home() + "/report.html";
  ASSERT_EQ(server_.Ablate({"report", id, "-o", page}).exit_code, 0);
  EXPECT_THAT(ReadFile(page), HasSubstr("ranks (spectrum)"));
  EXPECT_THAT(ReadFile(page), HasSubstr("4 of 4 analyses were made"));
  EXPECT_THAT(ReadFile(page),
              HasSubstr("Input: at most 20,000 held-out tokens. Options: site embedding."));
  EXPECT_THAT(ReadFile(page), HasSubstr("Not in the table: 7 numbers; ablate metrics "));
  EXPECT_THAT(ReadFile(page), HasSubstr("too few tokens"));
  const Output table = server_.Ablate({"table", id, "--analysis", "ranks"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("participation_ratio"));
  const Output latex =
      server_.Ablate({"table", id, "--analysis", "norm_response", "--format", "latex"});
  EXPECT_THAT(latex.out, HasSubstr("\\begin{tabular}"));
  const Output none = server_.Ablate({"table", id, "--analysis", "rank"});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err, HasSubstr("label: \"rank\" isn't an analysis of "));
  EXPECT_THAT(none.err, HasSubstr("expected ranks or norm_response"));
}

}  // namespace
}  // namespace ablate::e2e
