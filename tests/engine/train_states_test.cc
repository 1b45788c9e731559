// Tests states moved from one trainer to another: resumed, rejected, and extended by more steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "server/config/estimate.h"
#include "server/engine/core/layout.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

// Trains the run as a whole, and in parts of seven steps, each with a new trainer.
void ExpectTheSameWhenMoved(RunConfig run) {
  run.training.clip = 0.5;
  run.training.checkpoints = {0, 14};
  const auto straight = MustMakeTrainer(run);
  const RunProgress whole = Advance(*straight, 1000);
  EXPECT_EQ(whole.outcome, Outcome::kDone);

  auto moving = MustMakeTrainer(run);
  RunProgress parts;
  while (parts.outcome == Outcome::kTraining) {
    RunProgress part = Advance(*moving, 7);
    parts.outcome = part.outcome;
    parts.step = part.step;
    std::move(part.points.begin(), part.points.end(), std::back_inserter(parts.points));
    std::move(part.checkpoints.begin(), part.checkpoints.end(),
              std::back_inserter(parts.checkpoints));
    const absl::StatusOr<std::string> state = moving->ExportState();
    ASSERT_TRUE(state.ok()) << state.status();
    moving = MustMakeTrainer(run);
    ASSERT_TRUE(moving->ImportState(*state).ok());
  }
  EXPECT_EQ(Exactly(parts.points), Exactly(whole.points));
  ASSERT_EQ(parts.checkpoints.size(), 3u);
  ASSERT_EQ(whole.checkpoints.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(parts.checkpoints[i].step, whole.checkpoints[i].step);
    EXPECT_EQ(parts.checkpoints[i].safetensors, whole.checkpoints[i].safetensors);
  }
  EXPECT_EQ(*moving->ExportState(), *straight->ExportState());
}

using MakeRun = RunConfig (*)(uint32_t seed);

class ResumeTest : public testing::TestWithParam<std::tuple<MakeRun, OptimizerKind, Precision>> {};

TEST_P(ResumeTest, ContinuesBitForBitWhenMovedEverySevenSteps) {
  const auto [make_run, optimizer, precision] = GetParam();
  RunConfig run = make_run(3);
  run.training.optimizer.kind = optimizer;
  run.training.optimizer.momentum = 0.9;
  run.precision = precision;
  ExpectTheSameWhenMoved(run);
}

class ResumeOptionsTest
    : public testing::TestWithParam<std::tuple<OptimizerKind, void (*)(TrainingConfig*)>> {};

TEST_P(ResumeOptionsTest, ContinuesBitForBitWhenMovedEverySevenSteps) {
  const auto [optimizer, change] = GetParam();
  RunConfig run = SmallDocumentsRun(3);
  run.model.bias = true;
  run.training.optimizer.kind = optimizer;
  change(&run.training);
  ExpectTheSameWhenMoved(run);
}

INSTANTIATE_TEST_SUITE_P(
    Everything, ResumeOptionsTest,
    testing::Combine(testing::Values(OptimizerKind::kAdamW, OptimizerKind::kSgd),
                     testing::Values([](TrainingConfig* training) { training->accumulation = 2; },
                                     [](TrainingConfig* training) { training->ema = 0.9; },
                                     [](TrainingConfig* training) {
                                       training->label_smoothing = 0.1;
                                     },
                                     [](TrainingConfig* training) {
                                       training->optimizer.weight_decay_on =
                                           WeightDecayOn::kMatrices;
                                     },
                                     [](TrainingConfig* training) {
                                       training->schedule = {ScheduleKind::kOneCycle, 9};
                                     },
                                     [](TrainingConfig* training) {
                                       training->schedule = {ScheduleKind::kInverseSqrt, 9};
                                     })));

INSTANTIATE_TEST_SUITE_P(
    Everything, ResumeTest,
    testing::Combine(
        testing::Values<MakeRun>(SmallDocumentsRun, SmallRecallRun, SmallPairsRun, SmallTextRun),
        testing::Values(OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kSgd),
        testing::Values(Precision::kFloat32, Precision::kFloat64)));

// Returns a state with one metadata entry replaced.
std::string WithMetadata(const std::string& state, const std::string& key,
                         const std::string& value) {
  const auto file = ParseSafetensors(state);
  std::map<std::string, std::string> metadata = file->metadata;
  metadata[key] = value;
  return *WriteSafetensors(file->tensors, metadata);
}

TEST(ImportStateTest, RefusesWhatDoesNotFitAndChangesNothing) {
  const auto trainer = MustMakeTrainer(SmallDocumentsRun(1));
  Advance(*trainer, 3);
  const std::string before = *trainer->ExportState();
  RunConfig other = SmallDocumentsRun(1);
  other.model.hidden = 24;
  const std::string wider = *MustMakeTrainer(other)->ExportState();
  const std::string seed = *MustMakeTrainer(SmallDocumentsRun(2))->ExportState();

  const auto import = [&](const std::string& state) { return trainer->ImportState(state); };
  const absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;
  const absl::StatusCode kMalformed = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(import(WithMetadata(before, "trainer", "native")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "numerics_version", "0")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "environment", "torch 1.0.0, AVX")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "optimizer", "sgd")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "precision", "float64")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "format", "ablate.checkpoint")).code(), kRefused);
  EXPECT_EQ(import(wider).code(), kRefused);
  EXPECT_EQ(import(seed).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "step", "31")).code(), kMalformed);
  EXPECT_EQ(import(WithMetadata(before, "outcome", "unknown")).code(), kMalformed);
  EXPECT_EQ(import(before.substr(0, before.size() - 1)).code(), kMalformed);
  EXPECT_EQ(import("").code(), kMalformed);
  EXPECT_EQ(*trainer->ExportState(), before);
}

