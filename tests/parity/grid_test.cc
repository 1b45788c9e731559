// Logits, loss, every gradient and ten optimizer steps beside PyTorch over the grid of settings.
#include "tests/parity/grid.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "server/engine/model/init.h"
#include "server/engine/model/transformer.h"
#include "server/engine/train/checkpoint.h"
#include "server/engine/train/optimizer.h"
#include "server/engine/train/run_loop.h"
#include "server/engine/train/torch_backend.h"
#include "server/engine/trainer.h"
#include "tests/parity/exchange.h"

namespace ablate::engine {
namespace {

// Of a run's parameters and of its dropout.
uint32_t SeedOf(int run) { return static_cast<uint32_t>(run) + 1; }

// Random parameters [P] in which no gain is 1 and no shift 0.
at::Tensor StartOf(const GridCase& grid, const ParameterLayout& layout, int run) {
  ModelConfig model = grid.model;
  model.init = {InitKind::kXavier, InitStreams::kByName};
  const uint32_t seed = SeedOf(run);
  const at::Tensor flat = InitialParameters(model, layout, seed);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return 0.5 * flat + at::empty_like(flat).normal_(0, 0.1, generator);
}

// Parameters or buffers by their names.
template <typename Info>
TensorMap Named(const std::vector<Info>& infos, const at::Tensor& flat, const std::string& prefix) {
  TensorMap named;
  for (const Info& info : infos) {
    named[prefix + info.name] = flat.narrow(0, info.offset, info.size).view(info.shape).clone();
  }
  return named;
}

// Running statistics that no batch has, and feedback ten times as large as it is drawn: all of it
// is to be seen in the gradients.
at::Tensor BuffersOf(const ParameterLayout& layout, int run) {
  return 10 * InitialBuffers(layout, SeedOf(run));
}

void WriteGridCase(const std::string& folder, const GridCase& grid) {
  const ParameterLayout layout = MakeLayout(grid.model, grid.training.rule);
  const at::TensorOptions options = TensorOptionsOf(Device::kCpu, grid.precision);
  TensorMap tensors =
      Named(layout.parameters, StartOf(grid, layout, grid.compared).to(options), "initial.");
  if (layout.buffer_size > 0) {
    tensors.merge(Named(layout.buffers, BuffersOf(layout, grid.compared).to(options), "buffer."));
  }
  for (uint32_t step = 0; step < grid.training.steps; ++step) {
    const TokenBatch& batch = grid.batches[grid.compared][step];
    const std::string prefix = std::to_string(step) + ".";
    const bool last = grid.model.loss == LossPositions::kLast;
    tensors[prefix + "inputs"] = at::tensor(batch.inputs, at::kLong).view({batch.rows, -1});
    tensors[prefix + "targets"] =
        at::tensor(batch.targets, at::kLong).view({batch.rows, last ? 1 : batch.length});
    tensors[prefix + "lengths"] = at::tensor(batch.lengths, at::kLong);
  }
  WriteCase(folder, grid.name,
            {{"model", nlohmann::json::parse(ModelJson(grid.model))},
             {"training", TrainingJson(grid.training)},
             {"seed", SeedOf(grid.compared)},
             {"precision", grid.precision == Precision::kFloat64 ? "float64" : "float32"}},
            tensors);
}

// The same quantities as reference.py's, of the compared run inside its stack.
TensorMap Train(const GridCase& grid) {
  const at::TensorOptions options = TensorOptionsOf(Device::kCpu, grid.precision);
  FlatParameters parameters(grid.model, grid.training.rule, grid.runs, options);
  for (int run = 0; run < grid.runs; ++run) {
    parameters.values()[run].copy_(StartOf(grid, parameters.layout(), run));
    if (parameters.buffers().defined()) {
      parameters.buffers()[run].copy_(BuffersOf(parameters.layout(), run));
    }
  }
  Optimizer optimizer(grid.training.optimizer.kind, parameters.values());
  TensorMap out;
  std::vector<double> losses;
  for (uint32_t step = 0; step < grid.training.steps; ++step) {
    std::vector<const TokenBatch*> batches;
    for (const auto& run : grid.batches) batches.push_back(&run[step]);
    const StackBatch batch = MakeStackBatch(batches, grid.model.loss, options);
    if (step == 0) {
      out["logits"] = Logits(grid.model, parameters.model(), batch, Pass())[grid.compared].detach();
    }
    Dropout dropout = {grid.model.dropout, {}};
    for (int run = 0; run < grid.runs; ++run) dropout.runs.push_back({SeedOf(run), step});
    RunConfig config;
    config.model = grid.model;
    config.training = grid.training;
    const BatchGradient gradient =
        Differentiate(grid.model, TrainingPass(config, &dropout), batch, parameters);
    losses.push_back(gradient.losses[grid.compared].item<double>());
    if (step == 0) {
      out.merge(Named(parameters.layout().parameters, parameters.gradients()[grid.compared],
                      "gradient."));
    }
    if (grid.training.clip > 0) {
      ClipGradients(parameters.gradients(), gradient.norms, grid.training.clip);
    }
    const double rate = LearningRate(grid.training.schedule, grid.training.optimizer.learning_rate,
                                     step, grid.training.steps);
    optimizer.Step(std::vector<RunUpdate>(grid.runs, {true, step, rate, grid.training.optimizer}),
                   parameters.values(), parameters.gradients());
  }
  out.merge(Named(parameters.layout().parameters, parameters.values()[grid.compared], "final."));
  for (const BufferInfo& buffer : parameters.layout().buffers) {
    if (buffer.role == BufferRole::kFeedback) continue;
    out["buffer." + buffer.name] =
        parameters.buffers()[grid.compared].narrow(0, buffer.offset, buffer.size).clone();
  }
  out["losses"] = at::tensor(losses, at::kDouble);
  return out;
}

// Our logits of a padded stack cover more positions: the compared run's own, in rows.
at::Tensor OwnLogits(const GridCase& grid, const at::Tensor& logits) {
  if (grid.model.loss == LossPositions::kLast) return logits;
  const TokenBatch& batch = grid.batches[grid.compared].front();
  const at::Tensor rows = logits.view({batch.rows, -1, logits.size(-1)});
  return rows.narrow(1, 0, batch.length);
}

// Positions behind a row's end hold whatever padding gives: they are left out.
at::Tensor RealPositions(const GridCase& grid, const at::Tensor& logits) {
  const TokenBatch& batch = grid.batches[grid.compared].front();
  if (grid.model.loss == LossPositions::kLast) return logits;
  const at::Tensor real =
      at::arange(batch.length).lt(at::tensor(batch.lengths, at::kLong).unsqueeze(1));
  return logits.index({real});
}

// A key bias has no gradient in exact arithmetic; in float32, Adam would amplify its rounding.
at::Tensor WithoutKeyBias(const GridCase& grid, const std::string& name, const at::Tensor& value) {
  if (grid.precision == Precision::kFloat64 || !absl::EndsWith(name, "qkv.bias")) return value;
  const int64_t d = grid.model.width;
  return at::cat({value.narrow(0, 0, d), value.narrow(0, 2 * d, d)});
}

void Compare(const GridCase& grid, const TensorMap& ours, const TensorMap& theirs) {
  const bool exact = grid.precision == Precision::kFloat64;
  const double tolerance = exact ? 1e-9 : 1e-5;
  double largest = 0;  // gradient norm of the whole model
  for (const auto& [name, tensor] : theirs) {
    if (absl::StartsWith(name, "gradient.")) {
      largest = std::max(largest, tensor.norm().item<double>());
    }
  }
  for (const auto& [name, expected] : theirs) {
    const auto found = ours.find(name);
    ASSERT_TRUE(found != ours.end()) << name;
    at::Tensor a = found->second, b = expected;
    if (name == "logits") {
      a = RealPositions(grid, OwnLogits(grid, a));
      b = RealPositions(grid, b);
    }
    ASSERT_EQ(a.sizes(), b.sizes()) << name;
    // A gradient that is 0 in exact arithmetic is rounding: measured against the largest tensor's.
    const double floor = absl::StartsWith(name, "gradient.") ? largest : exact ? 1e-12 : 1e-8;
    EXPECT_LE(RelativeError(WithoutKeyBias(grid, name, a), WithoutKeyBias(grid, name, b), floor),
              tolerance)
        << name << "\n"
        << ModelJson(grid.model) << "\n"
        << TrainingJson(grid.training);
  }
}

TEST(GridParityTest, MatchesPyTorchInEveryQuantity) {
  const std::vector<GridCase> grid = MakeGrid();
  const ScratchFolder folder;
  for (const GridCase& settings : grid) WriteGridCase(folder.path(), settings);
  const std::string missing = RunReference("grid", folder.path());
  if (!missing.empty()) GTEST_SKIP() << missing;
  PrepareLaneThread();
  for (const GridCase& settings : grid) {
    SCOPED_TRACE(settings.name);
    const TensorMap theirs = ReadAnswer(folder.path(), settings.name);
    ASSERT_GT(theirs.size(), 4u);
    Compare(settings, Train(settings), theirs);
  }
}

// The share of cases for which `holds`.
template <typename Predicate>
double Share(const std::vector<GridCase>& grid, const Predicate& holds) {
  return static_cast<double>(std::count_if(grid.begin(), grid.end(), holds)) /
         static_cast<double>(grid.size());
}

TEST(GridParityTest, HasEverySettingOftenEnough) {
  const std::vector<GridCase> grid = MakeGrid();
  const auto share = [&grid](const auto& holds) { return Share(grid, holds); };
  EXPECT_GT(share([](const GridCase& c) { return c.model.norm.kind == NormKind::kRms; }), 0.3);
  EXPECT_GT(share([](const GridCase& c) {
              return c.model.norm.placement == NormPlacement::kPost && c.model.norm.attention;
            }),
            0.15);
  EXPECT_GT(share([](const GridCase& c) { return !c.model.residual; }), 0.1);
  EXPECT_GT(share([](const GridCase& c) { return c.model.tied_head; }), 0.3);
  EXPECT_GT(share([](const GridCase& c) { return c.model.head_bias; }), 0.15);
  EXPECT_GT(share([](const GridCase& c) { return c.runs > 1; }), 0.5);
  EXPECT_GT(share([](const GridCase& c) { return c.training.clip > 0 && c.training.clip < 1; }),
            0.2);
  EXPECT_GT(share([](const GridCase& c) {
              return c.model.loss == LossPositions::kLast && !c.batches[c.compared][0].uniform();
            }),
            0.1);
  EXPECT_GT(share([](const GridCase& c) {
              return !c.model.attention.causal && !c.batches[c.compared][0].uniform();
            }),
            0.1);
  EXPECT_GT(share([](const GridCase& c) { return c.precision == Precision::kFloat64; }), 0.4);
}

}  // namespace
}  // namespace ablate::engine
