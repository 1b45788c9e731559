// Tests the scripts of Slurm pilots, how squeue is read, and how a pool follows the server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/cluster/launcher.h"
#include "client/cluster/slurm.h"

namespace ablate::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

SlurmOptions Options() {
  SlurmOptions options;
  options.cluster = "slurm";
  options.join = "/home/ada/it's.join";
  options.worker = "/opt/ablate/bin/ablate-worker";
  options.log_folder = "/home/ada/logs";
  options.sbatch = {"--partition=gpu", "--time=4:00:00"};
  return options;
}

TEST(SlurmTest, WritesAScriptThatBecomesTheWorker) {
  EXPECT_EQ(PilotScript(Options(), "slurm-1a", /*stays=*/false),
            "#!/bin/bash\n"
            "#SBATCH --no-requeue\n"
            "#SBATCH --signal=B:TERM@120\n"
            "#SBATCH --output=/home/ada/logs/slurm-1a.log\n"
            "exec '/opt/ablate/bin/ablate-worker' --join '/home/ada/it'\\''s.join' --name slurm-1a "
            "--device cpu --lanes \"$SLURM_CPUS_ON_NODE\" --exit-when-idle 5m \\\n"
            "  --time-left \"$(squeue -h -j \"$SLURM_JOB_ID\" -o %L)\"\n");
  EXPECT_THAT(SbatchLine(Options(), "slurm-1a"),
              ElementsAre("sbatch", "--parsable", "--partition=gpu", "--time=4:00:00",
                          "--job-name=slurm-1a"));
}

TEST(SlurmTest, AddsAndLeavesOutWhatASiteNeeds) {
  SlurmOptions options = Options();
  options.prologue = {"module load cuda", "umask 077"};
  options.skip = {"no-requeue", "signal"};
  options.device = "cuda";
  options.worker_options = "--programs sandboxed --program-folder \"$TMPDIR\"";
  const std::string script = PilotScript(options, "slurm-1a", /*stays=*/true);
  EXPECT_THAT(
      script,
      AllOf(HasSubstr("\nmodule load cuda\numask 077\nexec "), HasSubstr(" --device cuda \\\n"),
            HasSubstr("-o %L)\" --programs sandboxed --program-folder \"$TMPDIR\"\n")));
  for (const char* absent : {"no-requeue", "--signal", "--lanes", "--exit-when-idle"}) {
    EXPECT_THAT(script, Not(HasSubstr(absent)));
  }
}

TEST(SlurmTest, GivesPilotsTheirLanes) {
  SlurmOptions options = Options();
  options.lanes = 3;
  EXPECT_THAT(PilotScript(options, "slurm-1a", /*stays=*/false), HasSubstr(" --lanes 3 "));
}

TEST(SlurmTest, ReadsItsJobsAmongOthers) {
  const std::vector<LaunchedPilot> pilots = ReadSqueue(
      "squeue: warning: something about the site\n"
      "12|RUNNING|None|slurm-0000000a\n"
      "13|PENDING|Priority|slurm-0000000b\n"
      "14|PENDING|None|slurm-0000000c\n"
      "15|COMPLETING|None|slurm-0000000d\n"
      "16|RUNNING|None|slurm-test\n"
      "19|PENDING|None|slurm-gpu-0000000a\n"
      "17|PENDING|Resources|my|odd job\n"
      "18|CONFIGURING|None|slurm-0000000e\n",
      "slurm");
  ASSERT_THAT(pilots, SizeIs(4));
  EXPECT_EQ(pilots[0].handle, "12");
  EXPECT_EQ(pilots[0].worker, "slurm-0000000a");
  EXPECT_FALSE(pilots[0].pending);
  EXPECT_TRUE(pilots[1].pending);
  EXPECT_EQ(pilots[1].reason, "Priority");
  EXPECT_EQ(pilots[2].reason, "");
  EXPECT_TRUE(pilots[3].pending);
  EXPECT_THAT(ReadSqueue("", "slurm"), IsEmpty());
}

class FakeLauncher : public Launcher {
 public:
  absl::StatusOr<std::vector<LaunchedPilot>> List() override {
    if (!list_error.ok()) return list_error;
    return pilots;
  }
  absl::Status Start(const std::string& worker, bool stays) override {
    if (start_error.ok() || starts_nevertheless) {
      pilots.push_back({"job-" + worker, worker, true, "Priority"});
    }
    if (stays) ++staying;
    return start_error;
  }
  absl::Status End(const LaunchedPilot& pilot) override {
    ended.push_back(pilot.handle);
    return absl::OkStatus();
  }

