// The native backend beside the reference backend, over the grid of settings: the first gradient
// and ten updates, each tensor judged by its own norm against float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/data/random.h"
#include "server/engine/layout.h"
#include "server/engine/model/parameters.h"
#include "server/engine/names.h"
#include "server/engine/native/native_backend.h"
#include "server/engine/native/supports.h"
#include "server/engine/train/checkpoint.h"
#include "server/engine/train/run_loop.h"
#include "server/engine/train/torch_backend.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"
#include "tests/native/random_start.h"
#include "tests/parity/grid.h"

namespace ablate::engine {
namespace {

std::string Bytes(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return {static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()};
}

std::unique_ptr<Backend> TorchOf(RunConfig config, Precision precision, const Start& start) {
  config.precision = precision;
  auto backend = MakeTorchBackend({config});
  EXPECT_TRUE(backend.ok()) << backend.status();
  const at::TensorOptions options = TensorOptionsOf(Device::kCpu, precision);
  const std::string values = Bytes(start.values.to(options));
  const std::string buffers =
      start.buffers.defined() ? Bytes(start.buffers.to(options)) : std::string();
  const std::string zeros(values.size(), '\0');
  RunTensors tensors = {(*backend)->Tensors(0)->type, values, buffers, {}};
  for (const std::string& name : OptimizerSlots(config.training)) {
    tensors.slots.push_back({name, name == kAverageSlot ? values : zeros});
  }
  EXPECT_TRUE((*backend)->SetTensors(0, tensors).ok());
  return *std::move(backend);
}

std::unique_ptr<Backend> NativeOf(const RunConfig& config, const Start& start,
                                  const native::Kernels& kernels) {
  return native::MakeNativeBackend(
      config, {FloatsOf(start.values), FloatsOf(start.buffers), nullptr}, kernels);
}

// What a backend has after the updates, in float64.
struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  at::Tensor values;  // [P]
  at::Tensor buffers;
  at::Tensor first_slot;
  double evaluation = 0;
};

at::Tensor Read(TensorType type, absl::string_view bytes) {
  return FlatTensor(type, {bytes}).to(at::kDouble);
}

Trained Train(Backend& backend, const RunConfig& config, const std::vector<TokenBatch>& batches) {
  Trained trained;
  for (uint32_t step = 0; step < batches.size(); ++step) {
    const TrainingConfig& training = config.training;
    const double rate =
        LearningRate(training.schedule, training.optimizer.learning_rate, step, training.steps);
    const auto results = backend.Step({{&batches[step], step, rate}});
    EXPECT_TRUE(results.ok()) << results.status();
    EXPECT_TRUE(results->front().made);
    trained.losses.push_back(results->front().loss);
    trained.norms.push_back(results->front().gradient_norm);
  }
  const auto tensors = backend.Tensors(0);
  EXPECT_TRUE(tensors.ok());
  trained.values = Read(tensors->type, tensors->parameters);
  if (!tensors->buffers.empty()) trained.buffers = Read(tensors->type, tensors->buffers);
  trained.first_slot = Read(tensors->type, tensors->slots.front().bytes);
  EvaluationSums sums;
  EXPECT_TRUE(backend.Evaluate(0, Evaluated::kCurrent, batches.front(), &sums).ok());
  trained.evaluation = sums.loss / sums.tokens;
  return trained;
}

// ‖x − exact‖/‖exact‖ over a parameter.
double ErrorOf(const at::Tensor& x, const at::Tensor& exact, const ParameterInfo& info) {
  const at::Tensor a = x.narrow(0, info.offset, info.size);
  const at::Tensor b = exact.narrow(0, info.offset, info.size);
  const double norm = b.norm().item<double>();
  return (a - b).norm().item<double>() / (norm > 0 ? norm : 1);
}

// In exact arithmetic a key's bias moves every score of a softmax alike: its gradient is 0, and
// what is computed of it is rounding.
bool IsRounding(const ModelConfig& model, const ParameterInfo& info) {
  return model.attention.kind == AttentionKind::kSoftmax && info.module == Module::kQkv &&
         info.role == ParameterRole::kBias;
}

// How native errors compare with the reference's own.
struct Tally {
  int tensors = 0;
  int beyond = 0;            // native errors of more than twice the reference's
  int reference_beyond = 0;  // the other way round
  double log_ratios = 0;
  double worst = 0;
  std::string where;

