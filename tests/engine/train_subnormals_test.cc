// Tests that every thread on which the engine computes takes subnormal numbers as 0.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/autograd.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/names.h"
#include "server/engine/samples.h"
#include "server/engine/torch/train/boundary.h"
#include "tests/engine/subnormal_product.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::SizeIs;

// Returns a run whose gradients get smaller from block to block until they are subnormal.
RunConfig VanishingRun(TrainerKind trainer) {
  RunConfig run = SmallDocumentsRun(1);
  run.model.layers = 16;
  run.model.residual = false;
  run.model.norm.placement = NormPlacement::kNone;
  run.model.norm.final = false;
  run.model.init.kind = InitKind::kGpt2;
  run.training.trainer = trainer;
  run.training.steps = 4;
  run.evaluation.every = 2;
  return run;
}

int CountSubnormals(absl::string_view state) {
  const absl::StatusOr<SafetensorsFile> file = ParseSafetensors(state);
  EXPECT_TRUE(file.ok()) << file.status();
  int subnormals = 0;
  for (const TensorView& tensor : file->tensors) {
    if (tensor.type != TensorType::kF32) continue;
    for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(float)) {
      uint32_t bits = 0;  // an arithmetic comparison would take it as 0
      std::memcpy(&bits, tensor.bytes.data() + at, sizeof bits);
      subnormals += (bits & 0x7f800000) == 0 && (bits & 0x7fffff) != 0 ? 1 : 0;
    }
  }
  return subnormals;
}

class SubnormalsTest : public ::testing::TestWithParam<TrainerKind> {};
INSTANTIATE_TEST_SUITE_P(, SubnormalsTest,
                         ::testing::Values(TrainerKind::kTorch, TrainerKind::kNative),
                         [](const auto& of) { return std::string(NameOf(of.param)); });

TEST_P(SubnormalsTest, Are0WhileARunIsTrainedAndEvaluated) {
  const std::unique_ptr<Trainer> trainer = MustMakeTrainer(VanishingRun(GetParam()));
  std::vector<float> products;
  const auto progress = trainer->Advance(4, [&] {
    products.push_back(SubnormalProduct());
    return false;
  });
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_GT(progress->evaluated, 2u);
  EXPECT_THAT(products, AllOf(SizeIs(::testing::Gt(4u)), Each(0)));
  EXPECT_GT(SubnormalProduct(), 0) << "the thread is as before";
}

TEST_P(SubnormalsTest, AreNotInARunsState) {
  const std::unique_ptr<Trainer> trainer = MustMakeTrainer(VanishingRun(GetParam()));
  Advance(*trainer, 4);
  const absl::StatusOr<std::string> state = trainer->ExportState();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(CountSubnormals(*state), 0);
}

// Calls `function` on a new thread, which shares LibTorch's operations with no other threads yet.
void OnNewThread(const std::function<void()>& function) {
  std::thread([&] {
    AtBoundary([&] { return function(), absl::OkStatus(); }).IgnoreError();
  }).join();
}

// Each of the threads computes a part of the elements.
TEST(SubnormalsOnThreadsTest, Are0OnEachThreadThatSharesAnOperation) {
  const at::Tensor subnormals = at::full({int64_t{1} << 20}, 1e-40F),
                   ones = at::ones_like(subnormals);
  ASSERT_EQ(subnormals.view(at::kInt).count_nonzero().item<int64_t>(), subnormals.numel());
  at::Tensor products;
  OnNewThread([&] {
    at::set_num_threads(3);
    products = subnormals * ones;
  });
  EXPECT_EQ(products.view(at::kInt).count_nonzero().item<int64_t>(), 0);
}

TEST(SubnormalsOnThreadsTest, AreNotInTheStateOfARunOfSeveralThreads) {
  RunConfig run = VanishingRun(TrainerKind::kTorch);
  run.training.threads = 2;
  run.model.width = 64;
  run.model.hidden = 512;
  run.training.batch = 64;
  std::string state;
  OnNewThread([&] {
    const std::unique_ptr<Trainer> trainer = MustMakeTrainer(run);
    Advance(*trainer, 4);
    state = *trainer->ExportState();
  });
  EXPECT_EQ(CountSubnormals(state), 0);
}

// Differentiates within a hook of a backward pass, `depth` deep. LibTorch gives deep passes to
// threads of its own.
void DifferentiateWithin(int depth, const std::function<void()>& innermost) {
  const at::AutoGradMode with_gradients(true);  // hooks run without
  const at::Tensor x = at::ones({1}).requires_grad_();
  x.register_hook([&, depth](const at::Tensor&) {
    if (depth > 0) {
      DifferentiateWithin(depth - 1, innermost);
    } else {
      innermost();
    }
  });
  (x * 2).sum().backward();
}

TEST(SubnormalsOnThreadsTest, Are0InABackwardPass) {
  for (const bool deep : {false, true}) {
    float product = -1;
    bool elsewhere = false;
    OnNewThread([&] {
      const std::thread::id caller = std::this_thread::get_id();
      DifferentiateWithin(deep ? 100 : 0, [&] {
        product = SubnormalProduct();
        elsewhere = std::this_thread::get_id() != caller;
      });
    });
    EXPECT_EQ(product, 0);
    EXPECT_EQ(elsewhere, deep);
  }
}

TEST(SubnormalsOnThreadsTest, Are0WhileSamplesAreDrawn) {
  for (const Precision precision : {Precision::kFloat32, Precision::kFloat64}) {
    RunConfig run = SmallDocumentsRun(1);
    run.precision = precision;
    const absl::StatusOr<std::string> checkpoint = MustMakeTrainer(run)->ExportCheckpoint();
    ASSERT_TRUE(checkpoint.ok());
    std::vector<float> products;
    const std::atomic<bool> never{false};
    const auto counts = GenerateSamples(run, *checkpoint, {}, never, [&](std::vector<Sample>) {
      products.push_back(SubnormalProduct());
    });
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_THAT(products, AllOf(SizeIs(::testing::Ge(1u)), Each(0)));
  }
}

}  // namespace
}  // namespace ablate::engine
