// The native backend beside the reference backend, over the grid of settings: the first gradient and
// ten updates, each tensor judged by its own norm against float64.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/layout.h"
#include "server/engine/model/init.h"
#include "server/engine/model/parameters.h"
#include "server/engine/names.h"
#include "server/engine/native/native_backend.h"
#include "server/engine/native/supports.h"
#include "server/engine/train/checkpoint.h"
#include "server/engine/train/run_loop.h"
#include "server/engine/train/torch_backend.h"
#include "tests/parity/grid.h"

namespace ablate::engine {
namespace {

struct Start {
  at::Tensor values;   // [P]
  at::Tensor buffers;  // undefined where there are none
};

// Random parameters in which no gain is 1 and no shift 0.
Start StartOf(const RunConfig& config, const ParameterLayout& layout) {
  ModelConfig model = config.model;
  model.init = {InitKind::kXavier, InitStreams::kByName};
  const at::Tensor flat = InitialParameters(model, layout, config.seed);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(config.seed);
  const double deviation = 0.1 * std::min(1.0, std::sqrt(24.0 / model.width));
  const at::Tensor initial = InitialBuffers(layout, config.seed);
  return {0.5 * flat + at::empty_like(flat).normal_(0, deviation, generator),
          initial.defined() ? 3 * initial : initial};
}

std::vector<float> Floats(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor host = tensor.to(at::kFloat).contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

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
  return native::MakeNativeBackend(config, {Floats(start.values), Floats(start.buffers), nullptr},
                                   kernels);
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

// In exact arithmetic a key's bias moves every score of a softmax alike: its gradient is 0, and what
// is computed of it is rounding.
bool IsRounding(const ModelConfig& model, const ParameterInfo& info) {
  return model.attention.kind == AttentionKind::kSoftmax && info.module == Module::kQkv &&
         info.role == ParameterRole::kBias;
}

struct Tally {
  int tensors = 0;
  int beyond = 0;
  int reference_beyond = 0;
  double log_ratio = 0;
  double worst = 0;
  std::string where;
};

// Counts tensors of which the native error is more than twice the reference's own, given a floor
// beneath which both are rounding.
void Compare(const std::string& name, const at::Tensor& native, const at::Tensor& torch,
             const at::Tensor& exact, const RunConfig& config, const ParameterLayout& layout,
             Tally& tally) {
  constexpr double kFloor = 3e-7;
  for (const ParameterInfo& info : layout.parameters) {
    if (IsRounding(config.model, info)) continue;
    const double error = ErrorOf(native, exact, info);
    const double reference = std::max(ErrorOf(torch, exact, info), kFloor);
    ++tally.tensors;
    if (error > 2 * reference) ++tally.beyond;
    if (reference > 2 * std::max(error, kFloor)) ++tally.reference_beyond;
    tally.log_ratio += std::log(std::max(error, kFloor) / reference);
    if (!(error / reference <= tally.worst)) {
      tally.worst = error / reference;
      tally.where = name + " " + info.name + " " + std::to_string(error);
    }
  }
}

RunConfig ConfigOf(const GridCase& grid) {
  RunConfig config;
  config.model = grid.model;
  config.training = grid.training;
  config.seed = 7;
  return config;
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

TEST(NativeParityTest, HasTheGradientsOfTheReferenceBackend) {
  Tally tally;
  int cases = 0;
  for (const GridCase& grid : MakeGrid()) {
    const RunConfig config = ForGradient(ConfigOf(grid));
    if (!WhyNotNative(config).empty()) continue;
    const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
    const Start start = StartOf(config, layout);
    const std::vector<TokenBatch> batches = {grid.batches[grid.compared].front()};
    const Trained exact = Train(*TorchOf(config, Precision::kFloat64, start), config, batches);
    const Trained torch = Train(*TorchOf(config, Precision::kFloat32, start), config, batches);
    const Trained native =
        Train(*NativeOf(config, start, native::BestKernels()), config, batches);
    const std::string name = grid.name + " " + ModelJson(config.model) + " " +
                             std::string(NameOf(config.training.rule));
    EXPECT_NEAR(native.losses[0], exact.losses[0], 2e-6 * std::max(1.0, exact.losses[0])) << name;
    EXPECT_NEAR(native.evaluation, exact.evaluation, 2e-5 * std::max(1.0, exact.evaluation))
        << name;
    EXPECT_NEAR(native.norms[0], exact.norms[0], 1e-5 * exact.norms[0]) << name;
    Tally own;
    Compare(grid.name, native.first_slot, torch.first_slot, exact.first_slot, config, layout, own);
    EXPECT_LE(own.worst, 4) << name << ": " << own.where;
    Compare(grid.name, native.first_slot, torch.first_slot, exact.first_slot, config, layout,
            tally);
    ++cases;
  }
  EXPECT_GE(cases, 400);
  EXPECT_LE(tally.beyond, tally.tensors / 200) << tally.tensors << ", worst " << tally.where;
  std::cout << cases << " cases, " << tally.tensors << " tensors, " << tally.beyond
            << " beyond twice, " << tally.reference_beyond << " the other way, mean ratio " << std::exp(tally.log_ratio / tally.tensors) << ", worst " << tally.worst << " at " << tally.where << "\n";
}

}  // namespace
}  // namespace ablate::engine
