// Tests the backend of accelerators on the CPU: blocks of updates, frozen updates, its graphs.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/engine/device/device_backend.h"
#include "server/engine/train/run_loop.h"
#include "tests/engine/device_runs.h"
#include "tests/engine/host_stream.h"

namespace ablate::engine {
namespace {

std::unique_ptr<Trainer> MakeDeviceTrainer(const RunConfig& run, HostStreamLog* log = nullptr) {
  PrepareLaneThread();
  auto trainer = RunLoop::Make(run, [&](const RunConfig& config) {
    return MakeDeviceBackend(config, "tested", std::make_unique<HostStream>(log));
  });
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return *std::move(trainer);
}

TEST(DeviceBackendTest, MakesTheBitsOfSingleStepsInBlocks) {
  for (const auto& [name, run] : DeviceRuns()) {
    const RunOutput single = TrainBy(1, *MakeDeviceTrainer(run));
    EXPECT_EQ(single.outcome, Outcome::kDone);
    EXPECT_TRUE(TrainBy(1000, *MakeDeviceTrainer(run)) == single) << name;
    EXPECT_TRUE(TrainBy(7, *MakeDeviceTrainer(run)) == single) << name;
  }
}

TEST(DeviceBackendTest, ResumesWithTheSameBitsAtAnyStep) {
  for (const auto& [name, run] : DeviceRuns()) {
    const RunOutput whole = TrainBy(1000, *MakeDeviceTrainer(run));
    for (const uint32_t at : {3u, 10u, 16u}) {
      const auto make = [](const RunConfig& config) { return MakeDeviceTrainer(config); };
      EXPECT_TRUE(TrainResumed(at, run, make) == whole) << name << " at step " << at;
    }
  }
}

TEST(DeviceBackendTest, EndsADivergingRunAtTheStepOfTheReference) {
  const RunConfig run = DivergingRun();
  const RunOutput single = TrainBy(1, *MakeDeviceTrainer(run));
  EXPECT_EQ(single.outcome, Outcome::kDiverged);
  EXPECT_GT(single.step, 1u);
  EXPECT_LT(single.step, run.training.steps);
  EXPECT_TRUE(TrainBy(1000, *MakeDeviceTrainer(run)) == single);
  EXPECT_EQ(TrainBy(1000, *MustMakeTrainer(run)).step, single.step);
}

TEST(DeviceBackendTest, WaitsOncePerBlockAndCapturesOncePerShape) {
  RunConfig run = SmallRecallRun(1);
  run.training.steps = 1000;
  run.evaluation.every = 1000;
  run.training.final_checkpoint = false;
  HostStreamLog log;
  const auto trainer = MakeDeviceTrainer(run, &log);
  Advance(*trainer, 1000);
  EXPECT_EQ(log.captures, 2);  // an update, an evaluation
  EXPECT_GE(log.replays, 1000);
  EXPECT_LT(log.waits, 200);
}

}  // namespace
}  // namespace ablate::engine
