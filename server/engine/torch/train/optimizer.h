// Implements AdamW, Adam, SGD with momentum, Muon and Lion on a run's flat buffers, and the EMA
// weights.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_OPTIMIZER_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_OPTIMIZER_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {

// The numbers of one update, on the device of the parameters.
struct UpdateNumbers {
  at::Tensor update;         // [], float32: 1 for a run's first update
  at::Tensor learning_rate;  // [], float64 on a CPU, float32 elsewhere
  at::Tensor factor;         // the schedule's, likewise
  at::Tensor frozen = {};    // [], bool: if true, the update changes nothing; undefined: false
};

// Returns the numbers of an update on the CPU.
UpdateNumbers NumbersOf(const UpdateRequest& update);

// A tensor [P] that an optimizer carries from step to step.
struct OptimizerSlot {
  std::string name;
  at::Tensor values;
};

// Optimizer with PyTorch's formulas; Lion with those of Chen et al., "Symbolic Discovery of
// Optimization Algorithms", 2023.
class Optimizer {
 public:
  // The EMA weights, if kept, start as `values` [P].
  Optimizer(const RunConfig& run, const ParameterLayout& layout, const at::Tensor& values);

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
  // Ranges that are alike.
  using Group = std::vector<ParameterRange>;

  // Returns true if Muon's AdamW updates the group.
  bool IsMuonsAdamW(const Group& group) const;
  // Returns the learning rate of a group, [].
  at::Tensor LearningRateOf(const UpdateNumbers& numbers, const Group& group) const;
  double WeightDecayOf(const Group& group) const;
  // Shrinks the values of a group by its decoupled weight decay.
  void Decay(const UpdateNumbers& numbers, const Group& group, const at::Tensor& values) const;
  // Moves the values of a group by −η·direction. Overwrites `direction` [P].
  void Move(const UpdateNumbers& numbers, const Group& group, const at::Tensor& direction,
            const at::Tensor& values) const;
  void StepAdam(const UpdateNumbers& numbers, const Group& group, const at::Tensor& values,
                const at::Tensor& gradients);
  void StepSgd(const UpdateNumbers& numbers, const at::Tensor& values, const at::Tensor& gradients);
  void StepLion(const UpdateNumbers& numbers, const at::Tensor& values,
                const at::Tensor& gradients);
  void StepMuon(const UpdateNumbers& numbers, const at::Tensor& values,
                const at::Tensor& gradients);
  // Writes the next momentum of a group into the scratch, and replaces its gradients by what Muon
  // orthogonalises.
  void AverageGradients(const Group& group, const at::Tensor& gradients);
  // Replaces the gradients of all matrices of the blocks by the direction of their update. Changes
  // no state, because it may run out of memory.
  void Orthogonalise(const at::Tensor& gradients) const;

  const OptimizerConfig config_;
  const double ema_;
  std::vector<Group> groups_;
  std::vector<std::vector<MatrixView>> matrices_;  // of Muon, by shape
  std::vector<OptimizerSlot> slots_;
  at::Tensor ema_weights_;  // EMA weights: the last slot, or undefined
  at::Tensor scratch_;      // [P], except for Adam; allocated in advance so that a step can't run
                            // out of memory halfway
};

// Scales a gradient of norm `norm` to a norm of at most `clip` (> 0), as
// torch.nn.utils.clip_grad_norm_ does.
void ClipGradient(const at::Tensor& gradient, double norm, double clip);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_OPTIMIZER_H_
