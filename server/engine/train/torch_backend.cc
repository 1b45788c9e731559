#include "server/engine/train/torch_backend.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "absl/status/status.h"
#include "server/engine/model/init.h"
#include "server/engine/model/layers.h"
#include "server/engine/model/transformer.h"
#include "server/engine/model/unrecorded.h"
#include "server/engine/names.h"
#include "server/engine/train/boundary.h"
#include "server/engine/train/optimizer.h"
#include "server/engine/train/recorder.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

// LibTorch's reduction adds float32 squares one by one. With 42 million parameters its norm is 0.4
// % too small, and it is infinite if one square is.
template <typename Number>
double SquaredNorm(const Number* values, int64_t count) {
  constexpr int64_t kLanes = 16;
  std::array<double, kLanes> sums{};
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[at + lane];
      sums[lane] += value * value;
    }
  }
  for (int64_t lane = 0; at < count; ++at, ++lane) {
    const double value = values[at];
    sums[lane] += value * value;
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

// Works in pieces, because a float64 copy of the gradient would be as large as both of Adam's
// moments.
double NormOnDevice(const at::Tensor& gradient) {
  constexpr int64_t kPiece = 1 << 22;
  const at::Tensor sum = at::zeros({}, gradient.options().dtype(at::kDouble));
  for (int64_t at = 0; at < gradient.numel(); at += kPiece) {
    const int64_t size = std::min(kPiece, gradient.numel() - at);
    sum.add_(gradient.narrow(0, at, size).to(at::kDouble).square().sum());
  }
  return std::sqrt(sum.item<double>());
}

// Returns the bytes of a contiguous CPU tensor.
absl::string_view BytesOf(const at::Tensor& tensor) {
  return absl::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
}

// Restores running statistics unless Keep is called, because the forward pass changes them before
// it is known whether there is an update.
class StatisticsGuard {
 public:
  explicit StatisticsGuard(const FlatParameters& parameters) {
    const int64_t size = parameters.layout().statistics_size;
    if (size == 0) return;
    statistics_ = parameters.buffers().narrow(0, 0, size);
    before_ = statistics_.clone();
  }
  StatisticsGuard(const StatisticsGuard&) = delete;
  StatisticsGuard& operator=(const StatisticsGuard&) = delete;
  ~StatisticsGuard() {
    if (!before_.defined()) return;
    const at::NoGradGuard no_grad;
    try {
      statistics_.copy_(before_);
    } catch (const c10::Error&) {
      // The device and its memory are lost; the earlier error reports that.
    }
  }

  void Keep() { before_ = at::Tensor(); }

 private:
  at::Tensor statistics_;
  at::Tensor before_;
};

// Adds the gradient of the loss on `batch` to parameters.gradients(). Returns the loss, a scalar.
at::Tensor AddGradient(const ModelConfig& model, const Pass& pass, const BatchTensors& batch,
                       const Objective& objective, const FlatParameters& parameters) {
  const at::Tensor logits = Logits(model, parameters.model(), batch, pass);  // [N, V]
  const at::Tensor loss = MeanLoss(logits, batch, objective);
  loss.backward();
  return loss.detach();
}

// Returns the number of targets that count in all micro-batches, a scalar in the model's precision.
at::Tensor CountedTargets(const std::vector<BatchTensors>& parts, at::TensorOptions options) {
  at::Tensor targets = at::zeros({}, options);
  for (const BatchTensors& part : parts) {
    if (part.counted.defined()) {
      targets += part.counted.sum();
    } else {
      targets += part.targets.numel();
    }
  }
  return targets;
}

// Returns a run's initial parameters and buffers.
FlatParameters StartOf(const RunConfig& config, at::TensorOptions options) {
  const at::NoGradGuard no_grad;
  FlatParameters parameters(config.model, config.training.rule, options);
  parameters.values().copy_(InitialParameters(config.model, parameters.layout(), config.seed));
  const at::Tensor buffers = InitialBuffers(parameters.layout(), config.seed);
  if (buffers.defined()) parameters.buffers().copy_(buffers);
  return parameters;
}

class TorchBackend : public Backend {
 public:
  explicit TorchBackend(const RunConfig& config)
      : config_(config),
        options_(TensorOptionsOf(config.device, config.precision)),
        parameters_(StartOf(config, options_)),
        optimizer_(config.training, parameters_.layout(), parameters_.values()) {
    const at::NoGradGuard no_grad;
    const auto bound = [&](const at::Tensor& values) {
      return BindParameters(config_.model, parameters_.layout(),
                            ParameterViews(parameters_.layout(), values), parameters_.buffers());
    };
    model_ = bound(parameters_.values());
    if (optimizer_.average().defined()) average_ = bound(optimizer_.average());
  }

  const BackendIdentity& identity() const override { return identity_; }

  absl::StatusOr<UpdateResult> Step(const UpdateRequest& update) override {
    return AtBoundary([&]() -> absl::StatusOr<UpdateResult> { return Update(update); });
  }

  absl::Status Evaluate(Evaluated what, const TokenBatch& batch, EvaluationSums* sums) override {
    return AtBoundary([&] {
      AddBatch(what == Evaluated::kAverage ? average_ : model_, batch, sums);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::vector<RecordedValue>> RecordGradients(const TokenBatch& batch) override {
    return AtBoundary([&]() -> absl::StatusOr<std::vector<RecordedValue>> {
      return engine::RecordGradients(config_, parameters_.layout(), parameters_.values(),
                                     parameters_.buffers(), TensorsOf(batch, options_));
    });
  }

  absl::StatusOr<RunTensors> Tensors() override {
    return AtBoundary([&]() -> absl::StatusOr<RunTensors> { return HostTensors(); });
  }

  absl::Status SetTensors(const RunTensors& tensors) override {
    return AtBoundary([&] {
      const at::NoGradGuard no_grad;
      Set(parameters_.values(), tensors.parameters);
      if (parameters_.buffers().defined()) Set(parameters_.buffers(), tensors.buffers);
      for (size_t i = 0; i < tensors.slots.size(); ++i) {
        Set(optimizer_.slots()[i].values, tensors.slots[i].bytes);
      }
      return absl::OkStatus();
    });
  }

 private:
  UpdateResult Update(const UpdateRequest& update) {
    const TrainingConfig& training = config_.training;
    const Dropout dropout = {config_.model.dropout, config_.seed, update.step, 0};
    StatisticsGuard statistics(parameters_);
    UpdateResult result;
    result.loss = Differentiate(config_.model, TrainingPass(config_, &dropout),
                                MakeParts(update.batch, training.accumulation, options_),
                                parameters_, training.label_smoothing);
    result.gradient_norm = GradientNorm(parameters_.gradients());
    // A gradient that isn't finite would spoil every parameter; it ends the run, as such a loss
    // does.
    result.made = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
    if (!result.made) return result;
    if (training.clip > 0) {
      ClipGradient(parameters_.gradients(), result.gradient_norm, training.clip);
    }
    optimizer_.Step(update.step, update.learning_rate, parameters_.values(),
                    parameters_.gradients());
    statistics.Keep();  // nothing can fail any more
    return result;
  }

  // Adds sums over all tokens, in float64.
  void AddBatch(const ModelParameters& parameters, const TokenBatch& tokens, EvaluationSums* sums) {
    const at::NoGradGuard no_grad;
    const Unrecorded unrecorded;
    const BatchTensors batch = TensorsOf(tokens, options_);
    const at::Tensor logits = Logits(config_.model, parameters, batch, Pass());  // [N, V]
    const double loss = TokenLosses(logits, batch).sum(at::kDouble).item<double>();
    at::Tensor hit = logits.argmax(-1).eq(batch.targets);  // [N]
    if (batch.counted.defined()) hit = hit.logical_and(batch.counted.to(at::kBool));
    const double hits = hit.sum().item<double>();
    const double count = batch.counted.defined() ? batch.counted.sum(at::kDouble).item<double>()
                                                 : static_cast<double>(batch.targets.numel());
    *sums = {sums->batches + 1, sums->loss + loss, sums->hits + hits, sums->tokens + count};
  }

  RunTensors HostTensors() {
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

  static void Set(const at::Tensor& tensor, absl::string_view bytes) {
    const at::Tensor host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
    TORCH_CHECK(host.nbytes() == bytes.size(), "a run's tensor has another size");
    std::memcpy(host.mutable_data_ptr(), bytes.data(), bytes.size());
    tensor.copy_(host);
  }

  const RunConfig config_;
  const at::TensorOptions options_;
  const BackendIdentity identity_ = {std::string(NameOf(TrainerKind::kTorch)),
                                     Environment(TrainerKind::kTorch), "torch_version",
                                     TorchVersion()};
  FlatParameters parameters_;
  Optimizer optimizer_;
  ModelParameters model_;         // views of the values, without autograd
  ModelParameters average_;       // views of the EMA weights, if kept
  std::vector<at::Tensor> host_;  // memory returned by the last Tensors()
};

}  // namespace

Pass TrainingPass(const RunConfig& config, const Dropout* dropout) {
  return {.rule = config.training.rule,
          .norm_backward = config.model.norm.backward,
          .statistics = Statistics::kBatchAndTrack,
          .dropout = dropout->rate > 0 ? dropout : nullptr};
}

double GradientNorm(const at::Tensor& gradient) {
  if (!gradient.is_cpu()) return NormOnDevice(gradient);
  return std::sqrt(gradient.scalar_type() == at::kDouble
                       ? SquaredNorm(gradient.const_data_ptr<double>(), gradient.numel())
                       : SquaredNorm(gradient.const_data_ptr<float>(), gradient.numel()));
}

double Differentiate(const ModelConfig& model, const Pass& pass,
                     const std::vector<BatchTensors>& parts, const FlatParameters& parameters,
                     double label_smoothing) {
  parameters.gradients().zero_();
  Objective objective = {label_smoothing, {}};
  if (parts.size() > 1) objective.targets = CountedTargets(parts, parameters.values().options());
  at::Tensor loss;
  Dropout dropout;
  if (pass.dropout != nullptr) dropout = *pass.dropout;
  Pass part_pass = pass;
  if (pass.dropout != nullptr) part_pass.dropout = &dropout;
  for (const BatchTensors& part : parts) {
    const at::Tensor added = AddGradient(model, part_pass, part, objective, parameters);
    dropout.first_row += part.rows;
    loss = loss.defined() ? loss + added : added;
  }
  return loss.item<double>();
}

std::vector<BatchTensors> MakeParts(const TokenBatch& batch, int64_t parts,
                                    at::TensorOptions options) {
  const int64_t rows = batch.rows / parts;
  TORCH_CHECK(rows * parts == batch.rows, "a batch can't be cut into equal parts");
  if (parts == 1) return {TensorsOf(batch, options)};
  std::vector<BatchTensors> made;
  for (int64_t part = 0; part < parts; ++part) {
    made.push_back(TensorsOf(batch.Rows(part * rows, rows), options));
  }
  return made;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeTorchBackend(const RunConfig& config) {
  return AtBoundary([&]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    return std::make_unique<TorchBackend>(config);
  });
}

}  // namespace ablate::engine
