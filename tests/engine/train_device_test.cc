// Tests the backend of accelerators on the CPU: blocks of updates, frozen updates, its graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/engine/torch/device/accelerator_parts.h"
#include "server/engine/torch/device/device_backend.h"
#include "server/engine/torch/train/run_loop.h"
#include "tests/engine/device_runs.h"
#include "tests/engine/host_stream.h"

namespace ablate::engine {
namespace {

// A device without runs before.
struct HostDevice {
  HostStreamLog log;
  HostStreams streams{&log};
  EndedRuns ended;

  std::unique_ptr<Trainer> Make(const RunConfig& run) {
    PrepareLaneThread();
    auto trainer = RunLoop::Make(run, [&](const RunConfig& config) {
      return MakeDeviceBackend(config, "tested", streams, ended);
    });
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    return *std::move(trainer);
  }
};

// Returns the output of a run by calls of `steps` updates on a new device.
RunOutput TrainedBy(uint32_t steps, const RunConfig& run) {
  HostDevice device;
  return TrainBy(steps, *device.Make(run));
}

TEST(DeviceBackendTest, MakesTheBitsOfSingleStepsInBlocks) {
  for (const auto& [name, run] : DeviceRuns()) {
    const RunOutput single = TrainedBy(1, run);
    EXPECT_EQ(single.outcome, Outcome::kDone);
    EXPECT_TRUE(TrainedBy(1000, run) == single) << name;
    EXPECT_TRUE(TrainedBy(7, run) == single) << name;
  }
}

TEST(DeviceBackendTest, ResumesWithTheSameBitsAtAnyStep) {
  for (const auto& [name, run] : DeviceRuns()) {
    const RunOutput whole = TrainedBy(1000, run);
    for (const uint32_t at : {3u, 10u, 16u}) {
      HostDevice device;
      const auto make = [&](const RunConfig& config) { return device.Make(config); };
      EXPECT_TRUE(TrainResumed(at, run, make) == whole) << name << " at step " << at;
    }
  }
}

TEST(DeviceBackendTest, EndsADivergingRunAtTheStepOfTheReference) {
  const RunConfig run = DivergingRun();
  const RunOutput single = TrainedBy(1, run);
  EXPECT_EQ(single.outcome, Outcome::kDiverged);
  EXPECT_GT(single.step, 1u);
  EXPECT_LT(single.step, run.training.steps);
  EXPECT_TRUE(TrainedBy(1000, run) == single);
  EXPECT_EQ(TrainBy(1000, *MustMakeTrainer(run)).step, single.step);
}

TEST(DeviceBackendTest, WaitsOncePerBlockAndCapturesOncePerShape) {
  RunConfig run = SmallRecallRun(1);
  run.training.steps = 1000;
  run.evaluation.every = 1000;
  run.training.final_checkpoint = false;
  HostDevice device;
  Advance(*device.Make(run), 1000);
  EXPECT_EQ(device.log.captures, 2);  // an update, an evaluation
  EXPECT_GE(device.log.replays, 1000);
  EXPECT_LT(device.log.waits, 200);
}

TEST(EndedRunsTest, GiveTheirGraphsToRunsWithOtherSeedsAndRates) {
  HostDevice device;
  for (auto [name, run] : DeviceRuns()) {
    TrainBy(1000, *device.Make(run));
    const int captures = device.log.captures;
    run.training.optimizer.learning_rate /= 2;
    run.training.steps += 5;
    if (run.model.dropout == 0) ++run.seed;
    EXPECT_TRUE(TrainBy(1000, *device.Make(run)) == TrainedBy(1000, run)) << name;
    EXPECT_EQ(device.log.captures, captures) << name;
  }
}

TEST(EndedRunsTest, GiveNothingToAnotherModel) {
  HostDevice device;
  RunConfig run = SmallTextRun(1);
  TrainBy(1000, *device.Make(run));
  const int captures = device.log.captures;
  run.training.optimizer.beta1 = 0.5;
  EXPECT_TRUE(TrainBy(1000, *device.Make(run)) == TrainedBy(1000, run));
  EXPECT_GT(device.log.captures, captures);
}

TEST(DeviceBackendTest, TriesAgainWithTheMemoryOfEndedRuns) {
  RunConfig run = SmallDocumentsRun(4);
  run.model.norm.kind = NormKind::kBatch;
  const RunOutput expected = TrainedBy(1000, run);
  for (const bool in_cuda : {false, true}) {
    HostDevice device;
    TrainBy(1000, *device.Make(SmallTextRun(1)));
    device.log.failing_work = 1;
    device.log.fails_in_cuda = in_cuda;
    EXPECT_TRUE(TrainBy(1000, *device.Make(run)) == expected);
    EXPECT_EQ(device.log.releases, 1);
    EXPECT_EQ(device.ended.Take(GraphKey(SmallTextRun(1))), nullptr);
  }
}

TEST(DeviceBackendTest, GoesOnIfTheFirstUpdateOfABlockRunsOutOfMemory) {
  HostDevice device;
  const auto trainer = device.Make(SmallTextRun(1));
  RunOutput output;
  AddOutput(Advance(*trainer, 8), &output);
  device.log.failing_replay = 1;
  EXPECT_EQ(trainer->Advance(8, [] { return false; }).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(trainer->ExportState().ok());
  while (output.outcome == Outcome::kTraining) AddOutput(Advance(*trainer, 8), &output);
  output.state = *trainer->ExportState();
  EXPECT_TRUE(output == TrainedBy(8, SmallTextRun(1)));
}

TEST(DeviceBackendTest, ExportsNoStateThatSomeUpdatesOfABlockHaveMoved) {
  HostDevice device;
  const auto trainer = device.Make(SmallTextRun(1));
  Advance(*trainer, 8);
  device.log.failing_replay = 2;
  EXPECT_EQ(trainer->Advance(8, [] { return false; }).status().code(),
            absl::StatusCode::kResourceExhausted);
  const auto state = trainer->ExportState();
  EXPECT_EQ(state.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(state.status().message(), testing::HasSubstr("the state is lost"));
}

TEST(AcceleratorTest, TellsItsMemoryAndReleasesThatOfEndedRuns) {
  HostStreamLog log;
  log.memory = {30, 80};
  Accelerator accelerator(std::make_shared<HostStreams>(&log));
  const auto memory = MemoryOf(accelerator);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->free, 30u);
  EXPECT_EQ(memory->total, 80u);
  const RunConfig run = SmallTextRun(1);
  accelerator.ended().Put(GraphKey(run),
                          std::make_unique<DeviceRun>(run, accelerator.streams().NewStream()));
  ReleaseMemory(accelerator);
  EXPECT_EQ(log.releases, 1);
  EXPECT_EQ(accelerator.ended().Take(GraphKey(run)), nullptr);
}

TEST(DeviceBackendTest, SaysThatMemoryIsShort) {
  HostDevice device;
  const auto trainer = device.Make(SmallTextRun(1));
  device.log.failing_work = 2;
  EXPECT_EQ(trainer->Advance(1, [] { return false; }).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(TrainBy(1000, *trainer) == TrainedBy(1000, SmallTextRun(1)));
}

TEST(DeviceBackendTest, MakesTheUpdatesBeforeOneThatMustFail) {
  RunConfig run = SmallDocumentsRun(4);
  run.model.norm.kind = NormKind::kBatch;
  HostStreams streams;
  EndedRuns ended;
  const auto backend = MakeDeviceBackend(run, "tested", streams, ended);
  const auto source = MakeBatchSource(run);
  const TokenBatch good = (*source)->Next();
  TokenBatch bad = good.Rows(0, 1);
  bad.rows = bad.length = 1;
  bad.inputs.resize(1);
  bad.targets.resize(1);
  bad.lengths = {1};
  std::vector<UpdateResult> results;
  EXPECT_TRUE((*backend)->StepBlock({{good, 0, 0.1}, {bad, 1, 0.1}}, &results).ok());
  EXPECT_EQ(results.size(), 1u);
  EXPECT_FALSE((*backend)->StepBlock({{bad, 1, 0.1}}, &results).ok());
}

TEST(EndedRunsTest, AreDroppedWhenThereAreTooMany) {
  HostStreams streams;
  EndedRuns ended;
  RunConfig run = SmallTextRun(1);
  for (int i = 0; i < 17; ++i) {
    run.training.optimizer.beta1 = 0.5 + 0.01 * i;
    ended.Put(GraphKey(run), std::make_unique<DeviceRun>(run, streams.NewStream()));
  }
  EXPECT_NE(ended.Take(GraphKey(run)), nullptr);
  EXPECT_EQ(ended.Take(GraphKey(run)), nullptr);
  run.training.optimizer.beta1 = 0.5;
  EXPECT_EQ(ended.Take(GraphKey(run)), nullptr);
}

}  // namespace
}  // namespace ablate::engine