TEST(ResumeStateTest, IsAsLargeAsEstimatedForEveryOptimizer) {
  RunConfig run = SmallRecallRun(1);
  run.model.width = 64;
  run.model.hidden = 256;
  const uint64_t parameters = static_cast<uint64_t>(MakeLayout(run.model).size);
  ASSERT_GT(parameters, 40'000u) << "so that a slot more or less is seen";
  for (const OptimizerKind kind :
       {OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kSgd}) {
    for (const double share : {0., .9}) {
      run.training.optimizer.kind = kind;
      run.training.optimizer.momentum = share;
      run.training.ema = share;
      const auto trainer = MustMakeTrainer(run);
      Advance(*trainer, 2);
      const absl::StatusOr<std::string> state = trainer->ExportState();
      ASSERT_TRUE(state.ok()) << state.status();
      const double estimate = static_cast<double>(spec::ResumeBytes(run.training, {parameters}));
      EXPECT_NEAR(static_cast<double>(state->size()), estimate,
                  2. * static_cast<double>(parameters))
          << OptimizerSlots(run.training).size() << " slots, momentum and ema " << share;
    }
  }
}

// Returns a run of `steps` updates, with a schedule that doesn't depend on their number.
RunConfig GrowingRun(bool documents, OptimizerKind optimizer, uint32_t steps) {
  RunConfig run = documents ? SmallDocumentsRun(5) : SmallRecallRun(5);
  run.training.schedule.kind = ScheduleKind::kConstant;
  run.training.schedule.warmup = 4;
  run.training.optimizer.kind = optimizer;
  run.training.optimizer.momentum = 0.9;
  run.training.steps = steps;
  run.training.checkpoints = {0, 10, 17};
  return run;
}

class GrowTest : public testing::TestWithParam<std::tuple<bool, OptimizerKind, uint32_t>> {};

TEST_P(GrowTest, HasTheNumbersOfARunThatWasTrainedAtOnce) {
  const auto [documents, optimizer, ended] = GetParam();
  const auto straight = MustMakeTrainer(GrowingRun(documents, optimizer, 40));
  const RunProgress whole = Advance(*straight, 1000);

  const auto shorter = MustMakeTrainer(GrowingRun(documents, optimizer, ended));
  RunProgress first = Advance(*shorter, 1000);
  ASSERT_EQ(first.outcome, Outcome::kDone);
  const auto longer = MustMakeTrainer(GrowingRun(documents, optimizer, 40));
  ASSERT_TRUE(longer->ImportState(*shorter->ExportState()).ok());
  RunProgress rest = Advance(*longer, 1000);
  EXPECT_EQ(rest.outcome, Outcome::kDone);
  EXPECT_EQ(rest.step, 40u);

  // Points of the shorter run's end belong to that run only.
  std::vector<Point> points;
  for (const Point& point : first.points) {
    if (point.step < ended) points.push_back(point);
  }
  points.insert(points.end(), rest.points.begin(), rest.points.end());
  EXPECT_EQ(Exactly(points), Exactly(whole.points));
  std::vector<Checkpoint> checkpoints;
  for (Checkpoint& checkpoint : first.checkpoints) {
    if (checkpoint.step < ended) checkpoints.push_back(std::move(checkpoint));
  }
  std::move(rest.checkpoints.begin(), rest.checkpoints.end(), std::back_inserter(checkpoints));
  ASSERT_EQ(checkpoints.size(), whole.checkpoints.size());
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    EXPECT_EQ(checkpoints[i].step, whole.checkpoints[i].step);
    EXPECT_EQ(checkpoints[i].safetensors, whole.checkpoints[i].safetensors);
  }
  EXPECT_EQ(*longer->ExportState(), *straight->ExportState());
}

// Ends that coincide with an evaluation (10 and 20), a checkpoint (10 and 17), neither, or the
// warm-up.
INSTANTIATE_TEST_SUITE_P(
    Everything, GrowTest,
    testing::Combine(testing::Bool(), testing::Values(OptimizerKind::kAdamW, OptimizerKind::kSgd),
                     testing::Values(3, 10, 17, 20, 23)));

TEST(ImportStateTest, EndsARunThatDivergedOrIsDoneWhereItIs) {
  const RunConfig run = GrowingRun(false, OptimizerKind::kAdamW, 20);
  const auto shorter = MustMakeTrainer(run);
  Advance(*shorter, 1000);
  const std::string state = *shorter->ExportState();
  const auto same = MustMakeTrainer(run);
  ASSERT_TRUE(same->ImportState(state).ok());
  const RunProgress done = Advance(*same, 1000);
  EXPECT_EQ(done.outcome, Outcome::kDone);
  EXPECT_TRUE(done.points.empty());
  const auto longer = MustMakeTrainer(GrowingRun(false, OptimizerKind::kAdamW, 40));
  ASSERT_TRUE(longer->ImportState(WithMetadata(state, "outcome", "diverged")).ok());
  const RunProgress diverged = Advance(*longer, 1000);
  EXPECT_EQ(diverged.outcome, Outcome::kDiverged);
  EXPECT_EQ(diverged.step, 20u);
  EXPECT_TRUE(diverged.points.empty());
}

}  // namespace
}  // namespace ablate::engine
