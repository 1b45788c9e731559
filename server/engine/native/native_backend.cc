#include "server/engine/native/native_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/core/layout.h"
#include "server/engine/names.h"
#include "server/engine/native/batch_pass.h"
#include "server/engine/native/columns.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {
namespace {

absl::Span<const float> SpanOf(const Floats& floats) {
  return {floats.data(), static_cast<size_t>(floats.size())};
}

absl::string_view BytesOf(const Floats& floats) {
  return {reinterpret_cast<const char*>(floats.data()),
          static_cast<size_t>(floats.size()) * sizeof(float)};
}

Floats CopyOf(const std::vector<float>& values) {
  Floats floats(static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), floats.data());
  return floats;
}

// Number of held-out batches whose prefix-shared groups are cached. A batch has at most 256 short
// rows, so that the cache is a few megabytes.
constexpr size_t kKeptBatches = 64;

class NativeBackend : public Backend {
 public:
  NativeBackend(const RunConfig& config, NativeStart start, const Kernels& kernels)
      : config_(config),
        kernels_(kernels),
        layout_(MakeLayout(config.model, config.training.rule)),
        identity_{std::string(NameOf(TrainerKind::kNative)), Environment(kernels), "native_target",
                  kernels.target},
        values_(CopyOf(start.values)),
        buffers_(CopyOf(start.buffers)),
        record_(std::move(start.record)),
        gradients_(layout_.size),
        ranges_(UpdateRanges(layout_, config.training.optimizer)),
        training_(config_.model, training_pass_, config_.training.rule, kernels),
        evaluation_(config_.model, evaluation_pass_, config_.training.rule, kernels) {
    training_pass_ = {true, config_.model.norm.backward, config_.seed, 0};
    for (const std::string& name : OptimizerSlots(config_.training)) {
      slots_.emplace_back(layout_.size);
      names_.push_back(name);
      if (name == kEmaSlot) std::copy_n(values_.data(), layout_.size, slots_.back().data());
    }
    const auto bind = [&](const Floats& values, float* gradients) {
      return BindModel(config_.model, config_.training.rule, layout_,
                       {values.data(), gradients, buffers_.data()});
    };
    model_ = bind(values_, gradients_.data());
    if (config_.training.ema > 0) ema_model_ = bind(slots_.back(), nullptr);
  }

  const BackendIdentity& identity() const override { return identity_; }

  absl::StatusOr<UpdateResult> Step(const UpdateRequest& update) override {
    if (!CanStandardise(config_, update.batch)) return absl::InternalError(kOnePosition);
    try {
      return Update(update);
    } catch (const std::bad_alloc&) {
      return OutOfMemory();
    }
  }

  absl::Status Evaluate(Evaluated what, absl::Span<const TokenBatch> batches,
                        EvaluationSums* sums) override {
    try {
      const Model& model = what == Evaluated::kEmaWeights ? ema_model_ : model_;
      for (const TokenBatch& batch : batches) {
        const LossSums added = evaluation_.Score(model, batch, PrefixBatchesOf(sums->batches));
        sums->Add(1, added.loss, added.correct, added.tokens);
      }
      return absl::OkStatus();
    } catch (const std::bad_alloc&) {
      return OutOfMemory();
    }
  }

  absl::StatusOr<std::vector<RecordedValue>> RecordGradients(const TokenBatch& batch) override {
    return record_(SpanOf(values_), SpanOf(buffers_), batch);
  }

  absl::StatusOr<RunTensors> Tensors() override {
    RunTensors tensors;
    tensors.parameters = BytesOf(values_);
    tensors.buffers = BytesOf(buffers_);
    for (size_t i = 0; i < slots_.size(); ++i) {
      tensors.slots.push_back({names_[i], BytesOf(slots_[i])});
    }
    return tensors;
  }

  absl::Status SetTensors(const RunTensors& tensors) override {
    const auto set = [](absl::string_view bytes, Floats& to) {
      std::memcpy(to.data(), bytes.data(), bytes.size());
    };
    set(tensors.parameters, values_);
    set(tensors.buffers, buffers_);
    for (size_t i = 0; i < slots_.size(); ++i) set(tensors.slots[i].bytes, slots_[i]);
    return absl::OkStatus();
  }

 private:
  // Returns the cache of a held-out batch, which is the same at every evaluation.
  std::vector<Columns>* PrefixBatchesOf(size_t batch) {
    if (batch >= kKeptBatches) return nullptr;
    if (prefix_batches_.size() <= batch) prefix_batches_.resize(batch + 1);
    return &prefix_batches_[batch];
  }

  UpdateResult Update(const UpdateRequest& request) {
    std::fill_n(gradients_.data(), layout_.size, 0.0f);
    // The forward pass updates running statistics before it is known whether there is an update.
    statistics_.assign(buffers_.data(), buffers_.data() + layout_.statistics_size);
    const auto put_back = [this] {
      std::copy(statistics_.begin(), statistics_.end(), buffers_.data());
    };
    training_pass_.step = request.step;
    UpdateResult result;
    try {
      result.loss = static_cast<float>(
          training_.AddGradient(model_, request.batch, config_.training.label_smoothing,
                                config_.training.z_loss, config_.training.accumulation));
    } catch (const std::bad_alloc&) {
      put_back();
      throw;
    }
    result.gradient_norm = std::sqrt(kernels_.squared_norm(gradients_.data(), layout_.size));
    result.made = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
    if (result.made) {
      Step(request, result.gradient_norm);
    } else {
      put_back();
    }
    return result;
  }

