// Holds a run's tensors for the backends by LibTorch, and computes losses and gradients of its
// batches with autograd. Supports every switch, on a CPU and on a device.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_TORCH_RUN_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_TORCH_RUN_H_

#include <ATen/ATen.h>

#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/torch/model/batch.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/model/pass.h"
#include "server/engine/torch/train/optimizer.h"

namespace ablate::engine {

// The values that a run starts with, on the CPU.
struct InitialValues {
  at::Tensor parameters;  // [P]
  at::Tensor buffers;     // undefined if there are none
};
InitialValues DrawInitialValues(const RunConfig& config);

// Parameters, buffers and optimizer of one run, and the models bound to them. Its functions throw
// c10::Error.
class TorchRun {
 public:
  TorchRun(const RunConfig& config, const InitialValues& start, at::Device device = at::kCPU);

  // Starts a run of the same model and optimizer in the same memory.
  void Restart(const InitialValues& start);

  // Returns the config of the first run.
  const RunConfig& config() const { return config_; }
  // Device and precision of the tensors.
  at::TensorOptions options() const { return options_; }
  FlatParameters& parameters() { return parameters_; }
  Optimizer& optimizer() { return optimizer_; }

  // Returns the sums over the tokens of an evaluation batch: loss, correct targets, tokens; [3],
  // float64. Doesn't wait for the device.
  at::Tensor Score(Evaluated what, const BatchTensors& batch) const;

  // As the functions of Backend.
  std::vector<RecordedValue> RecordGradients(const TokenBatch& batch) const;
  RunTensors Tensors();
  void SetTensors(const RunTensors& tensors);

 private:
  const RunConfig config_;
  const at::TensorOptions options_;
  FlatParameters parameters_;
  Optimizer optimizer_;
  ModelParameters model_;         // views of the values, without autograd
  ModelParameters ema_model_;     // views of the EMA weights, if kept
  std::vector<at::Tensor> host_;  // memory returned by the last Tensors()
};

// Returns the arguments of an update's forward pass: the run's rule, its norms' backward mode,
// batch statistics, and `dropout`, if it drops anything; `dropout` must outlive the result.
Pass TrainingPass(const RunConfig& config, const Dropout* dropout);

// Returns what a run's updates reduce.
inline Objective ObjectiveOf(const TrainingConfig& training) {
  return {training.label_smoothing, training.z_loss, {}};
}

// Stores the gradient of the loss in parameters.gradients(). Returns the loss, in nats per token, a
// scalar: the mean over the targets of all `micro_batches`, at least one, which are computed in
// order. Doesn't wait for the device.
at::Tensor Differentiate(const ModelConfig& model, const Pass& pass,
                         const std::vector<BatchTensors>& micro_batches,
                         const FlatParameters& parameters, Objective objective = {});

// Returns the batch cut into `micro_batches` micro-batches of consecutive rows, equally many in
// each, padded to their own longest row.
std::vector<BatchTensors> MakeMicroBatches(const TokenBatch& batch, int64_t micro_batches,
                                           at::TensorOptions options);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_TORCH_RUN_H_
