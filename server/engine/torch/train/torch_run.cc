#include "server/engine/torch/train/torch_run.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>

#include "server/engine/torch/model/init.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/torch/model/unrecorded.h"
#include "server/engine/torch/train/recorder.h"

namespace ablate::engine {
namespace {

// Returns the bytes of a contiguous CPU tensor.
absl::string_view BytesOf(const at::Tensor& tensor) {
  return absl::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
}

void Set(const at::Tensor& tensor, absl::string_view bytes) {
  const at::Tensor host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
  TORCH_CHECK(host.nbytes() == bytes.size(), "a run's tensor has another size");
  std::memcpy(host.mutable_data_ptr(), bytes.data(), bytes.size());
  tensor.copy_(host);
}

// Adds the gradient of `loss` to parameters.gradients(), or sets it there if it is the `first` of
// an update. On a device, autograd's nodes that hand a gradient to its leaf would keep the stream
// of their first use, and spoil later captures.
void AddGradient(const at::Tensor& loss, const FlatParameters& parameters, bool first) {
  at::Tensor gradients = parameters.gradients();
  if (gradients.is_cpu()) {
    return first ? parameters.SetGradients(loss) : parameters.AddGradients(loss);
  }
  const std::vector<at::Tensor>& leaves = parameters.leaves();
  std::vector<at::Tensor> parts =
      torch::autograd::grad({loss}, leaves, /*grad_outputs=*/{}, /*retain_graph=*/false,
                            /*create_graph=*/false, /*allow_unused=*/true);
  const at::NoGradGuard no_grad;
  const Unrecorded unrecorded;
  for (size_t i = 0; i < leaves.size(); ++i) {
    at::Tensor& part = parts[i];
    part = part.defined() ? part.flatten() : at::zeros_like(leaves[i].detach()).flatten();
  }
  if (first) {
    at::cat_out(gradients, parts);
  } else {
    gradients.add_(at::cat(parts));
  }
}

// Returns the number of targets that count in all micro-batches, a scalar in the model's precision.
at::Tensor CountedTargets(const std::vector<BatchTensors>& micro_batches,
                          at::TensorOptions options) {
  at::Tensor targets = at::zeros({}, options);
  for (const BatchTensors& micro_batch : micro_batches) {
    if (micro_batch.counted.defined()) {
      targets += micro_batch.counted.sum();
    } else {
      targets += micro_batch.targets.numel();
    }
  }
  return targets;
}

std::optional<at::ScalarType> FactorsOf(Precision precision) {
  if (precision == Precision::kBfloat16) return at::kBFloat16;
  return std::nullopt;
}

}  // namespace

InitialValues DrawInitialValues(const RunConfig& config) {
  const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
  return {InitialParameters(config.model, layout, config.seed),
          InitialBuffers(layout, config.seed)};
}

TorchRun::TorchRun(const RunConfig& config, const InitialValues& start, at::Device device)
    : config_(config),
      options_(TensorOptionsOf(device, config.precision)),
      parameters_(config.model, config.training.rule, options_),
      optimizer_(config, parameters_.layout(), parameters_.values()) {
  const at::NoGradGuard no_grad;
  Restart(start);
  const auto bound = [&](const at::Tensor& values) {
    return BindParameters(config_.model, parameters_.layout(),
                          ParameterViews(parameters_.layout(), values), parameters_.buffers());
  };
  model_ = bound(parameters_.values());
  if (optimizer_.ema_weights().defined()) ema_model_ = bound(optimizer_.ema_weights());
}

void TorchRun::Restart(const InitialValues& start) {
  const at::NoGradGuard no_grad;
  parameters_.values().copy_(start.parameters);
  if (start.buffers.defined()) parameters_.buffers().copy_(start.buffers);
  optimizer_.Restart(parameters_.values());
}

at::Tensor TorchRun::Score(Evaluated what, const BatchTensors& batch) const {
  const at::NoGradGuard no_grad;
  const Unrecorded unrecorded;
  const ModelParameters& parameters = what == Evaluated::kEmaWeights ? ema_model_ : model_;
  const Pass pass = {.once = true, .factors = FactorsOf(config_.precision)};
  return ScoreBatch(config_.model, parameters, batch, pass);
}

std::vector<RecordedValue> TorchRun::RecordGradients(const TokenBatch& batch) const {
  return engine::RecordGradients(config_, parameters_.layout(), parameters_.values(),
                                 parameters_.buffers(), TensorsOf(batch, options_));
}

RunTensors TorchRun::Tensors() {
  host_.clear();
  const auto bytes = [&](const at::Tensor& tensor) {
    host_.push_back(tensor.to(at::kCPU).contiguous());
    return BytesOf(host_.back());
  };
  RunTensors tensors;
  tensors.type = options_.dtype() == at::kDouble ? TensorType::kF64 : TensorType::kF32;
  tensors.parameters = bytes(parameters_.values());
  if (parameters_.buffers().defined()) tensors.buffers = bytes(parameters_.buffers());
  for (const OptimizerSlot& slot : optimizer_.slots()) {
    tensors.slots.push_back({slot.name, bytes(slot.values)});
  }
  return tensors;
}

void TorchRun::SetTensors(const RunTensors& tensors) {
  const at::NoGradGuard no_grad;
  Set(parameters_.values(), tensors.parameters);
  if (parameters_.buffers().defined()) Set(parameters_.buffers(), tensors.buffers);
  for (size_t i = 0; i < tensors.slots.size(); ++i) {
    Set(optimizer_.slots()[i].values, tensors.slots[i].bytes);
  }
}

Pass TrainingPass(const RunConfig& config, const Dropout* dropout) {
  return {.rule = config.training.rule,
          .norm_backward = config.model.norm.backward,
          .statistics = Statistics::kBatchAndTrack,
          .dropout = dropout->rate > 0 ? dropout : nullptr,
          .once = true,
          .factors = FactorsOf(config.precision)};
}

at::Tensor Differentiate(const ModelConfig& model, const Pass& pass,
                         const std::vector<BatchTensors>& micro_batches,
                         const FlatParameters& parameters, Objective objective) {
  if (micro_batches.size() > 1) {
    objective.targets = CountedTargets(micro_batches, parameters.values().options());
  }
  at::Tensor sum;
  Dropout dropout;
  if (pass.dropout != nullptr) dropout = *pass.dropout;
  Pass micro_batch_pass = pass;
  if (pass.dropout != nullptr) micro_batch_pass.dropout = &dropout;
  for (const BatchTensors& micro_batch : micro_batches) {
    const at::Tensor loss =
        BatchLoss(model, parameters.model(), micro_batch, micro_batch_pass, objective);
    AddGradient(loss, parameters, /*first=*/!sum.defined());
    sum = sum.defined() ? sum + loss.detach() : loss.detach();
    dropout.first_row += micro_batch.rows;
  }
  return sum;
}

std::vector<BatchTensors> MakeMicroBatches(const TokenBatch& batch, int64_t micro_batches,
                                           at::TensorOptions options) {
  const int64_t rows = batch.rows / micro_batches;
  TORCH_CHECK(rows * micro_batches == batch.rows, "a batch can't be cut into equal micro-batches");
  if (micro_batches == 1) return {TensorsOf(batch, options)};
  std::vector<BatchTensors> made;
  for (int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    made.push_back(TensorsOf(batch.Rows(micro_batch * rows, rows), options));
  }
  return made;
}

}  // namespace ablate::engine
