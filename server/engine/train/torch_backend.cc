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
#include "server/engine/names.h"
#include "server/engine/train/boundary.h"
#include "server/engine/train/optimizer.h"
#include "server/engine/train/recorder.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

// LibTorch's reduction adds float32 squares one after the other: at 42 million parameters its norm
// is .4 % too small, and it is infinite where one square is.
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

double RowNorm(const at::Tensor& row) {
  return std::sqrt(row.scalar_type() == at::kDouble
                       ? SquaredNorm(row.const_data_ptr<double>(), row.numel())
                       : SquaredNorm(row.const_data_ptr<float>(), row.numel()));
}

// In pieces, for a copy of all gradients in float64 would be as large as both of Adam's moments.
at::Tensor NormsOnDevice(const at::Tensor& gradients) {
  constexpr int64_t kPiece = 1 << 22;
  const at::Tensor sums = at::zeros({gradients.size(0)}, gradients.options().dtype(at::kDouble));
  for (int64_t at = 0; at < gradients.size(1); at += kPiece) {
    const int64_t size = std::min(kPiece, gradients.size(1) - at);
    sums.add_(gradients.narrow(1, at, size).to(at::kDouble).square().sum(1));
  }
  return sums.sqrt_();
}

std::vector<double> OnHost(const at::Tensor& values) {
  const at::Tensor host = values.to(at::TensorOptions().device(at::kCPU).dtype(at::kDouble));
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

// A contiguous tensor on the CPU.
absl::string_view BytesOf(const at::Tensor& tensor) {
  return absl::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
}

// Running statistics change in the forward pass, before it is known whether there will be an
// update: whatever is not kept is as before.
class StatisticsGuard {
 public:
  explicit StatisticsGuard(const FlatParameters& parameters)
      : size_(parameters.layout().statistics_size) {
    if (size_ == 0) return;
    statistics_ = parameters.buffers().narrow(1, 0, size_);
    before_ = statistics_.clone();
    // Made now, for memory that ran out later would leave the change.
    kept_ = at::zeros({statistics_.size(0), 1}, statistics_.options().dtype(at::kBool));
  }
  StatisticsGuard(const StatisticsGuard&) = delete;
  StatisticsGuard& operator=(const StatisticsGuard&) = delete;
  ~StatisticsGuard() {
    if (size_ == 0) return;
    const at::NoGradGuard no_grad;
    try {
      at::where_out(statistics_, kept_, statistics_, before_);
    } catch (const c10::Error&) {
      // The device is lost, and its memory with it: what failed before says so.
    }
  }

  void Keep(size_t run) {
    if (size_ > 0) kept_[static_cast<int64_t>(run)].fill_(true);
  }

 private:
  const int64_t size_;
  at::Tensor statistics_;  // [R, size]
  at::Tensor before_;
  at::Tensor kept_;  // [R, 1]
};

// Adds the gradient of each run's loss on `batch` to parameters.gradients(). The losses, [R].
at::Tensor AddGradient(const ModelConfig& model, const Pass& pass, const StackBatch& batch,
                       const Objective& objective, const FlatParameters& parameters) {
  const at::Tensor logits = Logits(model, parameters.model(), batch, pass);  // [R, N, V]
  const at::Tensor losses = RunLosses(logits, batch, objective);             // [R]
  losses.backward(at::ones_like(losses));
  return losses.detach();
}

// The targets of each run that count in all parts of its batch, [R] in the model's precision.
at::Tensor CountedTargets(const std::vector<StackBatch>& parts, at::TensorOptions options) {
  at::Tensor targets = at::zeros({parts.front().runs}, options);
  for (const StackBatch& part : parts) {
    if (part.counted.defined()) {
      targets += part.counted.sum(1);
    } else {
      targets += part.targets.size(1);
    }
  }
  return targets;
}

// A stack's parameters and buffers as its runs begin.
FlatParameters StartOf(const std::vector<RunConfig>& configs, at::TensorOptions options) {
  const at::NoGradGuard no_grad;
  FlatParameters parameters(configs.front().model, configs.front().training.rule,
                            static_cast<int64_t>(configs.size()), options);
  for (size_t i = 0; i < configs.size(); ++i) {
    const auto run = static_cast<int64_t>(i);
    parameters.values()[run].copy_(
        InitialParameters(configs[i].model, parameters.layout(), configs[i].seed));
    const at::Tensor buffers = InitialBuffers(parameters.layout(), configs[i].seed);
    if (buffers.defined()) parameters.buffers()[run].copy_(buffers);
  }
  return parameters;
}

class TorchBackend : public Backend {
 public:
  explicit TorchBackend(const std::vector<RunConfig>& configs)
      : configs_(configs),
        options_(TensorOptionsOf(configs.front().device, configs.front().precision)),
        parameters_(StartOf(configs, options_)),
        optimizer_(configs.front().training, parameters_.layout(), parameters_.values()) {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < configs_.size(); ++i) {
      const auto bound = [&](const at::Tensor& values) {
        const auto run = static_cast<int64_t>(i);
        const at::Tensor& buffers = parameters_.buffers();
        return BindParameters(configs_[i].model, parameters_.layout(),
                              ParameterViews(parameters_.layout(), values.narrow(0, run, 1)),
                              buffers.defined() ? buffers.narrow(0, run, 1) : buffers);
      };
      models_.push_back(bound(parameters_.values()));
      if (optimizer_.average().defined()) averages_.push_back(bound(optimizer_.average()));
    }
  }

  const BackendIdentity& identity() const override { return identity_; }

  absl::StatusOr<std::vector<UpdateResult>> Step(absl::Span<const UpdateRequest> runs) override {
    return AtBoundary([&]() -> absl::StatusOr<std::vector<UpdateResult>> { return Update(runs); });
  }

  absl::Status Evaluate(int run, Evaluated what, const TokenBatch& batch,
                        EvaluationSums* sums) override {
    return AtBoundary([&] {
      AddBatch(run, what == Evaluated::kAverage ? averages_ : models_, batch, sums);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::vector<RecordedValue>> RecordGradients(int run,
                                                             const TokenBatch& batch) override {
    return AtBoundary([&]() -> absl::StatusOr<std::vector<RecordedValue>> {
      const RunConfig& config = configs_[static_cast<size_t>(run)];
      const auto row = [run](const at::Tensor& stack) {
        return stack.defined() ? stack.narrow(0, run, 1) : stack;
      };
      return engine::RecordGradients(config, parameters_.layout(), row(parameters_.values()),
                                     row(parameters_.buffers()),
                                     MakeStackBatch({&batch}, config.model.loss, options_));
    });
  }

  absl::StatusOr<RunTensors> Tensors(int run) override {
    return AtBoundary([&]() -> absl::StatusOr<RunTensors> { return HostTensors(run); });
  }

  absl::Status SetTensors(int run, const RunTensors& tensors) override {
    return AtBoundary([&] {
      const at::NoGradGuard no_grad;
      Set(parameters_.values()[run], tensors.parameters);
      if (parameters_.buffers().defined()) Set(parameters_.buffers()[run], tensors.buffers);
      for (size_t i = 0; i < tensors.slots.size(); ++i) {
        Set(optimizer_.slots()[i].values[run], tensors.slots[i].bytes);
      }
      return absl::OkStatus();
    });
  }

 private:
  std::vector<UpdateResult> Update(absl::Span<const UpdateRequest> runs) {
    const RunConfig& config = configs_.front();
    const Dropout dropout = DropoutOf(runs);
    StatisticsGuard statistics(parameters_);
    const std::vector<StackBatch> parts =
        MakeParts(BatchesOf(runs), config.training.accumulation, config.model.loss, options_);
    const BatchGradient gradient =
        Differentiate(config.model, TrainingPass(config, &dropout), parts, parameters_,
                      config.training.label_smoothing);
    const std::vector<double> losses = OnHost(gradient.losses);
    const std::vector<double> norms = OnHost(gradient.norms);
    std::vector<UpdateResult> results;
    std::vector<RunUpdate> updates;
    for (size_t run = 0; run < runs.size(); ++run) {
      // A gradient that is no number would make every parameter one: it ends its run as such a loss
      // does.
      const bool made =
          runs[run].batch != nullptr && std::isfinite(losses[run]) && std::isfinite(norms[run]);
      results.push_back({losses[run], norms[run], made});
      updates.push_back(
          {made, runs[run].step, runs[run].learning_rate, configs_[run].training.optimizer});
    }
    const auto active = [](const RunUpdate& update) { return update.active; };
    if (std::any_of(updates.begin(), updates.end(), active)) {
      if (config.training.clip > 0) {
        ClipGradients(parameters_.gradients(), gradient.norms, config.training.clip);
      }
      optimizer_.Step(updates, parameters_.values(), parameters_.gradients());
    }
    // Now that nothing can fail any more.
    for (size_t run = 0; run < runs.size(); ++run) {
      if (results[run].made) statistics.Keep(run);
    }
    return results;
  }

  Dropout DropoutOf(absl::Span<const UpdateRequest> runs) const {
    Dropout dropout;
    dropout.rate = configs_.front().model.dropout;
    for (size_t run = 0; run < runs.size(); ++run) {
      dropout.runs.push_back({configs_[run].seed, runs[run].step});
    }
    return dropout;
  }

  // One a run; a run that has ended borrows a neighbour's.
  static std::vector<const TokenBatch*> BatchesOf(absl::Span<const UpdateRequest> runs) {
    const auto drawn = std::find_if(runs.begin(), runs.end(),
                                    [](const UpdateRequest& run) { return run.batch != nullptr; });
    std::vector<const TokenBatch*> batches;
    for (const UpdateRequest& run : runs) {
      batches.push_back(run.batch != nullptr ? run.batch : drawn->batch);
    }
    return batches;
  }

  // Sums over all tokens in float64. `models` has one a run.
  void AddBatch(int run, const std::vector<ModelParameters>& models, const TokenBatch& tokens,
                EvaluationSums* sums) {
    const at::NoGradGuard no_grad;
    const ModelConfig& model = configs_[static_cast<size_t>(run)].model;
    const StackBatch batch = MakeStackBatch({&tokens}, model.loss, options_);
    const at::Tensor logits =
        Logits(model, models.at(static_cast<size_t>(run)), batch, Pass());  // [1, N, V]
    const double loss = TokenLosses(logits, batch).sum(at::kDouble).item<double>();
    at::Tensor hit = logits.argmax(-1).eq(batch.targets);  // [1, N]
    if (batch.counted.defined()) hit = hit.logical_and(batch.counted.to(at::kBool));
    const double hits = hit.sum().item<double>();
    const double count = batch.counted.defined() ? batch.counted.sum(at::kDouble).item<double>()
                                                 : static_cast<double>(batch.targets.numel());
    *sums = {sums->batches + 1, sums->loss + loss, sums->hits + hits, sums->tokens + count};
  }

  RunTensors HostTensors(int run) {
    host_.clear();
    const auto bytes = [&](const at::Tensor& stack) {
      host_.push_back(stack[run].to(at::kCPU).contiguous());
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

  static void Set(const at::Tensor& row, absl::string_view bytes) {
    const at::Tensor host = at::empty(row.sizes(), row.options().device(at::kCPU));
    TORCH_CHECK(host.nbytes() == bytes.size(), "a run's tensor has another size");
    std::memcpy(host.mutable_data_ptr(), bytes.data(), bytes.size());
    row.copy_(host);
  }

  const std::vector<RunConfig> configs_;
  const at::TensorOptions options_;
  const BackendIdentity identity_ = {std::string(NameOf(TrainerKind::kTorch)),
                                     Environment(TrainerKind::kTorch), "torch_version",
                                     TorchVersion()};
  FlatParameters parameters_;
  Optimizer optimizer_;
  std::vector<ModelParameters> models_;    // views of one run each
  std::vector<ModelParameters> averages_;  // the same of the average, if there is one
  std::vector<at::Tensor> host_;           // what the last Tensors() lent
};

}  // namespace

Pass TrainingPass(const RunConfig& config, const Dropout* dropout) {
  return {.rule = config.training.rule,
          .norm_backward = config.model.norm.backward,
          .statistics = Statistics::kBatchAndTrack,
          .dropout = dropout->rate > 0 ? dropout : nullptr};
}

at::Tensor GradientNorms(const at::Tensor& gradients) {
  if (!gradients.is_cpu()) return NormsOnDevice(gradients);
  at::Tensor norms = at::empty({gradients.size(0)}, at::kDouble);
  for (int64_t run = 0; run < gradients.size(0); ++run) {
    norms.mutable_data_ptr<double>()[run] = RowNorm(gradients[run]);
  }
  return norms;
}

BatchGradient Differentiate(const ModelConfig& model, const Pass& pass,
                            const std::vector<StackBatch>& parts, const FlatParameters& parameters,
                            double label_smoothing) {
  parameters.gradients().zero_();
  Objective objective = {label_smoothing, {}};
  if (parts.size() > 1) objective.targets = CountedTargets(parts, parameters.values().options());
  at::Tensor losses;  // [R]
  Dropout dropout;
  if (pass.dropout != nullptr) dropout = *pass.dropout;
  Pass part_pass = pass;
  if (pass.dropout != nullptr) part_pass.dropout = &dropout;
  for (const StackBatch& part : parts) {
    const at::Tensor added = AddGradient(model, part_pass, part, objective, parameters);
    dropout.first_row += part.rows;
    losses = losses.defined() ? losses + added : added;
  }
  const at::NoGradGuard no_grad;
  return {losses, GradientNorms(parameters.gradients())};
}

std::vector<StackBatch> MakeParts(const std::vector<const TokenBatch*>& batches, int64_t parts,
                                  LossPositions loss, at::TensorOptions options) {
  const int64_t rows = batches.front()->rows / parts;
  TORCH_CHECK(rows * parts == batches.front()->rows, "a batch can't be cut into equal parts");
  if (parts == 1) return {MakeStackBatch(batches, loss, options)};
  std::vector<StackBatch> made;
  for (int64_t part = 0; part < parts; ++part) {
    std::vector<TokenBatch> cut;
    for (const TokenBatch* batch : batches) cut.push_back(batch->Rows(part * rows, rows));
    std::vector<const TokenBatch*> stacked;
    for (const TokenBatch& batch : cut) stacked.push_back(&batch);
    made.push_back(MakeStackBatch(stacked, loss, options));
  }
  return made;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeTorchBackend(const std::vector<RunConfig>& configs) {
  return AtBoundary([&]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    return std::make_unique<TorchBackend>(configs);
  });
}

}  // namespace ablate::engine
