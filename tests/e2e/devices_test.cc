// Tests a server whose worker program says that there is a GPU, which can't be used.
#include <algorithm>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;

// The programs, in a folder with another ablate-worker: a script that lists a GPU, whose worker
// writes its arguments to a file and fails. Other workers are real.
class DevicesTest : public ::testing::Test {
 protected:
  DevicesTest() {
    std::filesystem::create_directories(bin_);
    for (const char* program : {"ablate", "ablated"}) {
      std::filesystem::copy_file(std::string(ABLATE_BIN "/") + program, bin_ + "/" + program);
    }
    const std::string worker = bin_ + "/ablate-worker";
    WriteFile(worker,
              "#!/bin/sh\n"
              "case \"$*\" in\n"
              "--list-devices) echo '{\"index\":2,\"uuid\":\"GPU-a\"}'; exit;;\n"
              "*--device=cuda*) echo \"$*\" >> \"$0.starts\"\n"
              "  echo \"$CUDA_VISIBLE_DEVICES is broken\" >&2; exit 7;;\n"
              "esac\n"
              "exec " ABLATE_BIN "/ablate-worker \"$@\"\n");
    std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  }

  void Up(const std::string& devices) {
    const Output output =
        RunProgram({bin_ + "/ablate", "up", "--devices", devices, "--gpu-lanes", "3"}, "",
                   {{"ABLATE_HOME", server_.home()}, {"ABLATE_SERVER", ""}});
    ASSERT_EQ(output.exit_code, 0) << output.err << output.out;
  }

  // Returns a worker that `ablate workers` lists, or null.
  nlohmann::json Worker(const std::string& name) const {
    const nlohmann::json list = server_.Json({"workers", "--json"});
    for (const nlohmann::json& worker : list["workers"]) {
      if (worker["name"] == "workers/" + name) return worker;
    }
    return nullptr;
  }

  PersonalServer server_;
  const std::string bin_ = server_.home() + "-bin";
};

TEST_F(DevicesTest, ADeviceThatCannotBeUsedIsShownAndTheCoresTrain) {
  Up("cuda:2");
  for (const char* worker : {"cuda-2-train", "cuda-2-analysis", "cuda-2-programs"}) {
    ASSERT_TRUE(Eventually([&] { return !Worker(worker).is_null(); }));
  }
  EXPECT_EQ(Worker("cuda-2-analysis")["role"], "analysis");
  const nlohmann::json drained = Worker("cuda-2-train");
  EXPECT_EQ(drained["stalled"], "exit code 7: GPU-a is broken");
  EXPECT_EQ(drained["state"], "AWAY");
  const std::string starts = ReadFile(bin_ + "/ablate-worker.starts");
  EXPECT_EQ(std::count(starts.begin(), starts.end(), '\n'), 9) << "three of each";
  EXPECT_THAT(starts, HasSubstr("--role=analysis --name=cuda-2-analysis --lock=" + server_.home() +
                                "/run/GPU-a-analysis.lock"));
  EXPECT_THAT(starts, HasSubstr("--name=cuda-2-programs --lock=" + server_.home() +
                                "/run/GPU-a-programs.lock"));
  EXPECT_THAT(starts,
              HasSubstr("--name=cuda-2-train --lock=" + server_.home() + "/run/GPU-a.lock"));
  EXPECT_THAT(starts, HasSubstr(" --blobs=" + server_.home() + "/blobs "));
  EXPECT_THAT(starts, HasSubstr(" --device=cuda --lanes=3\n"));
  const std::string yaml = SmallNames("small", 5, "seeds: {count: 1}\n");
  EXPECT_EQ(server_.Ablate({"submit", "-", "--wait"}, yaml).exit_code, 0);
  const Output refused =
      server_.Ablate({"submit", "-", "--set", "training.device=cuda", "--dry-run"}, yaml);
  EXPECT_THAT(refused.err, HasSubstr("no GPU worker is known to this server"));
}

TEST_F(DevicesTest, RefusesADeviceThatIsNotThere) {
  const Output output = RunProgram({bin_ + "/ablate", "up", "--devices", "cuda:0"}, "",
                                   {{"ABLATE_HOME", server_.home()}, {"ABLATE_SERVER", ""}});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("--devices: there is no cuda:0 (1 GPU is listed)"));
}

TEST_F(DevicesTest, NoneIsUsedIfNoneIsWanted) {
  Up("none");
  ASSERT_TRUE(Eventually([this] { return !Worker("cpu-train").is_null(); }));
  EXPECT_FALSE(std::filesystem::exists(bin_ + "/ablate-worker.starts"));
}

}  // namespace
}  // namespace ablate::e2e
