// Runs that share their tensors, as they do on a GPU: here on the CPU, where a stack can be looked
// into.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/train/boundary.h"
#include "server/engine/train/run_loop.h"
#include "server/engine/train/torch_backend.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

constexpr auto kGo = [] { return false; };

std::unique_ptr<RunLoop> MakeStack(const std::vector<RunConfig>& configs) {
  PrepareLaneThread();
  absl::StatusOr<std::unique_ptr<RunLoop>> stack = RunLoop::Make(configs, MakeTorchBackend);
  EXPECT_TRUE(stack.ok()) << stack.status();
  return *std::move(stack);
}

void Finish(RunLoop& stack) {
  absl::StatusOr<bool> stepped = true;
  while (stepped.ok() && *stepped) stepped = stack.Step(kGo);
  EXPECT_TRUE(stepped.ok()) << stepped.status();
}

// Three runs of which the middle one has a learning rate of its own; each keeps an average.
std::vector<RunConfig> Three(double middle_rate) {
  std::vector<RunConfig> configs = {SmallRecallRun(1), SmallRecallRun(2), SmallRecallRun(3)};
  for (RunConfig& config : configs) {
    config.training.optimizer.kind = OptimizerKind::kSgd;
    config.training.ema = 0.9;
    config.training.accumulation = 2;
  }
  configs[1].training.optimizer.learning_rate = middle_rate;
  return configs;
}

TEST(RunLoopTest, FreezesADivergedRunWhileItsNeighboursGoOn) {
  const auto calm = MakeStack(Three(1e-3)), wild = MakeStack(Three(1e30));
  Finish(*calm);
  while (wild->TakeProgress(1).outcome == Outcome::kTraining) ASSERT_TRUE(*wild->Step(kGo));
  const std::string ended = *wild->ExportState(1);
  Finish(*wild);
  EXPECT_EQ(*wild->ExportState(1), ended);
  for (const int run : {0, 2}) {
    EXPECT_EQ(*wild->ExportState(run), *calm->ExportState(run));
    EXPECT_EQ(Exactly(wild->TakeProgress(run).points).back(),
              Exactly(calm->TakeProgress(run).points).back());
  }
}

TEST(RunLoopTest, JudgesEachRunsGradientAlone) {
  const std::vector<RunConfig> configs = {SteepRun(1), SteepRun(2), SteepRun(3)};
  const auto calm = MakeStack(configs), steep = MakeStack(configs);
  const std::string state = Steepened(configs[1], *steep->ExportState(1));
  ASSERT_TRUE(steep->ImportState(1, state).ok());
  Finish(*calm);
  Finish(*steep);
  const RunProgress ended = steep->TakeProgress(1);
  EXPECT_EQ(ended.outcome, Outcome::kDiverged);
  EXPECT_EQ(ended.step, 0u);
  for (const int run : {0, 2}) {
    EXPECT_EQ(steep->TakeProgress(run).outcome, Outcome::kDone);
    EXPECT_EQ(*steep->ExportState(run), *calm->ExportState(run));
  }
}

TEST(RunLoopTest, ReportsNoEvaluationBeforeAllOfItsRunsAreEvaluated) {
  const auto stack = MakeStack({SmallDocumentsRun(1), SmallDocumentsRun(2)});
  const auto stop = [] { return true; };
  int left = 0;
  bool complete = false;
  for (; !complete; ++left) {
    ASSERT_TRUE(*stack->Step(stop));
    const RunProgress first = stack->TakeProgress(0), second = stack->TakeProgress(1);
    complete = first.step == 1;
    EXPECT_EQ(second.step, first.step);
    EXPECT_EQ(first.points.empty(), !complete);
    EXPECT_EQ(second.points.empty(), !complete);
  }
  EXPECT_GT(left, 2);
}

std::string StateOf(Backend& backend) {
  const absl::StatusOr<RunTensors> tensors = backend.Tensors(0);
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  std::string state(tensors->parameters);
  absl::StrAppend(&state, tensors->buffers);
  for (const NamedBytes& slot : tensors->slots) absl::StrAppend(&state, slot.bytes);
  return state;
}

