// Updates as elementwise operations on flat buffers; a run's numbers are columns [R, 1].
#include "server/engine/train/optimizer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/engine/layout.h"

namespace ablate::engine {
namespace {

// One number a run as a column [R, 1] on the parameters' device.
template <typename Number>
at::Tensor Column(const std::vector<RunUpdate>& runs, at::TensorOptions options,
                  const Number& number) {
  at::Tensor column = at::empty({static_cast<int64_t>(runs.size()), 1}, at::kDouble);
  double* to = column.mutable_data_ptr<double>();
  for (const RunUpdate& run : runs) *to++ = number(run);
  return column.to(options);
}

bool AnyWeightDecay(const std::vector<RunUpdate>& runs) {
  return std::any_of(runs.begin(), runs.end(),
                     [](const RunUpdate& run) { return run.optimizer.weight_decay != 0; });
}

// 1 − βᵗ, the correction of a moment's bias towards 0 after t updates.
double BiasCorrection(double beta, uint32_t updates) { return 1 - std::pow(beta, updates); }

// The range's part of [R, P].
at::Tensor In(const at::Tensor& values, const ParameterRange& range) {
  return values.narrow(1, range.offset, range.size);
}

// The runs that are updated, [R, 1] bool; undefined if all are.
at::Tensor ActiveRuns(const std::vector<RunUpdate>& runs, const at::Tensor& values) {
  const auto active = [](const RunUpdate& run) { return run.active; };
  if (std::all_of(runs.begin(), runs.end(), active)) return {};
  return Column(runs, values.options().dtype(at::kBool), active);
}

// LibTorch's update of a list of tensors in one pass; it knows a single learning rate.
using FusedAdam = void(at::TensorList values, at::TensorList gradients, at::TensorList first,
                       at::TensorList second, at::TensorList largest, at::TensorList steps,
                       double rate, double beta1, double beta2, double weight_decay, double eps,
                       bool amsgrad, bool maximize, const std::optional<at::Tensor>& scale,
                       const std::optional<at::Tensor>& found_inf);

}  // namespace

Optimizer::Optimizer(const TrainingConfig& training, const ParameterLayout& layout,
                     const at::Tensor& values)
    : kind_(training.optimizer.kind), ema_(training.ema), scratch_(at::empty_like(values)) {
  for (const ParameterRange& range : DecayRanges(layout, training.optimizer.weight_decay_on)) {
    (range.decays ? decayed_ : exempt_).push_back(range);
  }
  for (std::string& name : OptimizerSlots(training)) {
    slots_.push_back({std::move(name), at::zeros_like(values)});
  }
  if (ema_ > 0) {
    average_ = slots_.back().values;
    average_.copy_(values);
  }
}

void Optimizer::Step(const std::vector<RunUpdate>& runs, const at::Tensor& values,
                     const at::Tensor& gradients) {
  const at::NoGradGuard no_grad;
  if (kind_ != OptimizerKind::kSgd && values.is_cpu() && runs.size() == 1) {
    if (!runs[0].active) return;
    StepAdamFused(runs[0], values, gradients);
    if (ema_ > 0) average_.lerp_(values, 1 - ema_);
    return;
  }
  std::vector<at::Tensor> state = {values};
  for (const OptimizerSlot& slot : slots_) state.push_back(slot.values);
  // Runs that are not active are put back afterwards: no factor of 0 would undo a NaN.
  const at::Tensor active = ActiveRuns(runs, values);
  std::vector<at::Tensor> before;
  if (active.defined()) {
    for (const at::Tensor& tensor : state) before.push_back(tensor.clone());
  }
  if (kind_ == OptimizerKind::kSgd) {
    StepSgd(runs, values, gradients);
  } else {
    StepAdam(runs, values, gradients);
  }
  if (ema_ > 0) average_.lerp_(values, 1 - ema_);
  // In place: memory that ran out here would leave the update made, but not counted.
  for (size_t i = 0; i < before.size(); ++i) {
    at::where_out(state[i], active, state[i], before[i]);
  }
}

void Optimizer::StepAdam(const std::vector<RunUpdate>& runs, const at::Tensor& values,
                         const at::Tensor& gradients) {
  const auto column = [&](const auto& number) { return Column(runs, values.options(), number); };
  const at::Tensor first_weight =
      column([](const RunUpdate& run) { return 1 - run.optimizer.beta1; });
  const at::Tensor second_decay = column([](const RunUpdate& run) { return run.optimizer.beta2; });
  const at::Tensor second_weight =
      column([](const RunUpdate& run) { return 1 - run.optimizer.beta2; });
  const at::Tensor root = column([](const RunUpdate& run) {
    return std::sqrt(BiasCorrection(run.optimizer.beta2, run.step + 1));
  });
  const at::Tensor eps = column([](const RunUpdate& run) { return run.optimizer.eps; });
  const at::Tensor size = column([](const RunUpdate& run) {
    return run.learning_rate / BiasCorrection(run.optimizer.beta1, run.step + 1);
  });
  const at::Tensor& first = slots_[0].values;
  const at::Tensor& second = slots_[1].values;

  if (kind_ == OptimizerKind::kAdamW) {
    ShrinkValues(runs, values);
  } else {
    AddWeightDecay(runs, values, gradients);
  }
  first.lerp_(gradients, first_weight);  // m ← β₁m + (1−β₁)g
  at::mul_out(scratch_, gradients, second_weight);
  second.mul_(second_decay).addcmul_(gradients, scratch_);  // v ← β₂v + (1−β₂)g²
  at::sqrt_out(scratch_, second);
  scratch_.div_(root).add_(eps);  // √(v/c₂) + ε
  at::div_out(scratch_, first, scratch_);
  scratch_.mul_(size);
  values.sub_(scratch_);  // θ ← θ − (η/c₁)·m/(√(v/c₂) + ε)
}

void Optimizer::AddWeightDecay(const std::vector<RunUpdate>& runs, const at::Tensor& values,
                               const at::Tensor& gradients) const {
  if (!AnyWeightDecay(runs)) return;
  const at::Tensor factor = Column(runs, values.options(),
                                   [](const RunUpdate& run) { return run.optimizer.weight_decay; });
  for (const ParameterRange& range : decayed_) {
    In(gradients, range).addcmul_(In(values, range), factor);
  }
}

void Optimizer::ShrinkValues(const std::vector<RunUpdate>& runs, const at::Tensor& values) const {
  if (!AnyWeightDecay(runs)) return;
  const at::Tensor factor = Column(runs, values.options(), [](const RunUpdate& run) {
    return 1 - run.learning_rate * run.optimizer.weight_decay;
  });
  for (const ParameterRange& range : decayed_) In(values, range).mul_(factor);
}

void Optimizer::StepAdamFused(const RunUpdate& run, const at::Tensor& values,
                              const at::Tensor& gradients) {
  StepAdamFused(run, decayed_, run.optimizer.weight_decay, values, gradients);
  StepAdamFused(run, exempt_, 0, values, gradients);
}

void Optimizer::StepAdamFused(const RunUpdate& run, const std::vector<ParameterRange>& ranges,
                              double weight_decay, const at::Tensor& values,
                              const at::Tensor& gradients) {
  if (ranges.empty()) return;
  const auto parts = [&ranges](const at::Tensor& whole) {
    std::vector<at::Tensor> list;
    for (const ParameterRange& range : ranges) list.push_back(In(whole, range));
    return list;
  };
  const std::vector<at::Tensor> steps(ranges.size(), at::scalar_tensor(run.step + 1.0));
  const auto fused = kind_ == OptimizerKind::kAdamW ? static_cast<FusedAdam*>(at::_fused_adamw_)
                                                    : static_cast<FusedAdam*>(at::_fused_adam_);
  const OptimizerConfig& optimizer = run.optimizer;
  fused(parts(values), parts(gradients), parts(slots_[0].values), parts(slots_[1].values), {},
        steps, run.learning_rate, optimizer.beta1, optimizer.beta2, weight_decay, optimizer.eps,
        /*amsgrad=*/false, /*maximize=*/false,
        /*grad_scale=*/{}, /*found_inf=*/{});
}

void Optimizer::StepSgd(const std::vector<RunUpdate>& runs, const at::Tensor& values,
                        const at::Tensor& gradients) {
  const auto column = [&](const auto& number) { return Column(runs, values.options(), number); };
  const at::Tensor momentum = column([](const RunUpdate& run) { return run.optimizer.momentum; });
  const at::Tensor rate = column([](const RunUpdate& run) { return run.learning_rate; });
  const at::Tensor& velocity = slots_[0].values;

  AddWeightDecay(runs, values, gradients);
  velocity.mul_(momentum).add_(gradients);  // b ← μb + g
  at::mul_out(scratch_, velocity, rate);
  values.sub_(scratch_);  // θ ← θ − ηb
}

void ClipGradients(const at::Tensor& gradients, const at::Tensor& norms, double clip) {
  const at::Tensor factor = (norms + 1e-6).reciprocal_().mul_(clip).clamp_max_(1);  // [R]
  gradients.mul_(factor.to(gradients.scalar_type()).unsqueeze(1));
}

}  // namespace ablate::engine
