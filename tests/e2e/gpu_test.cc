// Trains, analyses and draws samples on a GPU that isn't one: NVIDIA's management library and the
// plugin are replaced, and the plugin's device is in the host's memory.
#include <cstring>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTrains[] = "cuda-0-train", kAnalyses[] = "cuda-0-analysis";

// The programs, in a folder with the plugin.
class GpuTest : public ::testing::Test {
 protected:
  // Starts the server with a GPU of so much memory, in bytes, and waits for these workers.
  void Start(const std::string& memory, const std::vector<std::string>& workers) {
    std::filesystem::create_directories(bin_);
    for (const char* program : {"ablate", "ablated", "ablate-worker"}) {
      std::filesystem::copy_file(std::string(ABLATE_BIN "/") + program, bin_ + "/" + program);
    }
    std::filesystem::copy_file(ABLATE_STRICT_PLUGIN, bin_ + "/libablate_cuda.so");
    const Output output = RunProgram({bin_ + "/ablate", "up", "--devices", "cuda:0"}, "",
                                     {{"ABLATE_HOME", server_.home()},
                                      {"ABLATE_SERVER", ""},
                                      {"ABLATE_STRICT_MEMORY", memory},
                                      {"LD_LIBRARY_PATH", ABLATE_FAKE_NVML}});
    EXPECT_EQ(output.exit_code, 0) << output.err << output.out;
    for (const std::string& worker : workers) {
      EXPECT_TRUE(Eventually([&] { return Worker(worker)["state"] == "IDLE"; }))
          << server_.Ablate({"workers"}).out;
    }
  }

  nlohmann::json Worker(const std::string& name) const {
    const nlohmann::json list = server_.Json({"workers", "--json"});
    for (const nlohmann::json& worker : list["workers"]) {
      if (worker["name"] == "workers/" + name) return worker;
    }
    return {{"state", ""}};
  }

  // Trains an experiment, and returns its ID.
  std::string Trained(const std::string& yaml, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {"submit", "-", "--wait", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const nlohmann::json submitted = server_.Json(arguments, yaml);
    return submitted["experiment"]["name"].get<std::string>().substr(std::strlen("experiments/"));
  }

  // Trains a model that is large enough for a GPU's analyses, and returns its run.
  std::string TrainedLarge() const {
    return Trained(SmallNames("large", 1, "seeds: {count: 1}\n"),
                   {"--set", "training.device=cpu", "--set", "training.batch=1", "--set",
                    "training.learning_rate=0.0001", "--set", "model.width=512", "--set",
                    "model.layers=4", "--set", "model.heads=4"}) +
           "/s0";
  }

  nlohmann::json Notes(const std::string& kind, const std::string& run) const {
    return server_.Json({"analyze", kind, run, "--json"})["notes"];
  }

  PersonalServer server_;
  const std::string bin_ = server_.home() + "-bin";
};

TEST_F(GpuTest, TrainsThere) {
  Start("16e9", {kTrains, kAnalyses});
  const std::string id =
      Trained(SmallNames("small", 12, "seeds: {count: 3}\n"), {"--set", "training.device=cuda"});
  const nlohmann::json runs = server_.Json({"runs", id, "--json"});
  ASSERT_EQ(runs["rows"].size(), 3u);
  for (const nlohmann::json& run : runs["rows"]) EXPECT_EQ(run["state"], "DONE") << run.dump(2);
  EXPECT_TRUE(Eventually([&] { return Worker(kTrains).contains("device_use"); }));
  nlohmann::json gpu = Worker(kTrains);
  EXPECT_THAT(gpu["device"].get<std::string>(), HasSubstr("strict device"));
  EXPECT_EQ(gpu["device_use"]["utilization"], 50);
  const std::string log = server_.Ablate({"logs", id + "/s0"}).out;
  EXPECT_THAT(log, HasSubstr(kTrains));
}

TEST_F(GpuTest, AnalysesLargeModelsThere) {
  Start("16e9", {kTrains, kAnalyses});
  const std::string large = TrainedLarge();
  EXPECT_THAT(Notes("predictions", large), Contains("computed on strict device"));
  EXPECT_THAT(Notes("attention", large), Contains("computed on strict device"));
  const Output samples = server_.Ablate({"generate", large, "--count", "2"});
  EXPECT_EQ(samples.exit_code, 0) << samples.err;
}

TEST_F(GpuTest, AnalysesOnTheCoresIfTheGpuHasTooLittleMemory) {
  // The model has 50 MB; analyses get a quarter of this, and training doesn't start with less.
  Start("100e6", {kTrains, kAnalyses});
  const std::string large = TrainedLarge();
  EXPECT_THAT(Notes("predictions", large), Not(Contains("computed on strict device")));
}

TEST_F(GpuTest, ServesAnalysesWhileTheGpuIsFull) {
  Start("1e4", {kAnalyses});
  EXPECT_TRUE(Eventually([&] { return Worker(kTrains).contains("stalled"); }))
      << server_.Ablate({"workers"}).out;
  EXPECT_EQ(Worker(kAnalyses)["state"], "IDLE");
}

}  // namespace
}  // namespace ablate::e2e
