#include "tests/parity/grid_run.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "server/engine/core/config_json.h"
#include "server/engine/names.h"
#include "server/engine/torch/model/init.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/train/run_loop.h"
#include "server/engine/trainer.h"

namespace ablate::engine {

RunConfig ComparedRun(const GridCase& grid) {
  RunConfig config = ConfigOf(grid);
  config.precision = grid.precision;
  config.seed = grid.seed;
  return config;
}

at::Tensor RandomParameters(ModelConfig model, const ParameterLayout& layout, uint32_t seed) {
  model.init = {InitKind::kXavier, InitStreams::kByName};
  const at::Tensor flat = InitialParameters(model, layout, seed);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  // Smaller in wide models, because otherwise blocks without norms would amplify activations until
  // softmax saturates and its gradient is a rounding error.
  const double deviation = 0.1 * std::min(1.0, std::sqrt(24.0 / model.width));
  return 0.5 * flat + at::empty_like(flat).normal_(0, deviation, generator);
}

at::Tensor RandomBuffers(const ParameterLayout& layout, uint32_t seed) {
  const at::Tensor initial = InitialBuffers(layout, seed);
  return initial.defined() ? 3 * initial : initial;
}

void SetState(Backend* backend, const TrainingConfig& training, const RunState& state) {
  const at::Tensor zeros = at::zeros_like(state.values);
  const TensorType type = backend->Tensors()->type;
  RunTensors tensors = {type, BytesOf(state.values), "", {}};
  if (state.buffers.defined()) tensors.buffers = BytesOf(state.buffers);
  for (const std::string& slot : OptimizerSlots(training)) {
    const auto found = state.slots.find(slot);
    const at::Tensor& missing = slot == kEmaSlot ? state.values : zeros;
    tensors.slots.push_back({slot, BytesOf(found == state.slots.end() ? missing : found->second)});
  }
  EXPECT_TRUE(backend->SetTensors(tensors).ok());
}

UpdateRequest RequestOf(const GridCase& grid, uint32_t step) {
  const TrainingConfig& training = grid.training;
  const auto rate = [&](double peak) {
    return LearningRate(training.schedule, peak, step, training.steps);
  };
  return {grid.batches[step], step, rate(training.optimizer.learning_rate), rate(1)};
}

void WriteGridCase(const std::string& folder, const GridCase& grid, uint32_t step) {
  const ParameterLayout layout = MakeLayout(grid.model, grid.training.rule);
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, grid.precision);
  const uint32_t seed = grid.seed;
  TensorMap tensors =
      ByName(layout.parameters, RandomParameters(grid.model, layout, seed).to(options), "initial.");
  if (layout.buffer_size > 0) {
    tensors.merge(ByName(layout.buffers, RandomBuffers(layout, seed).to(options), "buffer."));
  }
  for (uint32_t i = 0; i < grid.training.steps; ++i) {
    const TokenBatch& batch = grid.batches[i];
    const std::string prefix = std::to_string(i) + ".";
    const bool last = grid.model.loss == LossPositions::kLast;
    tensors[prefix + "inputs"] = at::tensor(batch.inputs, at::kLong).view({batch.rows, -1});
    tensors[prefix + "targets"] =
        at::tensor(batch.targets, at::kLong).view({batch.rows, last ? 1 : batch.length});
    tensors[prefix + "lengths"] = at::tensor(batch.lengths, at::kLong);
  }
  WriteCase(folder, grid.name,
            {{"model", ConfigJson(grid.model)},
             {"training", ConfigJson(grid.training)},
             {"seed", seed},
             {"step", step}},
            tensors);
}

absl::string_view BytesOf(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

at::Tensor RealPositions(const GridCase& grid, const at::Tensor& logits) {
  const TokenBatch& batch = grid.batches.front();
  if (grid.model.loss == LossPositions::kLast) return logits;
  const at::Tensor real =
      at::arange(batch.length).lt(at::tensor(batch.lengths, at::kLong).unsqueeze(1));
  return logits.index({real});
}

}  // namespace ablate::engine
