// Implements AdamW, Adam and SGD with momentum on a run's flat buffers, and the EMA weights.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_
#define ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/layout.h"

namespace ablate::engine {

// A tensor [P] that an optimizer carries from step to step.
struct OptimizerSlot {
  std::string name;
  at::Tensor values;
};

// Optimizer with PyTorch's formulas.
class Optimizer {
 public:
  // The EMA weights, if kept, start as `values` [P].
  Optimizer(const TrainingConfig& training, const ParameterLayout& layout,
            const at::Tensor& values);

  // Applies update `step` → `step` + 1 to `values` [P], from `gradients` [P], which it may
  // overwrite.
  void Step(uint32_t step, double learning_rate, const at::Tensor& values,
            const at::Tensor& gradients);

  // The tensors that a resume state holds in addition to the parameters, named by OptimizerSlots().
  const std::vector<OptimizerSlot>& slots() const { return slots_; }

  // The EMA weights, [P]; undefined if they aren't kept.
  const at::Tensor& average() const { return average_; }

 private:
  // Updates the parameters in `ranges`.
  void StepAdam(uint32_t step, double learning_rate, const std::vector<ParameterRange>& ranges,
                double weight_decay, const at::Tensor& values, const at::Tensor& gradients);
  void StepSgd(double learning_rate, const at::Tensor& values, const at::Tensor& gradients);

  const OptimizerConfig config_;
  const double ema_;
  std::vector<ParameterRange> decayed_;  // parameters with weight decay
  std::vector<ParameterRange> exempt_;   // parameters without weight decay
  std::vector<OptimizerSlot> slots_;
  at::Tensor average_;  // EMA weights: the last slot, or undefined
  at::Tensor scratch_;  // [P], for SGD; allocated in advance so that a step can't run out of memory
                        // halfway
};

// Scales a gradient of norm `norm` to a norm of at most `clip` (> 0), as
// torch.nn.utils.clip_grad_norm_ does.
void ClipGradient(const at::Tensor& gradient, double norm, double clip);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_
