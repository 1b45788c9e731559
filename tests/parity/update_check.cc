#include "tests/parity/update_check.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/config_json.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/supports.h"
#include "server/engine/names.h"
#include "server/engine/native/native_backend.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/torch/train/torch_backend.h"
#include "tests/parity/exchange.h"
#include "tests/parity/grid_run.h"

namespace ablate::engine {
namespace {

// Returns the update of a case that is checked; together the cases cover all ten of a run.
uint32_t StepOf(const GridCase& grid) {
  return static_cast<uint32_t>(std::stoul(grid.name.substr(4)) / 2) % grid.training.steps;
}

// Returns PyTorch's state before the update.
RunState StateOf(const GridCase& grid, const ParameterLayout& layout, const TensorMap& answer) {
  const auto flat = [&](const std::string& prefix) {
    at::Tensor whole = at::zeros({layout.size});
    for (const ParameterInfo& info : layout.parameters) {
      const auto found = answer.find(absl::StrCat("before.", prefix, info.name));
      if (found == answer.end()) return whole;  // the case's optimizer doesn't have it
      whole.narrow(0, info.offset, info.size).copy_(found->second.flatten());
    }
    return whole;
  };
  RunState state = {flat("value."), {}, {}};
  for (const std::string& slot : OptimizerSlots(grid.training)) {
    state.slots[slot] = flat(slot + ".");
  }
  const at::Tensor initial = RandomBuffers(layout, ComparedRun(grid).seed);
  if (initial.defined()) state.buffers = initial.to(at::kFloat);
  for (const BufferInfo& info : layout.buffers) {
    const auto found = answer.find("before.buffer." + info.name);
    if (found == answer.end()) continue;  // feedback is unchanged
    state.buffers.narrow(0, info.offset, info.size).copy_(found->second.flatten());
  }
  return state;
}

std::unique_ptr<Backend> MakeBackend(const std::string& name, const RunConfig& config,
                                     const RunState& state) {
  std::unique_ptr<Backend> backend;
  if (name == "native") {
    std::vector<float> values(static_cast<size_t>(state.values.numel()));
    std::vector<float> buffers(state.buffers.defined() ? state.buffers.numel() : 0);
    backend = native::MakeNativeBackend(config, {std::move(values), std::move(buffers), nullptr});
  } else {
    auto made = MakeTorchBackend(config);
    EXPECT_TRUE(made.ok()) << made.status();
    backend = *std::move(made);
  }
  SetState(backend.get(), config.training, state);
  return backend;
}

// One update by plain SGD stores the gradient in its momentum slot.
RunConfig ForGradient(RunConfig config) {
  config.training.optimizer.kind = OptimizerKind::kSgd;
  config.training.optimizer.momentum = 0;
  config.training.optimizer.weight_decay = 0;
  config.training.clip = 0;
  config.training.ema = 0;
  return config;
}

at::Tensor FlatOf(const RunTensors& tensors, absl::string_view bytes) {
  return FlatTensor(tensors.type, {bytes});
}

// Returns the logits of the first batch before the update.
at::Tensor LogitsOf(const GridCase& grid, const ParameterLayout& layout, const RunState& state) {
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, Precision::kFloat32);
  const ModelParameters model =
      BindParameters(grid.model, layout, ParameterViews(layout, state.values), state.buffers);
  const TokenBatch& batch = grid.batches.front();
  const at::Tensor logits = Logits(grid.model, model, TensorsOf(batch, options), Pass());
  return grid.model.loss == LossPositions::kLast
             ? logits
             : logits.view({batch.rows, batch.length, logits.size(-1)});
}

// Returns reference.py's quantities after the update by a backend.
TensorMap Updated(const std::string& name, const GridCase& grid, const ParameterLayout& layout,
                  const RunState& state) {
  const RunConfig config = ComparedRun(grid);
  const auto& batches = grid.batches;
  const uint32_t step = StepOf(grid);
  const UpdateRequest request = RequestOf(grid, step);
  TensorMap out;
  const RunConfig plain = ForGradient(config);
  const auto differentiating = MakeBackend(name, plain, state);
  EXPECT_TRUE(differentiating->Step(request).ok());
  const auto differentiated = differentiating->Tensors();
  out = ByName(layout.parameters, FlatOf(*differentiated, differentiated->slots.front().bytes),
               "gradient.");

  const auto backend = MakeBackend(name, config, state);
  const auto result = backend->Step(request);
  EXPECT_TRUE(result.ok() && result->made) << result.status();
  out["loss"] = at::scalar_tensor(result->loss, at::kDouble);
  out["norm"] = at::scalar_tensor(result->gradient_norm, at::kDouble);
  std::vector<double> evaluations;
  for (const Evaluated what : {Evaluated::kCurrent, Evaluated::kEmaWeights}) {
    if (what == Evaluated::kEmaWeights && config.training.ema == 0) continue;
    EvaluationSums sums;
    EXPECT_TRUE(backend->Evaluate(what, {batches.data(), 1}, &sums).ok());
    evaluations.push_back(sums.loss / sums.tokens);
  }
  out["evaluations"] = at::tensor(evaluations, at::kDouble);
  const auto after = backend->Tensors();
  out.merge(ByName(layout.parameters, FlatOf(*after, after->parameters), "value."));
  if (layout.buffer_size > 0) {
    out.merge(ByName(layout.buffers, FlatOf(*after, after->buffers), "buffer."));
  }
  for (const NamedBytes& slot : after->slots) {
    out.merge(ByName(layout.parameters, FlatOf(*after, slot.bytes), slot.name + "."));
  }
  // The native backend doesn't expose its logits.
  if (name == "torch") out["logits"] = LogitsOf(grid, layout, state);
  return out;
}

// Returns the units to add so that two parameters of a tensor may move the other way: Lion moves a
// parameter by the sign of an average, which rounding flips where the average is nearly 0.
double FlipsOf(const OptimizerConfig& optimizer) {
  if (optimizer.kind != OptimizerKind::kLion) return 0;
  return std::sqrt(2) * 2 * optimizer.learning_rate / kMaxUnits;
}

// Adds the errors of a backend's quantities. Returns a line for each that exceeds rounding.
std::string FailuresOf(const GridCase& grid, const TensorMap& ours, const TensorMap& answer,
                       UpdateTally* tally) {
  std::string failures;
  for (const auto& [key, whole] : answer) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, "exact.")) continue;
    const auto found = ours.find(std::string(name));
    if (found == ours.end()) {
      if (name != "logits") absl::StrAppend(&failures, grid.name, ": there is no ", name, "\n");
      continue;
    }
    const auto shown = [&](const at::Tensor& tensor) {
      return (name == "logits" ? RealPositions(grid, tensor) : tensor).to(at::kDouble);
    };
    const at::Tensor exact = shown(whole);
    const double error = (shown(found->second) - exact).norm().item<double>();
    // Every stored tensor is rounded, and values below float32's range may become 0.
    const double unit = answer.at(absl::StrCat("unit.", name)).item<double>() +
                        0x1p-24 * exact.norm().item<double>() +
                        0x1p-126 * std::sqrt(static_cast<double>(exact.numel())) +
                        (absl::StartsWith(name, "value.") ? FlipsOf(grid.training.optimizer) : 0);
    double units = error == 0 ? 0 : error / unit;
    // The second moment of a gradient that is 0 in exact arithmetic is the square of a rounding
    // error.
    const bool squared = absl::StartsWith(name, "optimizer.second_moment.");
    if (squared && exact.norm().item<double>() < unit) units = std::sqrt(units);
    tally->errors.push_back(units);
    if (units <= kMaxUnits) continue;
    absl::StrAppend(&failures, grid.name, " update ", StepOf(grid), ": ", name, " of norm ",
                    exact.norm().item<double>(), " is wrong by ", error, ", ", units, " units; ",
                    ModelJson(grid.model), " ", ConfigJson(grid.training).dump(), "\n");
  }
  ++tally->cases;
  return failures;
}

}  // namespace

