// AdamW, Adam and SGD with momentum over a stack's flat buffers, with numbers of its own for every
// run.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_
#define ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/model/parameters.h"

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
  Optimizer(OptimizerKind kind, const at::Tensor& values);

  // Updates `values` [R, P] by `gradients` [R, P], which it may overwrite. One element a run.
  void Step(const std::vector<RunUpdate>& runs, const at::Tensor& values,
            const at::Tensor& gradients);

  // What a resume state must hold beside the parameters.
  const std::vector<OptimizerSlot>& slots() const { return slots_; }

 private:
  void StepAdam(const std::vector<RunUpdate>& runs, const at::Tensor& values,
                const at::Tensor& gradients);
  // Of one run on the CPU, where a pass over memory costs more than a kernel's start.
  void StepAdamFused(const RunUpdate& run, const at::Tensor& values, const at::Tensor& gradients);
  void StepSgd(const std::vector<RunUpdate>& runs, const at::Tensor& values,
               const at::Tensor& gradients);

  OptimizerKind kind_;
  std::vector<OptimizerSlot> slots_;
  at::Tensor scratch_;  // [R, P]
};

// Scales each run's gradient [R, P] to a norm of at most `clip` (> 0) as
// torch.nn.utils.clip_grad_norm_ does. `norms` [R] are the gradients' norms, in float64.
void ClipGradients(const at::Tensor& gradients, const at::Tensor& norms, double clip);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_OPTIMIZER_H_
