// Tests the run loop with a backend that computes nothing, and the metadata of checkpoints.
#include "server/engine/torch/train/run_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/torch/train/resume.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;

std::string FloatsFrom(float first, int64_t count) {
  std::string bytes(static_cast<size_t>(count) * sizeof(float), '\0');
  for (int64_t i = 0; i < count; ++i) {
    const float value = first + static_cast<float>(i);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(float), &value, sizeof value);
  }
  return bytes;
}

// A backend whose losses fall from 1 on, and whose parameters stay as set.
class CountingBackend : public Backend {
 public:
  explicit CountingBackend(const RunConfig& config, size_t blocks = 1)
      : parameters_(FloatsFrom(static_cast<float>(config.seed), MakeLayout(config.model).size)),
        slots_(OptimizerSlots(config.training)),
        slot_(parameters_.size(), '\0'),
        fails_at_(static_cast<uint32_t>(config.training.clip)),
        blocks_(blocks) {}

  const BackendIdentity& identity() const override { return identity_; }

  BlockSizes blocks() const override { return {blocks_, blocks_}; }

  absl::StatusOr<UpdateResult> Step(const UpdateRequest& update) override {
    const bool fails = fails_at_ > 0 && update.step == fails_at_;
    const double loss = fails ? std::numeric_limits<double>::quiet_NaN() : 1.0 / (update.step + 1);
    return UpdateResult{loss, 2, !fails};
  }

