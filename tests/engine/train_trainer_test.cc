// The trainer as its callers see it: points, checkpoints, resuming, ends of runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "server/engine/safetensors.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

const std::atomic<bool> kGo{false};

std::unique_ptr<Trainer> Make(const std::vector<RunConfig>& stack) {
  PrepareLaneThread();
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = MakeTorchTrainer(stack);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return *std::move(trainer);
}

RunProgress AdvanceOne(Trainer& trainer, uint32_t steps) {
  absl::StatusOr<std::vector<RunProgress>> progress = trainer.Advance(steps, kGo);
  EXPECT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(progress->size(), 1u);
  return std::move(progress->front());
}

// Points as exact text, so that equal means equal bits.
std::vector<std::string> Exactly(const std::vector<Point>& points) {
  std::vector<std::string> text;
  for (const Point& point : points) {
    text.push_back(point.key + " " + std::to_string(point.step) + " " +
                   std::to_string(std::bit_cast<uint64_t>(point.value)));
  }
  return text;
}

std::vector<uint32_t> StepsOf(const std::vector<Point>& points, const std::string& key) {
  std::vector<uint32_t> steps;
  for (const Point& point : points) {
    if (point.key == key) steps.push_back(point.step);
  }
  return steps;
}

class ResumeTest : public testing::TestWithParam<std::tuple<bool, OptimizerKind, Precision>> {};

TEST_P(ResumeTest, ContinuesBitForBitWhenMovedEverySevenSteps) {
  const auto [documents, optimizer, precision] = GetParam();
  RunConfig run = documents ? SmallDocumentsRun(3) : SmallRecallRun(3);
  run.training.optimizer.kind = optimizer;
  run.training.optimizer.momentum = 0.9;
  run.training.clip = 0.5;
  run.training.checkpoints = {0, 14};
  run.precision = precision;

  const auto straight = Make({run});
  const RunProgress whole = AdvanceOne(*straight, 1000);
  EXPECT_EQ(whole.outcome, Outcome::kDone);

  auto moving = Make({run});
  RunProgress parts;
  while (parts.outcome == Outcome::kTraining) {
    RunProgress part = AdvanceOne(*moving, 7);
    parts.outcome = part.outcome;
    parts.step = part.step;
    std::move(part.points.begin(), part.points.end(), std::back_inserter(parts.points));
    std::move(part.checkpoints.begin(), part.checkpoints.end(),
              std::back_inserter(parts.checkpoints));
    const absl::StatusOr<std::string> state = moving->ExportState(0);
    ASSERT_TRUE(state.ok()) << state.status();
    moving = Make({run});
    ASSERT_TRUE(moving->ImportState(0, *state).ok());
  }
  EXPECT_EQ(Exactly(parts.points), Exactly(whole.points));
  ASSERT_EQ(parts.checkpoints.size(), 3u);
  ASSERT_EQ(whole.checkpoints.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(parts.checkpoints[i].step, whole.checkpoints[i].step);
    EXPECT_EQ(parts.checkpoints[i].safetensors, whole.checkpoints[i].safetensors);
  }
  EXPECT_EQ(*moving->ExportState(0), *straight->ExportState(0));
}

INSTANTIATE_TEST_SUITE_P(
    Everything, ResumeTest,
    testing::Combine(testing::Bool(),
                     testing::Values(OptimizerKind::kAdamW, OptimizerKind::kAdam,
                                     OptimizerKind::kSgd),
                     testing::Values(Precision::kFloat32, Precision::kFloat64)));

TEST(TorchTrainerTest, EmitsEveryMetricAtItsSteps) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.steps = 25;
  const auto trainer = Make({run});
  const RunProgress progress = AdvanceOne(*trainer, 100);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_EQ(progress.step, 25u);
  std::vector<uint32_t> every(25);
  for (uint32_t step = 0; step < 25; ++step) every[step] = step;
  EXPECT_EQ(StepsOf(progress.points, "train/loss"), every);
  EXPECT_EQ(StepsOf(progress.points, "train/gradient_norm"), every);
  EXPECT_THAT(StepsOf(progress.points, "eval/loss"), testing::ElementsAre(0, 10, 20, 25));
  EXPECT_THAT(StepsOf(progress.points, "eval/accuracy"), testing::ElementsAre(0, 10, 20, 25));
}

}  // namespace
}  // namespace ablate::engine
