// AdamW, Adam and SGD with momentum over a run's flat buffers; and the average of the parameters
// that they step through.
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

// PyTorch's formulas.
class Optimizer {
 public:
  // The average, if there is one, begins with `values` [P].
  Optimizer(const TrainingConfig& training, const ParameterLayout& layout,
            const at::Tensor& values);

  // Update `step` → `step` + 1 of `values` [P] by `gradients` [P], which it may overwrite.
  void Step(uint32_t step, double learning_rate, const at::Tensor& values,
            const at::Tensor& gradients);

  // What a resume state must hold beside the parameters, as OptimizerSlots() names it.
  const std::vector<OptimizerSlot>& slots() const { return slots_; }

  // The exponential moving average of the parameters, [P]; undefined if there is none.
  const at::Tensor& average() const { return average_; }

 private:
  // Of the parameters in `ranges`.
  void StepAdam(uint32_t step, double learning_rate, const std::vector<ParameterRange>& ranges,
                double weight_decay, const at::Tensor& values, const at::Tensor& gradients);
  void StepSgd(double learning_rate, const at::Tensor& values, const at::Tensor& gradients);

  const OptimizerConfig config_;
  const double ema_;
  std::vector<ParameterRange> decayed_;  // what weight decay acts on
  std::vector<ParameterRange> exempt_;   // and what it does not
  std::vector<OptimizerSlot> slots_;
  at::Tensor average_;  // the last slot, or undefined
  at::Tensor scratch_;  // [P]: SGD's, so that running out of memory can't interrupt a step half-way
};

// Scales a gradient of this norm to a norm of at most `clip` (> 0) as
// torch.nn.utils.clip_grad_norm_ does.
void ClipGradient(const at::Tensor& gradient, double norm, double clip);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_