  absl::Status Evaluate(Evaluated, absl::Span<const TokenBatch> batches,
                        EvaluationSums* sums) override {
    for (const TokenBatch& batch : batches) {
      const double tokens = static_cast<double>(batch.tokens());
      sums->Add(1, tokens, 0, tokens);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<RecordedValue>> RecordGradients(const TokenBatch&) override {
    return std::vector<RecordedValue>{{"gradient/block.0", 1}};
  }

  absl::StatusOr<RunTensors> Tensors() override {
    RunTensors tensors;
    tensors.parameters = parameters_;
    for (const std::string& name : slots_) tensors.slots.push_back({name, slot_});
    return tensors;
  }

  absl::Status SetTensors(const RunTensors& tensors) override {
    parameters_ = std::string(tensors.parameters);
    return absl::OkStatus();
  }

 private:
  const BackendIdentity identity_ = {"counting", "any", "counting_version", "7"};
  std::string parameters_;
  const std::vector<std::string> slots_;
  const std::string slot_;
  const uint32_t fails_at_;
  const size_t blocks_;
};

absl::StatusOr<std::unique_ptr<Backend>> MakeCountingBackend(const RunConfig& config) {
  return std::make_unique<CountingBackend>(config);
}

std::unique_ptr<RunLoop> MakeLoop(const RunConfig& run) {
  absl::StatusOr<std::unique_ptr<RunLoop>> loop = RunLoop::Make(run, MakeCountingBackend);
  EXPECT_TRUE(loop.ok()) << loop.status();
  return *std::move(loop);
}

RunProgress Finish(RunLoop& loop) {
  absl::StatusOr<RunProgress> progress = loop.Advance(1000, [] { return false; });
  EXPECT_TRUE(progress.ok()) << progress.status();
  return *std::move(progress);
}

std::vector<uint32_t> StepsOf(const RunProgress& progress, const std::string& key) {
  std::vector<uint32_t> steps;
  for (const Point& point : progress.points) {
    if (point.key == key) steps.push_back(point.step);
  }
  return steps;
}

TEST(RunLoopBackendTest, EvaluatesAndKeepsCheckpointsWhateverComputes) {
  RunConfig run = SmallDocumentsRun(3);
  run.training.steps = 5;
  run.training.checkpoints = {2};
  run.evaluation.every = 4;
  const auto loop = MakeLoop(run);
  const RunProgress progress = Finish(*loop);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_THAT(StepsOf(progress, "train/loss"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(StepsOf(progress, "eval/loss"), ElementsAre(0, 4, 5));
  ASSERT_EQ(progress.checkpoints.size(), 2u);
  EXPECT_EQ(progress.checkpoints[0].step, 2u);
  const auto file = ParseSafetensors(progress.checkpoints[1].safetensors);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata.at("trainer"), "counting");
  EXPECT_EQ(file->metadata.at("counting_version"), "7");
}

TEST(RunLoopBackendTest, EndsARunWhoseUpdateCannotBeMade) {
  RunConfig run = SmallDocumentsRun(3);
  run.training.clip = 2;  // the backend fails with it
  const auto loop = MakeLoop(run);
  const RunProgress progress = Finish(*loop);
  EXPECT_EQ(progress.outcome, Outcome::kDiverged);
  EXPECT_EQ(progress.step, 2u);
}

// Returns everything that a run reports, and its last state.
std::string OutputOf(RunConfig run, size_t blocks) {
  const auto loop = RunLoop::Make(run, [&](const RunConfig& config) {
    return std::make_unique<CountingBackend>(config, blocks);
  });
  const RunProgress progress = Finish(**loop);
  std::string output = absl::StrCat(progress.step, " ", progress.tokens, " ", progress.evaluated);
  for (const Point& point : progress.points) {
    absl::StrAppend(&output, "\n", point.key, " ", point.step, " ", point.value);
  }
  for (const Checkpoint& checkpoint : progress.checkpoints) {
    absl::StrAppend(&output, "\ncheckpoint ", checkpoint.step);
  }
  return absl::StrCat(output, "\n", *(*loop)->ExportState());
}

TEST(RunLoopBackendTest, ReportsTheSameWithAnyBlocks) {
  RunConfig run = SmallDocumentsRun(3);
  run.training.checkpoints = {0, 4, 9};
  run.evaluation.every = 7;
  for (const double fails_at : {0.0, 7.0, 12.0}) {
    run.training.clip = fails_at;
    const std::string single = OutputOf(run, 1);
    for (const size_t blocks : {2, 5, 64}) EXPECT_EQ(OutputOf(run, blocks), single) << blocks;
  }
}

TEST(RunLoopBackendTest, RefusesAnotherBackendsState) {
  const RunConfig run = SmallDocumentsRun(3);
  const auto loop = MakeLoop(run);
  const std::string state = *loop->ExportState();
  EXPECT_TRUE(loop->ImportState(state).ok());
  const ParameterLayout layout = MakeLayout(run.model);
  const BackendIdentity other = {"torch", "any", "torch_version", "2"};
  EXPECT_EQ(ReadResumeState({run, layout, other}, state).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Returns the layout of a model with running statistics.
ParameterLayout WithBuffers(const ModelConfig& model) {
  ParameterLayout layout = MakeLayout(model);
  layout.buffers = {{"norm.mean", {3}, 0, 3}, {"norm.variance", {2}, 3, 2}};
  layout.buffer_size = 5;
  return layout;
}

TEST(CheckpointTest, CarriesBuffersBesideParameters) {
  const RunConfig run = SmallDocumentsRun(3);
  const ParameterLayout layout = WithBuffers(run.model);
  const std::string parameters = FloatsFrom(0, layout.size), buffers = FloatsFrom(100, 5);
  const BackendIdentity backend = {"counting", "any", "counting_version", "7"};
  const RunTensors tensors = {TensorType::kF32, parameters, buffers, {}};
  const auto file = WriteCheckpoint({run.model, backend, 4, ""}, layout, tensors);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto read = ReadCheckpoint(layout, *file);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->parameters.size(), layout.parameters.size());
  EXPECT_EQ(read->parameters.back(),
            parameters.substr(static_cast<size_t>(layout.parameters.back().offset) * 4));
  EXPECT_THAT(read->buffers, ElementsAre(buffers.substr(0, 12), buffers.substr(12)));
  EXPECT_EQ(ReadCheckpoint(MakeLayout(run.model), *file).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ResumeStateBuffersTest, AreContinuedFrom) {
  const RunConfig run = SmallRecallRun(3);
  const ParameterLayout layout = WithBuffers(run.model);
  const std::string parameters = FloatsFrom(0, layout.size), buffers = FloatsFrom(100, 5);
  const BackendIdentity backend = {"counting", "any", "counting_version", "7"};
  ResumeState state;
  state.tensors = {TensorType::kF32, parameters, buffers, {}};
  for (std::string& name : OptimizerSlots(run.training)) {
    state.tensors.slots.push_back({std::move(name), parameters});
  }
  const auto file = WriteResumeState({run, layout, backend}, state);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto read = ReadResumeState({run, layout, backend}, *file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tensors.buffers, buffers);
  EXPECT_EQ(read->tensors.parameters, parameters);
}

}  // namespace
}  // namespace ablate::engine
