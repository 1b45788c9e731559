// Implements AdamW, Adam and SGD with momentum on a run's flat buffers, and the EMA weights.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_OPTIMIZER_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_OPTIMIZER_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {

// The numbers of one update, on the device of the parameters.
struct UpdateNumbers {
  at::Tensor update;         // [], float32: 1 for a run's first update
  at::Tensor learning_rate;  // [], float64 on a CPU, float32 elsewhere
  at::Tensor frozen = {};    // [], bool: if true, the update changes nothing; undefined: false
};

// Returns the numbers of update `step` → `step` + 1 on the CPU.
UpdateNumbers NumbersOf(uint32_t step, double learning_rate);

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

  // Starts again, as a new optimizer of `values` [P] would.
  void Restart(const at::Tensor& values);

  // Applies an update to `values` [P], from `gradients` [P], which it may overwrite. Doesn't wait
  // for the device.
  void Step(const UpdateNumbers& numbers, const at::Tensor& values, const at::Tensor& gradients);

  // The tensors that a resume state holds in addition to the parameters, named by OptimizerSlots().
  const std::vector<OptimizerSlot>& slots() const { return slots_; }

  // The EMA weights, [P]; undefined if they aren't kept.
  const at::Tensor& ema_weights() const { return ema_weights_; }

 private:
  // Updates the parameters in `ranges`.
  void StepAdam(const UpdateNumbers& numbers, const std::vector<ParameterRange>& ranges,
                double weight_decay, const at::Tensor& values, const at::Tensor& gradients);
  void StepSgd(const UpdateNumbers& numbers, const at::Tensor& values, const at::Tensor& gradients);

  const OptimizerConfig config_;
  const double ema_;
  std::vector<ParameterRange> decayed_;  // parameters with weight decay
  std::vector<ParameterRange> exempt_;   // parameters without weight decay
  std::vector<OptimizerSlot> slots_;
  at::Tensor ema_weights_;  // EMA weights: the last slot, or undefined
  at::Tensor scratch_;  // [P], for SGD; allocated in advance so that a step can't run out of memory
                        // halfway
};

// Scales a gradient of norm `norm` to a norm of at most `clip` (> 0), as
// torch.nn.utils.clip_grad_norm_ does.
void ClipGradient(const at::Tensor& gradient, double norm, double clip);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_OPTIMIZER_H_