  std::vector<LaunchedPilot> pilots;
  std::vector<std::string> ended;
  absl::Status list_error, start_error;
  bool starts_nevertheless = false;
  int staying = 0;
};

class PilotPoolTest : public testing::Test {
 protected:
  PilotPoolTest()
      : pool_(
            {"slurm", 1, 4, "cuda", 2}, &launcher_,
            [this](const worker::v1::SyncPilotsRequest& request)
                -> absl::StatusOr<worker::v1::SyncPilotsResponse> {
              reported_ = request;
              if (!server_error_.ok()) return server_error_;
              return std::exchange(orders_, {});
            },
            [this] { return std::to_string(++names_); },
            [this](const std::string& line) { said_.push_back(line); }) {}

  FakeLauncher launcher_;
  worker::v1::SyncPilotsRequest reported_;
  worker::v1::SyncPilotsResponse orders_;
  absl::Status server_error_;
  int names_ = 0;
  std::vector<std::string> said_;
  PilotPool pool_;
};

TEST_F(PilotPoolTest, StartsAndEndsAsTheServerSays) {
  orders_.set_start(2);
  EXPECT_TRUE(pool_.Round().ok());
  EXPECT_EQ(reported_.cluster(), "slurm");
  EXPECT_EQ(reported_.device_kind(), "cuda");
  EXPECT_EQ(reported_.lanes(), 2u);
  EXPECT_EQ(reported_.pilots_size(), 0);
  ASSERT_THAT(launcher_.pilots, SizeIs(2));
  EXPECT_EQ(launcher_.staying, 1) << "the first --min ones";
  orders_.add_end("slurm-2");
  EXPECT_TRUE(pool_.Round().ok());
  EXPECT_EQ(reported_.pilots_size(), 2);
  EXPECT_EQ(reported_.pilots(1).reason(), "Priority");
  EXPECT_THAT(launcher_.ended, ElementsAre("job-slurm-2"));
  EXPECT_THAT(said_,
              ElementsAre("0 pilots, 0 pending; started 2", "2 pilots, 2 pending; withdrew 1"));
}

TEST_F(PilotPoolTest, LooksAPilotUpBeforeItIsStartedAgain) {
  launcher_.start_error = absl::UnavailableError("sbatch failed: Socket timed out");
  launcher_.starts_nevertheless = true;
  orders_.set_start(2);
  EXPECT_FALSE(pool_.Round().ok());
  EXPECT_THAT(launcher_.pilots, SizeIs(1)) << "no second try in a round";
  EXPECT_TRUE(pool_.Round().ok());
  EXPECT_EQ(reported_.pilots_size(), 1) << "it had been started";
}

TEST_F(PilotPoolTest, StartsNothingWhileItDoesNotKnowThePilots) {
  launcher_.pilots = {{"1", "slurm-a", false, ""}};
  EXPECT_TRUE(pool_.Round().ok());
  launcher_.list_error = absl::UnavailableError("squeue failed: connection refused");
  orders_.set_start(3);
  EXPECT_FALSE(pool_.Round().ok());
  EXPECT_FALSE(pool_.Round().ok());
  EXPECT_EQ(reported_.trouble(), "squeue failed: connection refused");
  EXPECT_EQ(reported_.pilots_size(), 1) << "those that were known";
  EXPECT_THAT(launcher_.pilots, SizeIs(1));
  EXPECT_THAT(said_, ElementsAre("1 pilot, 0 pending", "squeue failed: connection refused"));
}

TEST_F(PilotPoolTest, DoesNothingWithoutTheServer) {
  server_error_ = absl::UnavailableError("no server answers");
  orders_.set_start(3);
  EXPECT_FALSE(pool_.Round().ok());
  EXPECT_THAT(launcher_.pilots, IsEmpty());
  server_error_ = absl::OkStatus();
  EXPECT_TRUE(pool_.Round().ok());
  EXPECT_THAT(launcher_.pilots, SizeIs(3));
}

TEST_F(PilotPoolTest, FloodsNoScheduler) {
  orders_.set_start(1000);
  EXPECT_TRUE(pool_.Round().ok());
  EXPECT_THAT(launcher_.pilots, SizeIs(25));
}

}  // namespace
}  // namespace ablate::client