  void Add(const Tally& other) {
    tensors += other.tensors;
    beyond += other.beyond;
    reference_beyond += other.reference_beyond;
    log_ratios += other.log_ratios;
    if (other.worst > worst) {
      worst = other.worst;
      where = other.where;
    }
  }
  double MeanRatio() const { return std::exp(log_ratios / tensors); }
};

struct Compared {
  const at::Tensor& native;
  const at::Tensor& reference;
  const at::Tensor& exact;
};

// Errors below `floor` of a tensor's norm are as good as none.
Tally Compare(const Compared& of, const RunConfig& config, const ParameterLayout& layout,
              double floor) {
  Tally tally;
  for (const ParameterInfo& info : layout.parameters) {
    if (IsRounding(config.model, info)) continue;
    const double native = std::max(ErrorOf(of.native, of.exact, info), floor);
    const double reference = std::max(ErrorOf(of.reference, of.exact, info), floor);
    const double ratio = native / reference;
    ++tally.tensors;
    tally.beyond += ratio > 2 ? 1 : 0;
    tally.reference_beyond += ratio < 0.5 ? 1 : 0;
    tally.log_ratios += std::log(ratio);
    if (!(ratio <= tally.worst)) {
      tally.worst = ratio;
      tally.where = info.name;
    }
  }
  return tally;
}

// One update by plain SGD leaves the gradient in its momentum's slot.
RunConfig ForGradient(RunConfig config) {
  config.training.optimizer.kind = OptimizerKind::kSgd;
  config.training.optimizer.momentum = 0;
  config.training.optimizer.weight_decay = 0;
  config.training.clip = 0;
  config.training.ema = 0;
  return config;
}

struct ThreeWays {
  Trained exact;
  Trained reference;
  Trained native;
};

ThreeWays TrainThreeWays(const RunConfig& config, const ParameterLayout& layout,
                         const std::vector<TokenBatch>& batches) {
  const Start start = StartOf(config, layout);
  return {Train(*TorchOf(config, Precision::kFloat64, start), config, batches),
          Train(*TorchOf(config, Precision::kFloat32, start), config, batches),
          Train(*NativeOf(config, start, native::BestKernels()), config, batches)};
}

std::string Describe(const GridCase& grid, const RunConfig& config) {
  return grid.name + " " + ModelJson(config.model) + " " +
         std::string(NameOf(config.training.rule));
}

TEST(NativeParityTest, HasTheGradientsOfTheReferenceBackend) {
  PrepareLaneThread();
  Tally all;
  int cases = 0;
  for (const GridCase& grid : MakeGrid()) {
    const RunConfig config = ForGradient(ConfigOf(grid));
    if (!WhyNotNative(config).empty()) continue;
    SCOPED_TRACE(Describe(grid, config));
    const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
    const auto [exact, reference, native] =
        TrainThreeWays(config, layout, {grid.batches[grid.compared].front()});
    EXPECT_NEAR(native.losses[0], exact.losses[0], 2e-6 * std::max(1.0, exact.losses[0]));
    EXPECT_NEAR(native.evaluation, exact.evaluation, 2e-5 * std::max(1.0, exact.evaluation));
    // A ReLU's input may be rounded over its kink.
    EXPECT_NEAR(native.norms[0], exact.norms[0], 1e-3 * exact.norms[0]);
    const Tally tally =
        Compare({native.first_slot, reference.first_slot, exact.first_slot}, config, layout, 3e-7);
    EXPECT_LE(tally.worst, 30) << tally.where;
    all.Add(tally);
    ++cases;
  }
  RecordProperty("tensors", all.tensors);
  RecordProperty("beyond_twice", all.beyond);
  RecordProperty("reference_beyond_twice", all.reference_beyond);
  EXPECT_GE(cases, 400);
  // Within a case all tensors share what was rounded upstream, and either backend may have the
  // better luck: some are beyond twice the other's error, one way and the other. On the whole
  // neither is worse.
  EXPECT_LE(all.beyond, all.tensors / 50) << all.reference_beyond << " the other way";
  EXPECT_LE(all.MeanRatio(), 1.1);
}

TEST(NativeParityTest, MakesTheUpdatesOfTheReferenceBackend) {
  PrepareLaneThread();
  Tally all;
  const std::vector<GridCase> grid = MakeGrid();
  for (size_t i = 1; i < grid.size(); i += 4) {
    const RunConfig config = ConfigOf(grid[i]);
    if (!WhyNotNative(config).empty()) continue;
    SCOPED_TRACE(Describe(grid[i], config));
    const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
    const auto [exact, reference, native] =
        TrainThreeWays(config, layout, grid[i].batches[grid[i].compared]);
    for (size_t step = 0; step < exact.losses.size(); ++step) {
      EXPECT_NEAR(native.losses[step], exact.losses[step],
                  1e-4 * std::max(1.0, exact.losses[step]));
    }
    all.Add(Compare({native.values, reference.values, exact.values}, config, layout, 1e-6));
  }
  EXPECT_GE(all.tensors, 1000);
  EXPECT_LE(all.beyond, all.tensors / 50) << all.reference_beyond << " the other way";
  EXPECT_LE(all.MeanRatio(), 1.1);
}

// Rows of one length over so few tokens that many begin alike; a few targets count nowhere.
TokenBatch ShortRows(const ModelConfig& model, int64_t rows, int64_t length) {
  TokenBatch batch;
  batch.rows = rows;
  batch.length = length;
  batch.lengths.assign(static_cast<size_t>(rows), length);
  SplitMix64 generator(static_cast<uint64_t>(rows * length));
  const auto tokens = static_cast<uint64_t>(std::min(model.vocabulary, 3));
  for (int64_t i = 0; i < rows * length; ++i) {
    batch.inputs.push_back(static_cast<int64_t>(generator.Below(tokens)));
    batch.targets.push_back(generator.Below(9) == 0
                                ? TokenBatch::kIgnored
                                : static_cast<int64_t>(generator.Below(tokens)));
  }
  return batch;
}

EvaluationSums Evaluated(Backend& backend, const TokenBatch& batch) {
  EvaluationSums sums;
  EXPECT_TRUE(backend.Evaluate(0, Evaluated::kCurrent, batch, &sums).ok());
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
      alone = {1, alone.loss + sums.loss, alone.hits + sums.hits, alone.tokens + sums.tokens};
    }
    EXPECT_NEAR(together.loss, alone.loss, 1e-12 * alone.loss);
    EXPECT_EQ(together.hits, alone.hits);
    EXPECT_EQ(together.tokens, alone.tokens);
    const EvaluationSums exact = Evaluated(*TorchOf(config, Precision::kFloat64, start), batch);
    EXPECT_NEAR(together.loss, exact.loss, 2e-5 * exact.loss);
    EXPECT_EQ(together.tokens, exact.tokens);
    ++cases;
  }
  EXPECT_GE(cases, 60);
}

