// Compares the native backend with the reference backend: evaluations, rejections and whole runs.
// tests/parity/update_test.cc checks its updates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/supports.h"
#include "server/engine/names.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"
#include "tests/native/start.h"
#include "tests/parity/grid.h"

namespace ablate::engine {
namespace {

EvaluationSums Evaluated(Backend& backend, const TokenBatch& batch) {
  EvaluationSums sums;
  EXPECT_TRUE(backend.Evaluate(Evaluated::kCurrent, {&batch, 1}, &sums).ok());
  return sums;
}

TEST(NativeParityTest, EvaluatesManyShortRowsAsEachByItself) {
  const std::vector<GridCase> grid = MakeGrid();
  int cases = 0;
  for (size_t i = 0; i < grid.size(); i += 3) {
    const RunConfig config = ConfigOf(grid[i]);
    if (!WhyNotNative(config).empty() || config.model.loss != LossPositions::kAll) continue;
    SCOPED_TRACE(Describe(grid[i], config));
    const Start start = StartOf(config, MakeLayout(config.model, config.training.rule));
    const auto native = NativeOf(config, start, native::BestKernels());
    const int64_t length = std::min<int64_t>(config.model.context, 1 + cases % 16);
    const TokenBatch batch = ShortRows(config.model, 35 + cases % 7, length);
    const EvaluationSums together = Evaluated(*native, batch);
    EvaluationSums alone;
    for (int64_t row = 0; row < batch.rows; ++row) {
      const EvaluationSums sums = Evaluated(*native, batch.Rows(row, 1));
      alone = {1, alone.loss + sums.loss, alone.correct + sums.correct, alone.tokens + sums.tokens};
    }
    EXPECT_NEAR(together.loss, alone.loss, 1e-12 * alone.loss);
    EXPECT_EQ(together.correct, alone.correct);
    EXPECT_EQ(together.tokens, alone.tokens);
    const EvaluationSums exact = Evaluated(*TorchOf(config, Precision::kFloat64, start), batch);
    EXPECT_NEAR(together.loss, exact.loss, 2e-5 * exact.loss);
    EXPECT_EQ(together.tokens, exact.tokens);
    ++cases;
  }
  EXPECT_GE(cases, 60);
}

// Returns the bytes of all of a run's tensors.
std::string TensorBytes(const RunTensors& tensors) {
  std::string bytes = absl::StrCat(tensors.parameters, tensors.buffers);
  for (const auto& slot : tensors.slots) absl::StrAppend(&bytes, slot.bytes);
  return bytes;
}

TEST(NativeParityTest, RefusesPartsOfOnePositionForBatchNormInTheSameWords) {
  PrepareLaneThread();
  RunConfig run = SmallTextRun(1);
  run.model.norm.kind = NormKind::kBatch;
  run.training.batch = run.training.accumulation = 2;
  constexpr int64_t kNone = TokenBatch::kIgnored;
  const TokenBatch batch = {2, 3, {1, 2, 3, 4, 0, 0}, {2, 3, 4, 5, kNone, kNone}, {3, 1}};
  const Start start = StartOf(run, MakeLayout(run.model));
  const auto refusal = [&](Backend& backend) {
    const std::string before = TensorBytes(*backend.Tensors());
    const absl::Status refused = backend.Step({batch, 0, 0.1}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInternal);
    EXPECT_TRUE(TensorBytes(*backend.Tensors()) == before);
    return std::string(refused.message());
  };
  const std::string native = refusal(*NativeOf(run, start, native::BestKernels()));
  EXPECT_EQ(native,
            "a batch of one position in all has no variance that BatchNorm could divide by");
  EXPECT_EQ(refusal(*TorchOf(run, Precision::kFloat32, start)), "LibTorch: " + native);
}

TEST(NativeParityTest, IsAsItWasAfterAnUpdateThatIsNotMade) {
  PrepareLaneThread();
  for (const NormKind kind : {NormKind::kLayer, NormKind::kBatch}) {
    RunConfig config = SmallTextRun(3);
    config.model.norm.kind = kind;
    const Start start = StartOf(config, MakeLayout(config.model));
    const Start huge = {start.values * 1e25, start.buffers};
    const auto used = NativeOf(config, huge, native::BestKernels());
    const auto bytes = [&] { return TensorBytes(*used->Tensors()); };
    const std::string before = bytes();
    const TokenBatch longer = ShortRows(config.model, 2, 5);
    const auto results = used->Step({longer, 0, 0.1});
    ASSERT_TRUE(results.ok());
    EXPECT_FALSE(results->made);
    EXPECT_EQ(bytes(), before);
    // Nothing of it affects later calls.
    const auto fresh = NativeOf(config, start, native::BestKernels());
    ASSERT_TRUE(used->SetTensors(*fresh->Tensors()).ok());
    const TokenBatch shorter = ShortRows(config.model, 2, 3);
    const auto after = used->Step({shorter, 0, 0.1}), wanted = fresh->Step({shorter, 0, 0.1});
    ASSERT_TRUE(after.ok() && wanted.ok());
    EXPECT_TRUE(wanted->made);
    EXPECT_EQ(after->loss, wanted->loss);
    EXPECT_EQ(after->gradient_norm, wanted->gradient_norm);
    EXPECT_EQ(bytes(), TensorBytes(*fresh->Tensors()));
  }
}

// The source experiment on names, one document per step.
RunConfig NativeNames(NormPlacement placement, bool final) {
  RunConfig run = NamesRun(42, placement, final);
  run.training.trainer = TrainerKind::kNative;
  return run;
}

std::vector<double> LossesOf(const RunConfig& config, uint32_t steps) {
  const auto trainer = MakeTrainer(config);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  const auto progress = (*trainer)->Advance(steps, [] { return false; });
  EXPECT_TRUE(progress.ok());
  std::vector<double> losses;
  for (const Point& point : progress->points) {
    if (point.key == "train/loss") losses.push_back(point.value);
  }
  return losses;
}

TEST(NativeTrainerTest, LearnsNamesAsTheReferenceTrainer) {
  PrepareLaneThread();
  for (const auto& [placement, final] :
       {std::pair(NormPlacement::kPre, true), std::pair(NormPlacement::kPost, false),
        std::pair(NormPlacement::kNone, false)}) {
    RunConfig run = NativeNames(placement, final);
    // Without norms a rounding error grows tenfold every few steps: by step 100 the reference
    // trainer differs by 0.05 from itself in float64.
    const uint32_t steps = placement == NormPlacement::kNone ? 20 : 100;
    const std::vector<double> native = LossesOf(run, steps);
    run.training.trainer = TrainerKind::kTorch;
    const std::vector<double> torch = LossesOf(run, steps);
    ASSERT_EQ(native.size(), steps);
    for (size_t step = 0; step < native.size(); ++step) {
      EXPECT_NEAR(native[step], torch[step], step < 3 ? 1e-5 : 2e-3) << step;
    }
  }
}

TEST(NativeTrainerTest, ResumesBitForBit) {
  PrepareLaneThread();
  RunConfig names = NativeNames(NormPlacement::kPre, true);
  names.model.dropout = 0.1;
  names.training.ema = 0.9;
  RunConfig statistics = SmallTextRun(1);
  statistics.model.norm.kind = NormKind::kBatch;
  RunConfig feedback = SmallTextRun(2);
  feedback.training.rule = LearningRule::kDirectFeedbackAlignment;
  for (RunConfig run : {names, statistics, feedback}) {
    run.training.trainer = TrainerKind::kNative;
    const auto whole = MakeTrainer(run), begun = MakeTrainer(run);
    const auto resumed = MakeTrainer(run);
    const auto endless = [] { return false; };
    ASSERT_TRUE((*whole)->Advance(25, endless).ok());
    ASSERT_TRUE((*begun)->Advance(17, endless).ok());
    ASSERT_TRUE((*resumed)->Advance(3, endless).ok());
    const auto state = (*begun)->ExportState();
    ASSERT_TRUE(state.ok()) << state.status();
    ASSERT_TRUE((*resumed)->ImportState(*state).ok());
    ASSERT_TRUE((*resumed)->Advance(8, endless).ok());
    EXPECT_EQ(*(*whole)->ExportState(), *(*resumed)->ExportState());
  }
}

TEST(NativeTrainerTest, RefusesAStateOfTheReferenceTrainer) {
  PrepareLaneThread();
  RunConfig run = NativeNames(NormPlacement::kPre, true);
  const auto native = MakeTrainer(run);
  run.training.trainer = TrainerKind::kTorch;
  const auto torch = MakeTrainer(run);
  EXPECT_EQ((*native)->ImportState(*(*torch)->ExportState()).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(NativeTrainerTest, SaysWhatItDoesNotTrain) {
  RunConfig run = NativeNames(NormPlacement::kPre, true);
  run.precision = Precision::kFloat64;
  EXPECT_EQ(MakeTrainer(run).status().message(),
            "training.trainer is native, but the native trainer computes in float32");
}

}  // namespace
}  // namespace ablate::engine