// As running out of memory would, a token that does not exist ends the update in its second part.
TEST(TorchBackendTest, LeavesARunAsItWasWhenAPartOfItsUpdateFails) {
  RunConfig run = SmallRecallRun(1);
  run.model.norm.kind = NormKind::kBatch;  // whose statistics the parts before have changed
  run.training.accumulation = 4;
  run.training.ema = 0.9;
  const auto source = MakeBatchSource(run);
  const TokenBatch batch = (*source)->Next();
  TokenBatch broken = batch;
  broken.inputs[broken.inputs.size() / 2 - 1] = run.model.vocabulary;
  PrepareLaneThread();
  const auto failing = MakeTorchBackend({run}), calm = MakeTorchBackend({run});
  for (uint32_t step = 0; step < 3; ++step) {
    const std::string before = StateOf(**failing);
    EXPECT_EQ((*failing)->Step({{&broken, step, 0.01}}).status().code(),
              absl::StatusCode::kInternal);
    EXPECT_EQ(StateOf(**failing), before);
    const auto made = (*failing)->Step({{&batch, step, 0.01}});
    const auto expected = (*calm)->Step({{&batch, step, 0.01}});
    ASSERT_TRUE(made.ok() && expected.ok());
    EXPECT_TRUE(made->front().made);
    EXPECT_EQ(made->front().gradient_norm, expected->front().gradient_norm);
    EXPECT_EQ(StateOf(**failing), StateOf(**calm));
  }
}

// Documents of a stack differ in length, so that runs are padded to their neighbours'.
TEST(RunLoopTest, TrainsEachRunAsItWouldBeAlone) {
  std::vector<RunConfig> configs = {SmallDocumentsRun(1), SmallDocumentsRun(2),
                                    SmallDocumentsRun(3)};
  for (RunConfig& config : configs) {
    config.precision = Precision::kFloat64;
    config.training.batch = 4;
    config.training.accumulation = 2;
    config.training.label_smoothing = 0.1;
    config.training.ema = 0.9;
    config.training.optimizer.weight_decay_on = WeightDecayOn::kMatrices;
  }
  configs[2].training.optimizer.beta1 = 0.8;
  const auto together = MakeStack(configs);
  Finish(*together);
  for (int run = 0; run < 3; ++run) {
    const auto alone = MakeStack({configs[run]});
    Finish(*alone);
    const std::vector<Point> expected = alone->TakeProgress(0).points;
    const std::vector<Point> points = together->TakeProgress(run).points;
    ASSERT_EQ(points.size(), expected.size());
    for (size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(points[i].key, expected[i].key);
      EXPECT_NEAR(points[i].value, expected[i].value, 1e-9);
    }
  }
}

TEST(RunLoopTest, TrainsOnWhenARunJoinsAtAnotherStep) {
  const auto ahead = MakeStack({SmallRecallRun(2)});
  for (int step = 0; step < 12; ++step) ASSERT_TRUE(*ahead->Step(kGo));
  const auto stack = MakeStack({SmallRecallRun(1), SmallRecallRun(2)});
  ASSERT_TRUE(stack->ImportState(1, *ahead->ExportState(0)).ok());
  Finish(*stack);
  Finish(*ahead);
  EXPECT_EQ(stack->TakeProgress(0).step, 30u);
  const std::vector<double> joined = ValuesOf(stack->TakeProgress(1).points, "eval/loss");
  const std::vector<double> alone = ValuesOf(ahead->TakeProgress(0).points, "eval/loss");
  ASSERT_EQ(joined.size(), 2u);  // at 20 and 30
  EXPECT_NEAR(joined.back(), alone.back(), 1e-5);
}

TEST(AtBoundaryTest, TellsOutOfMemoryFromOtherErrors) {
  const absl::Status memory = AtBoundary([]() -> absl::Status {
    at::empty({int64_t{1} << 55});
    return absl::OkStatus();
  });
  EXPECT_EQ(memory.code(), absl::StatusCode::kResourceExhausted) << memory;
  const absl::Status shape = AtBoundary([]() -> absl::Status {
    at::ones({2, 3}).mm(at::ones({2, 3}));
    return absl::OkStatus();
  });
  EXPECT_EQ(shape.code(), absl::StatusCode::kInternal) << shape;
}

TEST(AtBoundaryTest, KnowsTheErrorsThatLoseTheDevice) {
  const auto thrown = [](auto error) { return AtBoundary([&]() -> absl::Status { throw error; }); };
  const c10::SourceLocation here{"", "", 0};
  EXPECT_EQ(thrown(c10::AcceleratorError(here, 700, "CUDA error: an illegal memory access")).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(thrown(c10::Error(here, "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED")).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(thrown(c10::AcceleratorError(here, 2, "CUDA error: out of memory")).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace ablate::engine