TEST(NativeParityTest, HasTheSameBitsOnEveryFusedTarget) {
  std::vector<const native::Kernels*> fused;
  for (const native::Kernels* kernels : native::AllKernels()) {
    if (kernels->fused) fused.push_back(kernels);
  }
  if (fused.size() < 2) GTEST_SKIP() << "skipped: this machine has fewer than two of them";
  const std::vector<GridCase> grid = MakeGrid();
  for (size_t i = 0; i < grid.size(); i += 9) {
    const RunConfig config = ConfigOf(grid[i]);
    if (!WhyNotNative(config).empty()) continue;
    SCOPED_TRACE(Describe(grid[i], config));
    const Start start = StartOf(config, MakeLayout(config.model, config.training.rule));
    const std::vector<TokenBatch>& batches = grid[i].batches[grid[i].compared];
    const Trained first = Train(*NativeOf(config, start, *fused[0]), config, batches);
    const Trained second = Train(*NativeOf(config, start, *fused[1]), config, batches);
    EXPECT_EQ(first.losses, second.losses);
    EXPECT_EQ(first.evaluation, second.evaluation);
    EXPECT_TRUE(first.values.equal(second.values));
  }
}

// The source's names, one document a step.
RunConfig NativeNames(NormPlacement placement, bool final) {
  RunConfig run = NamesRun(42, placement, final);
  run.training.trainer = TrainerKind::kNative;
  return run;
}

std::vector<double> LossesOf(const RunConfig& config, uint32_t steps) {
  const auto trainer = MakeTrainer({config});
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  const auto progress = (*trainer)->Advance(steps, [] { return false; });
  EXPECT_TRUE(progress.ok());
  std::vector<double> losses;
  for (const Point& point : progress->front().points) {
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
    // Without norms a rounding grows tenfold every few steps: by step 100 the reference trainer is
    // .05 away from itself in float64.
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
  RunConfig run = NativeNames(NormPlacement::kPre, true);
  run.model.dropout = 0.1;
  run.training.ema = 0.9;
  const auto whole = MakeTrainer({run}), begun = MakeTrainer({run}), resumed = MakeTrainer({run});
  const auto endless = [] { return false; };
  ASSERT_TRUE((*whole)->Advance(40, endless).ok());
  ASSERT_TRUE((*begun)->Advance(17, endless).ok());
  const auto state = (*begun)->ExportState(0);
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE((*resumed)->ImportState(0, *state).ok());
  ASSERT_TRUE((*resumed)->Advance(23, endless).ok());
  EXPECT_EQ(*(*whole)->ExportState(0), *(*resumed)->ExportState(0));
}

TEST(NativeTrainerTest, RefusesAStateOfTheReferenceTrainer) {
  PrepareLaneThread();
  RunConfig run = NativeNames(NormPlacement::kPre, true);
  const auto native = MakeTrainer({run});
  run.training.trainer = TrainerKind::kTorch;
  const auto torch = MakeTrainer({run});
  EXPECT_EQ((*native)->ImportState(0, *(*torch)->ExportState(0)).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(NativeTrainerTest, SaysWhatItDoesNotTrain) {
  RunConfig run = NativeNames(NormPlacement::kPre, true);
  run.precision = Precision::kFloat64;
  EXPECT_EQ(MakeTrainer({run}).status().message(),
            "training.trainer is native, but the native trainer computes in float32");
}

}  // namespace
}  // namespace ablate::engine