  void Step(const UpdateRequest& request, double norm) {
    const OptimizerConfig& optimizer = config_.training.optimizer;
    const double clip = config_.training.clip;
    const double scale = clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1;
    for (const ParameterRange& range : ranges_) {
      const RangeNumbers numbers = NumbersOf(request, range, scale);
      switch (optimizer.kind) {
        case OptimizerKind::kAdamW:
        case OptimizerKind::kAdam:
          StepAdam(request, range, numbers);
          break;
        case OptimizerKind::kSgd:
          StepSgd(range, numbers);
          break;
        case OptimizerKind::kLion:
          StepLion(range, numbers);
          break;
        case OptimizerKind::kMuon:
          break;  // WhyNotNative
      }
    }
    if (config_.training.ema <= 0) return;
    kernels_.lerp(values_.data(), static_cast<float>(1 - config_.training.ema),
                  slots_.back().data(), layout_.size);
  }

  // The numbers of a range's update, as in AdamStep.
  struct RangeNumbers {
    float clip;
    double learning_rate;
    double decay;
    double shrink;
  };
  RangeNumbers NumbersOf(const UpdateRequest& request, const ParameterRange& range,
                         double scale) const {
    const OptimizerConfig& optimizer = config_.training.optimizer;
    const double learning_rate = request.learning_rate * range.rate;
    const double decay = range.decays ? optimizer.weight_decay : 0;
    const auto clip = static_cast<float>(scale);
    if (optimizer.kind == OptimizerKind::kAdam || optimizer.kind == OptimizerKind::kSgd) {
      return {clip, learning_rate, decay, 1};
    }
    const bool scaled = optimizer.weight_decay_form == WeightDecayForm::kScaled;
    return {clip, learning_rate, 0, 1 - (scaled ? learning_rate : request.factor) * decay};
  }

  void StepAdam(const UpdateRequest& request, const ParameterRange& range,
                const RangeNumbers& numbers) {
    const OptimizerConfig& optimizer = config_.training.optimizer;
    AdamStep step;
    step.n = range.size;
    step.values = values_.data() + range.offset;
    step.gradients = gradients_.data() + range.offset;
    step.first = slots_[0].data() + range.offset;
    step.second = slots_[1].data() + range.offset;
    step.clip = numbers.clip;
    step.learning_rate = numbers.learning_rate;
    step.decay = numbers.decay;
    step.shrink = numbers.shrink;
    step.beta1 = optimizer.beta1;
    step.beta2 = optimizer.beta2;
    step.eps = optimizer.eps;
    step.step = int64_t{request.step} + 1;
    kernels_.adam(step);
  }

  void StepSgd(const ParameterRange& range, const RangeNumbers& numbers) {
    SgdStep step;
    step.n = range.size;
    step.values = values_.data() + range.offset;
    step.gradients = gradients_.data() + range.offset;
    step.momenta = slots_[0].data() + range.offset;
    step.clip = numbers.clip;
    step.learning_rate = static_cast<float>(numbers.learning_rate);
    step.decay = static_cast<float>(numbers.decay);
    step.momentum = static_cast<float>(config_.training.optimizer.momentum);
    kernels_.sgd(step);
  }

  void StepLion(const ParameterRange& range, const RangeNumbers& numbers) {
    LionStep step;
    step.n = range.size;
    step.values = values_.data() + range.offset;
    step.gradients = gradients_.data() + range.offset;
    step.momenta = slots_[0].data() + range.offset;
    step.clip = numbers.clip;
    step.learning_rate = numbers.learning_rate;
    step.shrink = numbers.shrink;
    step.beta1 = config_.training.optimizer.beta1;
    step.beta2 = config_.training.optimizer.beta2;
    kernels_.lion(step);
  }

  const RunConfig config_;
  const Kernels& kernels_;
  const ParameterLayout layout_;
  const BackendIdentity identity_;
  Floats values_;
  Floats buffers_;
  GradientRecorder record_;
  Floats gradients_;
  std::vector<Floats> slots_;
  std::vector<std::string> names_;
  std::vector<float> statistics_;
  const std::vector<ParameterRange> ranges_;
  PassSetting training_pass_;
  const PassSetting evaluation_pass_;
  BatchPass training_;
  BatchPass evaluation_;
  std::vector<std::vector<Columns>> prefix_batches_;  // by held-out batch, if cached
  Model model_;
  Model ema_model_;
};

}  // namespace

std::string Environment(const Kernels& kernels) {
  return absl::StrCat("native, ", kernels.fused ? "fused" : kernels.target);
}

std::unique_ptr<Backend> MakeNativeBackend(const RunConfig& config, NativeStart start,
                                           const Kernels& kernels) {
  return std::make_unique<NativeBackend>(config, std::move(start), kernels);
}

}  // namespace ablate::engine::native
