// Tests the reference backend when an update fails, and the conversion of LibTorch's errors.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/torch/train/boundary.h"
#include "server/engine/torch/train/torch_backend.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

std::string StateOf(Backend& backend) {
  const absl::StatusOr<RunTensors> tensors = backend.Tensors();
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  std::string state(tensors->parameters);
  absl::StrAppend(&state, tensors->buffers);
  for (const NamedBytes& slot : tensors->slots) absl::StrAppend(&state, slot.bytes);
  return state;
}

// A token outside the vocabulary ends the update in its second micro-batch, as running out of
// memory would.
TEST(TorchBackendTest, LeavesARunAsItWasWhenAPartOfItsUpdateFails) {
  RunConfig run = SmallRecallRun(1);
  run.model.norm.kind = NormKind::kBatch;  // earlier micro-batches have changed its statistics
  run.training.accumulation = 4;
  run.training.ema = 0.9;
  const auto source = MakeBatchSource(run);
  const TokenBatch batch = (*source)->Next();
  TokenBatch broken = batch;
  broken.inputs[broken.inputs.size() / 2 - 1] = run.model.vocabulary;
  PrepareLaneThread();
  const auto failing = MakeTorchBackend(run), calm = MakeTorchBackend(run);
  for (uint32_t step = 0; step < 3; ++step) {
    const std::string before = StateOf(**failing);
    EXPECT_EQ((*failing)->Step({broken, step, 0.01}).status().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(StateOf(**failing), before);
    const auto made = (*failing)->Step({batch, step, 0.01});
    const auto expected = (*calm)->Step({batch, step, 0.01});
    ASSERT_TRUE(made.ok() && expected.ok());
    EXPECT_TRUE(made->made);
    EXPECT_EQ(made->gradient_norm, expected->gradient_norm);
    EXPECT_EQ(StateOf(**failing), StateOf(**calm));
  }
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
  for (const char* message :
       {"CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"}) {
    EXPECT_EQ(thrown(c10::AcceleratorError(here, 2, message)).code(),
              absl::StatusCode::kResourceExhausted);
  }
}

}  // namespace
}  // namespace ablate::engine
