#include "tests/native/three_ways.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/engine/model/init.h"
#include "server/engine/model/parameters.h"
#include "server/engine/names.h"
#include "server/engine/native/native_backend.h"
#include "server/engine/train/checkpoint.h"
#include "server/engine/train/run_loop.h"
#include "server/engine/train/torch_backend.h"

namespace ablate::engine {

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

std::vector<float> FloatsOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor host = tensor.to(at::kFloat).contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

namespace {

std::string Bytes(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return {static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()};
}

}  // namespace

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

namespace {

at::Tensor Read(TensorType type, absl::string_view bytes) {
  return FlatTensor(type, {bytes}).to(at::kDouble);
}

}  // namespace

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
  const auto evaluated = [&](Evaluated what) {
    EvaluationSums sums;
    EXPECT_TRUE(backend.Evaluate(0, what, batches.front(), &sums).ok());
    return sums.loss / sums.tokens;
  };
  trained.evaluation = evaluated(Evaluated::kCurrent);
  if (config.training.ema > 0) trained.average_evaluation = evaluated(Evaluated::kAverage);
  return trained;
}

namespace {

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

}  // namespace

void Tally::Add(const Tally& other) {
  tensors += other.tensors;
  beyond += other.beyond;
  reference_beyond += other.reference_beyond;
  log_ratios += other.log_ratios;
  if (other.worst > worst) {
    worst = other.worst;
    where = other.where;
  }
}

double Tally::MeanRatio() const { return std::exp(log_ratios / tensors); }

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

RunConfig ForGradient(RunConfig config) {
  config.training.optimizer.kind = OptimizerKind::kSgd;
  config.training.optimizer.momentum = 0;
  config.training.optimizer.weight_decay = 0;
  config.training.clip = 0;
  config.training.ema = 0;
  return config;
}

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

}  // namespace ablate::engine
