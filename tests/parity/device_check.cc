#include "tests/parity/device_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/torch/device/device_backend.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/train/torch_backend.h"
#include "tests/parity/grid_run.h"

namespace ablate::engine {
namespace {

// A device's optimizer rounds the learning rate to float32.
constexpr double kTolerance = 1e-7;

// Returns everything that a backend computes for a case, by name.
absl::StatusOr<TensorMap> Train(const GridCase& grid, Backend& backend,
                                const std::vector<size_t>& blocks) {
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, Precision::kFloat64);
  const ParameterLayout layout = MakeLayout(grid.model, grid.training.rule);
  RunState state = {RandomParameters(grid.model, layout, grid.seed).to(options), {}, {}};
  if (layout.buffer_size > 0) state.buffers = RandomBuffers(layout, grid.seed).to(options);
  SetState(&backend, grid.training, state);
  TensorMap out;
  std::vector<double> losses, norms;
  uint32_t step = 0;
  for (const size_t block : blocks) {
    std::vector<UpdateRequest> updates;
    for (size_t i = 0; i < block; ++i, ++step) {
      updates.push_back(RequestOf(grid, step));
    }
    std::vector<UpdateResult> results;
    absl::Status made = backend.StepBlock(updates, &results);
    if (!made.ok()) return made;
    for (const UpdateResult& result : results) {
      losses.push_back(result.loss);
      norms.push_back(result.gradient_norm);
    }
  }
  out["losses"] = at::tensor(losses, at::kDouble);
  out["norms"] = at::tensor(norms, at::kDouble);
  EvaluationSums sums;
  absl::Status evaluated = backend.Evaluate(Evaluated::kCurrent, grid.batches, &sums);
  if (evaluated.ok() && grid.training.ema > 0) {
    evaluated = backend.Evaluate(Evaluated::kEmaWeights, grid.batches, &sums);
  }
  if (!evaluated.ok()) return evaluated;
  out["evaluation"] = at::tensor({sums.loss, sums.tokens}, at::kDouble);
  const absl::StatusOr<RunTensors> ended = backend.Tensors();
  if (!ended.ok()) return ended.status();
  const auto flat = [&](absl::string_view bytes) { return FlatTensor(ended->type, {bytes}); };
  out.merge(ByName(layout.parameters, flat(ended->parameters), "value."));
  if (layout.buffer_size > 0) out.merge(ByName(layout.buffers, flat(ended->buffers), "buffer."));
  for (const NamedBytes& slot : ended->slots) {
    out.merge(ByName(layout.parameters, flat(slot.bytes), slot.name + "."));
  }
  return out;
}

std::string Difference(const TensorMap& expected, const TensorMap& found) {
  double largest = 0;
  for (const auto& [name, tensor] : expected) {
    largest = std::max(largest, tensor.norm().item<double>());
  }
  std::string text;
  for (const auto& [name, tensor] : expected) {
    const at::Tensor& other = found.at(name);
    if (other.sizes() != tensor.sizes()) {
      absl::StrAppend(&text, name, ": ", other.numel(), " elements, not ", tensor.numel(), "; ");
      continue;
    }
    const double apart = (other - tensor).norm().item<double>();
    // A tensor that is 0 in exact arithmetic holds rounding errors of the others.
    const double scale = std::max(tensor.norm().item<double>(), 1e-6 * largest);
    if (apart <= kTolerance * scale) continue;
    absl::StrAppend(&text, name, ": apart by ", apart / scale, "; ");
  }
  return text;
}

}  // namespace

std::string DeviceDifference(GridCase grid, Device device, StreamSource& streams) {
  grid.precision = Precision::kFloat64;
  RunConfig run = ComparedRun(grid);
  const auto reference = MakeTorchBackend(run);
  if (!reference.ok()) return reference.status().ToString();
  run.device = device;
  EndedRuns ended;
  const auto tested = MakeDeviceBackend(run, "tested", streams, ended);
  if (!tested.ok()) return tested.status().ToString();
  const auto expected = Train(grid, **reference, {10});
  if (!expected.ok()) return absl::StrCat("reference: ", expected.status().ToString());
  const auto found = Train(grid, **tested, {1, 4, 2, 3});
  if (!found.ok()) return found.status().ToString();
  return Difference(*expected, *found);
}

}  // namespace ablate::engine
