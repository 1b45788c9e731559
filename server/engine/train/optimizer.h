// AdamW, Adam and SGD with momentum over a stack's flat buffers, with numbers of its own for every
// run; and the average of the parameters that they step through.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_
#define ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/layout.h"

namespace ablate::engine {

// One run's part of one update.
struct RunUpdate {
  bool active = true;  // a run that is not is left bit for bit as it was, also by NaN gradients
  uint32_t step = 0;   // updates made before this one
  double learning_rate = 0;  // of this update
  OptimizerConfig optimizer;
};

// A tensor [R, P] that an optimizer carries from step to step.
struct OptimizerSlot {
  std::string name;
  at::Tensor values;
};

// PyTorch's formulas. Whatever a step of active runs needs is allocated at construction, so that
// running out of memory cannot interrupt it half-way.
class Optimizer {
 public:
  // Of a stack whose runs share kind, mask of the weight decay and average. The average, if there
  // is one, begins with `values` [R, P].
  Optimizer(const TrainingConfig& training, const ParameterLayout& layout,
            const at::Tensor& values);

  // Updates `values` [R, P] by `gradients` [R, P], which it may overwrite. One element a run.
  void Step(const std::vector<RunUpdate>& runs, const at::Tensor& values,
            const at::Tensor& gradients);

  // What a resume state must hold beside the parameters, as OptimizerSlots() names it.
  const std::vector<OptimizerSlot>& slots() const { return slots_; }

  // The exponential moving average of the parameters, [R, P]; undefined if there is none.
  const at::Tensor& average() const { return average_; }

 private:
  void StepAdam(const std::vector<RunUpdate>& runs, const at::Tensor& values,
                const at::Tensor& gradients);
  // Of one run on the CPU, where a pass over memory costs more than a kernel's start.
  void StepAdamFused(const RunUpdate& run, const at::Tensor& values, const at::Tensor& gradients);
  // Of the parameters in `ranges`.
  void StepAdamFused(const RunUpdate& run, const std::vector<ParameterRange>& ranges,
                     double weight_decay, const at::Tensor& values, const at::Tensor& gradients);
  void StepSgd(const std::vector<RunUpdate>& runs, const at::Tensor& values,
               const at::Tensor& gradients);
  // g ← g + λθ.
  void AddWeightDecay(const std::vector<RunUpdate>& runs, const at::Tensor& values,
                      const at::Tensor& gradients) const;
  // θ ← (1 − ηλ)θ.
  void ShrinkValues(const std::vector<RunUpdate>& runs, const at::Tensor& values) const;

  OptimizerKind kind_;
  double ema_;
  std::vector<ParameterRange> decayed_;  // what weight decay acts on
  std::vector<ParameterRange> exempt_;   // and what it does not
  std::vector<OptimizerSlot> slots_;
  at::Tensor average_;  // the last slot, or undefined
  at::Tensor scratch_;  // [R, P]
};

// Scales each run's gradient [R, P] to a norm of at most `clip` (> 0) as
// torch.nn.utils.clip_grad_norm_ does. `norms` [R] are the gradients' norms, in float64.
void ClipGradients(const at::Tensor& gradients, const at::Tensor& norms, double clip);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_
