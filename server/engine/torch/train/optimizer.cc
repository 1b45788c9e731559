#include "server/engine/torch/train/optimizer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>
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

// Calls change(to), which changes it in place, unless the update is frozen.
template <typename Change>
void Apply(const at::Tensor& frozen, const at::Tensor& to, const Change& change) {
  if (!frozen.defined()) {
    change(to);
    return;
  }
  const at::Tensor changed = to.clone();
  change(changed);
  to.copy_(at::where(frozen, to, changed));
}

at::Tensor PartOf(const at::Tensor& whole, const ParameterRange& range) {
  return whole.narrow(0, range.offset, range.size);
}

// Returns x [n, rows, columns] with the singular values of each matrix moved to about 1, by
// iterations of Newton and Schulz with Muon's coefficients (K. Jordan, 2024). A matrix of zeros
// stays one.
at::Tensor Orthogonal(at::Tensor x, int iterations) {
  constexpr double kA = 3.4445, kB = -4.775, kC = 2.0315, kEps = 1e-7;
  const at::NoTF32Guard full_precision;
  const bool tall = x.size(1) > x.size(2);
  if (tall) x = x.mT();
  x = x / at::linalg_vector_norm(x, 2, at::IntArrayRef{1, 2}, true).clamp_min(kEps);
  for (int i = 0; i < iterations; ++i) {
    const at::Tensor gram = at::bmm(x, x.mT());
    x = at::baddbmm(x, at::baddbmm(gram, gram, gram, kB, kC), x, kA, 1);
  }
  return tall ? x.mT() : x;
}

// Returns the factor of a matrix's learning rate.
double AdjustmentOf(MuonAdjust adjust, const MatrixView& matrix) {
  const auto rows = static_cast<double>(matrix.rows), columns = static_cast<double>(matrix.columns);
  switch (adjust) {
    case MuonAdjust::kOriginal:
      return std::sqrt(std::max(1.0, rows / columns));
    case MuonAdjust::kMatchRms:
      break;
  }
  return 0.2 * std::sqrt(std::max(rows, columns));
}

}  // namespace

UpdateNumbers NumbersOf(const UpdateRequest& update) {
  return {at::scalar_tensor(update.step + 1.0, at::kFloat),
          at::scalar_tensor(update.learning_rate, at::kDouble),
          at::scalar_tensor(update.factor, at::kDouble)};
}

Optimizer::Optimizer(const RunConfig& run, const ParameterLayout& layout, const at::Tensor& values)
    : config_(run.training.optimizer), ema_(run.training.ema) {
  for (const ParameterRange& range : UpdateRanges(layout, config_)) {
    const auto like = std::find_if(groups_.begin(), groups_.end(),
                                   [&](const Group& group) { return group.front().IsLike(range); });
    (like == groups_.end() ? groups_.emplace_back() : *like).push_back(range);
  }
  std::map<std::pair<int64_t, int64_t>, std::vector<MatrixView>> by_shape;
  for (const MatrixView& matrix : BlockMatrices(run.model, layout)) {
    by_shape[{matrix.rows, matrix.columns}].push_back(matrix);
  }
  for (auto& [shape, matrices] : by_shape) matrices_.push_back(std::move(matrices));
  for (std::string& name : OptimizerSlots(run.training)) {
    slots_.push_back({std::move(name), at::zeros_like(values)});
  }
  const bool fused = config_.kind == OptimizerKind::kAdamW || config_.kind == OptimizerKind::kAdam;
  if (!fused) scratch_ = at::empty_like(values);
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
  switch (config_.kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
      for (const Group& group : groups_) StepAdam(numbers, group, values, gradients);
      break;
    case OptimizerKind::kSgd:
      StepSgd(numbers, values, gradients);
      break;
    case OptimizerKind::kMuon:
      StepMuon(numbers, values, gradients);
      break;
    case OptimizerKind::kLion:
      StepLion(numbers, values, gradients);
      break;
  }
  if (ema_ <= 0) return;
  Apply(numbers.frozen, ema_weights_, [&](const at::Tensor& ema) { ema.lerp_(values, 1 - ema_); });
}

bool Optimizer::IsMuonsAdamW(const Group& group) const {
  return config_.kind == OptimizerKind::kMuon && !group.front().orthogonalised;
}

at::Tensor Optimizer::LearningRateOf(const UpdateNumbers& numbers, const Group& group) const {
  const double rate = group.front().rate;
  if (IsMuonsAdamW(group)) return numbers.factor * (config_.muon.adamw_learning_rate * rate);
  return rate == 1 ? numbers.learning_rate : numbers.learning_rate * rate;
}

double Optimizer::WeightDecayOf(const Group& group) const {
  if (!group.front().decays) return 0;
  return IsMuonsAdamW(group) ? config_.muon.adamw_weight_decay : config_.weight_decay;
}

void Optimizer::Decay(const UpdateNumbers& numbers, const Group& group,
                      const at::Tensor& values) const {
  const double decay = WeightDecayOf(group);
  if (decay == 0) return;
  const bool scaled = config_.weight_decay_form == WeightDecayForm::kScaled;
  const at::Tensor factor = scaled ? LearningRateOf(numbers, group) : numbers.factor;
  const at::Tensor shrink = (1 - factor * decay).to(values.scalar_type());
  for (const ParameterRange& range : group) {  // θ ← (1 − ηλ)θ
    Apply(numbers.frozen, PartOf(values, range),
          [&](const at::Tensor& part) { part.mul_(shrink); });
  }
}