double UpdateTally::MeanError() const {
  double squares = 0;
  for (const double error : errors) squares += error * error;
  return std::sqrt(squares / static_cast<double>(errors.size()));
}

double UpdateTally::Beyond(double units) const {
  const auto beyond = [&](double error) { return error > units; };
  return static_cast<double>(std::count_if(errors.begin(), errors.end(), beyond)) /
         static_cast<double>(errors.size());
}

double UpdateTally::Worst() const { return *std::max_element(errors.begin(), errors.end()); }

UpdateCheck CheckUpdates(const std::vector<GridCase>& cases) {
  UpdateCheck check;
  const ScratchFolder folder;
  for (const GridCase& grid : cases) WriteGridCase(folder.path(), grid, StepOf(grid));
  check.missing = RunReference("updates", folder.path());
  if (!check.missing.empty()) return check;
  for (const GridCase& grid : cases) {
    const TensorMap answer = ReadAnswer(folder.path(), grid.name);
    const RunConfig config = ComparedRun(grid);
    const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
    const RunState state = StateOf(grid, layout, answer);
    for (const std::string backend : {"torch", "native"}) {
      if (backend == "native" && !WhyNotNative(config).empty()) continue;
      const std::string failures =
          FailuresOf(grid, Updated(backend, grid, layout, state), answer, &check.tallies[backend]);
      if (!failures.empty()) absl::StrAppend(&check.failures, backend, " ", failures);
    }
  }
  return check;
}

}  // namespace ablate::engine
