#include "server/engine/torch/train/optimizer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "server/engine/core/layout.h"
#include "server/engine/torch/model/unrecorded.h"

namespace ablate::engine {
namespace {

// LibTorch's fused update of a list of tensors.
using FusedAdam = void(at::TensorList values, at::TensorList gradients, at::TensorList first,
                       at::TensorList second, at::TensorList largest, at::TensorList steps,
                       const at::Tensor& learning_rate, double beta1, double beta2,
                       double weight_decay, double eps, bool amsgrad, bool maximize,
                       const std::optional<at::Tensor>& scale,
                       const std::optional<at::Tensor>& found_inf);

// Returns a number with the type and device of `like`; infinite if it is too large for the type.
at::Tensor NumberLike(const at::Tensor& like, double number) {
  return at::scalar_tensor(number, like.options().dtype(at::kDouble)).to(like.scalar_type());
}

// Sets `to` to `value`, unless the update is frozen.
void Assign(const at::Tensor& to, const at::Tensor& value, const at::Tensor& frozen) {
  to.copy_(at::where(frozen, to, value));
}

}  // namespace

UpdateNumbers NumbersOf(uint32_t step, double learning_rate) {
  return {at::scalar_tensor(step + 1.0, at::kFloat), at::scalar_tensor(learning_rate, at::kDouble)};
}

Optimizer::Optimizer(const TrainingConfig& training, const ParameterLayout& layout,
                     const at::Tensor& values)
    : config_(training.optimizer), ema_(training.ema) {
  for (const ParameterRange& range : DecayRanges(layout, config_.weight_decay_on)) {
    (range.decays ? decayed_ : exempt_).push_back(range);
  }
  for (std::string& name : OptimizerSlots(training)) {
    slots_.push_back({std::move(name), at::zeros_like(values)});
  }
  if (config_.kind == OptimizerKind::kSgd) scratch_ = at::empty_like(values);
  if (ema_ > 0) {
    ema_weights_ = slots_.back().values;
    ema_weights_.copy_(values);
  }
}

void Optimizer::Restart(const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  for (const OptimizerSlot& slot : slots_) slot.values.zero_();
  if (ema_ > 0) ema_weights_.copy_(values);
}

void Optimizer::Step(const UpdateNumbers& numbers, const at::Tensor& values,
                     const at::Tensor& gradients) {
  const at::NoGradGuard no_grad;
  const Unrecorded unrecorded;
  if (config_.kind == OptimizerKind::kSgd) {
    StepSgd(numbers, values, gradients);
  } else {
    StepAdam(numbers, decayed_, config_.weight_decay, values, gradients);
    StepAdam(numbers, exempt_, 0, values, gradients);
  }
  if (ema_ <= 0) return;
  if (numbers.frozen.defined()) {
    Assign(ema_weights_, ema_weights_.lerp(values, 1 - ema_), numbers.frozen);
  } else {
    ema_weights_.lerp_(values, 1 - ema_);
  }
}

void Optimizer::StepAdam(const UpdateNumbers& numbers, const std::vector<ParameterRange>& ranges,
                         double weight_decay, const at::Tensor& values,
                         const at::Tensor& gradients) {
  if (ranges.empty()) return;
  const auto parts = [&ranges](const at::Tensor& whole) {
    std::vector<at::Tensor> list;
    for (const ParameterRange& range : ranges) {
      list.push_back(whole.narrow(0, range.offset, range.size));
    }
    return list;
  };
  const std::vector<at::Tensor> updates(ranges.size(), numbers.update);
  std::optional<at::Tensor> frozen;
  if (numbers.frozen.defined()) frozen = numbers.frozen.to(at::kFloat);
  const auto fused = config_.kind == OptimizerKind::kAdamW
                         ? static_cast<FusedAdam*>(at::_fused_adamw_)
                         : static_cast<FusedAdam*>(at::_fused_adam_);
  fused(parts(values), parts(gradients), parts(slots_[0].values), parts(slots_[1].values), {},
        updates, numbers.learning_rate, config_.beta1, config_.beta2, weight_decay, config_.eps,
        /*amsgrad=*/false, /*maximize=*/false,
        /*grad_scale=*/{}, frozen);
}

void Optimizer::StepSgd(const UpdateNumbers& numbers, const at::Tensor& values,
                        const at::Tensor& gradients) {
  // As tensors, because with a scalar LibTorch would round multiplication and addition only once.
  const at::Tensor factor = numbers.learning_rate.to(values.scalar_type());
  const at::Tensor decay = NumberLike(values, config_.weight_decay);
  const at::Tensor& velocity = slots_[0].values;
  if (config_.weight_decay != 0) {
    for (const ParameterRange& range : decayed_) {  // g ← g + λθ
      gradients.narrow(0, range.offset, range.size)
          .addcmul_(values.narrow(0, range.offset, range.size), decay);
    }
  }
  if (numbers.frozen.defined()) {
    Assign(velocity, velocity.mul(config_.momentum).add_(gradients), numbers.frozen);
    Assign(values, values - velocity.mul(factor), numbers.frozen);
    return;
  }
  velocity.mul_(config_.momentum).add_(gradients);  // b ← μb + g
  at::mul_out(scratch_, velocity, factor);
  values.sub_(scratch_);  // θ ← θ − ηb
}

void ClipGradient(const at::Tensor& gradient, double norm, double clip) {
  gradient.mul_(std::min(1.0, clip * (1 / (norm + 1e-6))));
}

}  // namespace ablate::engine