void Optimizer::Move(const UpdateNumbers& numbers, const Group& group, const at::Tensor& direction,
                     const at::Tensor& values) const {
  const at::Tensor rate = LearningRateOf(numbers, group).to(values.scalar_type());
  for (const ParameterRange& range : group) {  // θ ← θ − ηu
    const at::Tensor change = PartOf(direction, range).mul_(rate);
    Apply(numbers.frozen, PartOf(values, range),
          [&](const at::Tensor& part) { part.sub_(change); });
  }
}

void Optimizer::StepAdam(const UpdateNumbers& numbers, const Group& group, const at::Tensor& values,
                         const at::Tensor& gradients) {
  const bool coupled = config_.kind == OptimizerKind::kAdam;
  double decay = WeightDecayOf(group);
  if (!coupled && config_.weight_decay_form == WeightDecayForm::kIndependent) {
    Decay(numbers, group, values);
    decay = 0;
  }
  const auto parts = [&group](const at::Tensor& whole) {
    std::vector<at::Tensor> list;
    for (const ParameterRange& range : group) list.push_back(PartOf(whole, range));
    return list;
  };
  const std::vector<at::Tensor> updates(group.size(), numbers.update);
  std::optional<at::Tensor> frozen;
  if (numbers.frozen.defined()) frozen = numbers.frozen.to(at::kFloat);
  const auto fused = coupled ? static_cast<FusedAdam*>(at::_fused_adam_)
                             : static_cast<FusedAdam*>(at::_fused_adamw_);
  fused(parts(values), parts(gradients), parts(slots_[0].values), parts(slots_[1].values), {},
        updates, LearningRateOf(numbers, group), config_.beta1, config_.beta2, decay, config_.eps,
        /*amsgrad=*/false, /*maximize=*/false,
        /*grad_scale=*/{}, frozen);
}

void Optimizer::StepSgd(const UpdateNumbers& numbers, const at::Tensor& values,
                        const at::Tensor& gradients) {
  // As tensors, because with a scalar LibTorch would round multiplication and addition only once.
  const at::Tensor factor = numbers.learning_rate.to(values.scalar_type());
  const at::Tensor decay = NumberLike(values, config_.weight_decay);
  const at::Tensor& velocity = slots_[0].values;
  for (const Group& group : groups_) {
    if (WeightDecayOf(group) == 0) continue;
    for (const ParameterRange& range : group) {  // g ← g + λθ
      PartOf(gradients, range).addcmul_(PartOf(values, range), decay);
    }
  }
  Apply(numbers.frozen, velocity, [&](const at::Tensor& b) {
    b.mul_(config_.momentum).add_(gradients);  // b ← μb + g
  });
  at::mul_out(scratch_, velocity, factor);
  for (const Group& group : groups_) {
    if (group.front().rate == 1) continue;
    for (const ParameterRange& range : group) PartOf(scratch_, range).mul_(group.front().rate);
  }
  Apply(numbers.frozen, values, [&](const at::Tensor& v) { v.sub_(scratch_); });  // θ ← θ − ηb
}

void Optimizer::StepLion(const UpdateNumbers& numbers, const at::Tensor& values,
                         const at::Tensor& gradients) {
  const at::Tensor& momentum = slots_[0].values;
  at::lerp_out(scratch_, momentum, gradients, 1 - config_.beta1).sign_();
  for (const Group& group : groups_) {
    Decay(numbers, group, values);
    Move(numbers, group, scratch_, values);
  }
  Apply(numbers.frozen, momentum,
        [&](const at::Tensor& m) { m.lerp_(gradients, 1 - config_.beta2); });
}

void Optimizer::StepMuon(const UpdateNumbers& numbers, const at::Tensor& values,
                         const at::Tensor& gradients) {
  for (const Group& group : groups_) {
    if (!IsMuonsAdamW(group)) AverageGradients(group, gradients);
  }
  Orthogonalise(gradients);
  for (const Group& group : groups_) {
    if (IsMuonsAdamW(group)) {
      StepAdam(numbers, group, values, gradients);
      continue;
    }
    Decay(numbers, group, values);
    Move(numbers, group, gradients, values);
    for (const ParameterRange& range : group) {
      Apply(numbers.frozen, PartOf(slots_[0].values, range),
            [&](const at::Tensor& momentum) { momentum.copy_(PartOf(scratch_, range)); });
    }
  }
}

void Optimizer::AverageGradients(const Group& group, const at::Tensor& gradients) {
  for (const ParameterRange& range : group) {  // b ← μb + (1 − μ)g
    at::Tensor next = PartOf(scratch_, range);
    const at::Tensor gradient = PartOf(gradients, range);
    at::lerp_out(next, PartOf(slots_[0].values, range), gradient, 1 - config_.momentum);
    if (config_.muon.nesterov) {
      gradient.lerp_(next, config_.momentum);
    } else {
      gradient.copy_(next);
    }
  }
}

void Optimizer::Orthogonalise(const at::Tensor& gradients) const {
  const auto type =
      config_.muon.precision == MuonPrecision::kBfloat16 ? at::kBFloat16 : gradients.scalar_type();
  for (const std::vector<MatrixView>& alike : matrices_) {
    std::vector<at::Tensor> parts;
    for (const MatrixView& matrix : alike) {
      parts.push_back(gradients.narrow(0, matrix.offset, matrix.rows * matrix.columns)
                          .view({matrix.rows, matrix.columns}));
    }
    const at::Tensor made = Orthogonal(at::stack(parts).to(type), config_.muon.iterations);
    const double adjustment = AdjustmentOf(config_.muon.adjust, alike.front());
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].copy_(made[static_cast<int64_t>(i)]).mul_(adjustment);
    }
  }
}

void ClipGradient(const at::Tensor& gradient, double norm, double clip) {
  gradient.mul_(std::min(1.0, clip * (1 / (norm + 1e-6))));
}

}  // namespace ablate::engine
