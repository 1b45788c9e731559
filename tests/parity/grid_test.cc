// Logits, loss, every gradient and ten optimizer steps beside PyTorch over the grid of settings.
#include "tests/parity/grid.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "server/engine/model/init.h"
#include "server/engine/model/transformer.h"
#include "server/engine/names.h"
#include "server/engine/train/checkpoint.h"
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
  // In wide models less, or blocks without norms would make more of everything until softmax is
  // saturated and what is left of its gradient is rounding.
  const double deviation = 0.1 * std::min(1.0, std::sqrt(24.0 / grid.model.width));
  return 0.5 * flat + at::empty_like(flat).normal_(0, deviation, generator);
}

// Feedback three times as large as it is drawn, and running variances that are not 1: all of it is
// to be seen in gradients and scores. Undefined if the layout has no buffers.
at::Tensor BuffersOf(const ParameterLayout& layout, int run) {
  const at::Tensor initial = InitialBuffers(layout, SeedOf(run));
  return initial.defined() ? 3 * initial : initial;
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

absl::string_view BytesOf(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

RunConfig ConfigOf(const GridCase& grid, int run) {
  RunConfig config;
  config.model = grid.model;
  config.training = grid.training;
  config.precision = grid.precision;
  config.seed = SeedOf(run);
  return config;
}

// The product's own way to train, from the case's parameters.
std::unique_ptr<Backend> MakeGridBackend(const GridCase& grid, const FlatParameters& start) {
  std::vector<RunConfig> configs;
  for (int run = 0; run < grid.runs; ++run) configs.push_back(ConfigOf(grid, run));
  auto backend = MakeTorchBackend(configs);
  EXPECT_TRUE(backend.ok()) << backend.status();
  for (int run = 0; run < grid.runs; ++run) {
    const at::Tensor values = start.values()[run];
    const std::string zeros(values.nbytes(), '\0');
    RunTensors tensors = {(*backend)->Tensors(run)->type, BytesOf(values), "", {}};
    const at::Tensor buffers = start.buffers().defined() ? start.buffers()[run] : at::Tensor();
    if (buffers.defined()) tensors.buffers = BytesOf(buffers);
    for (const std::string& name : OptimizerSlots(grid.training)) {
      tensors.slots.push_back(
          {name, name == kAverageSlot ? BytesOf(values) : absl::string_view(zeros)});
    }
    EXPECT_TRUE((*backend)->SetTensors(run, tensors).ok());
  }
  return *std::move(backend);
}

std::vector<UpdateRequest> RequestsOf(const GridCase& grid, uint32_t step) {
  const TrainingConfig& training = grid.training;
  const double rate =
      LearningRate(training.schedule, training.optimizer.learning_rate, step, training.steps);
  std::vector<UpdateRequest> requests;
  for (const auto& batches : grid.batches) requests.push_back({&batches[step], step, rate});
  return requests;
}

// The first update's gradient, and scores of its whole batch.
TensorMap Differentiated(const GridCase& grid, const FlatParameters& start) {
  std::vector<const TokenBatch*> batches;
  for (const auto& run : grid.batches) batches.push_back(&run.front());
  const at::TensorOptions options = start.values().options();
  Dropout dropout = {grid.model.dropout, {}, 0};
  for (int run = 0; run < grid.runs; ++run) dropout.runs.push_back({SeedOf(run), 0});
  Pass pass = TrainingPass(ConfigOf(grid, 0), &dropout);
  // The statistics are yet to be those that the runs begin with.
  if (pass.statistics == Statistics::kBatchAndTrack) pass.statistics = Statistics::kBatch;
  Differentiate(grid.model, pass,
                MakeParts(batches, grid.training.accumulation, grid.model.loss, options), start,
                grid.training.label_smoothing);
  TensorMap out = Named(start.layout().parameters, start.gradients()[grid.compared], "gradient.");
  const StackBatch whole = MakeStackBatch(batches, grid.model.loss, options);
  out["logits"] = Logits(grid.model, start.model(), whole, Pass())[grid.compared].detach();
  return out;
}

// The loss on the first batch, of each kind of parameters that the run has.
at::Tensor Evaluations(const GridCase& grid, Backend& backend) {
  std::vector<Evaluated> kinds = {Evaluated::kCurrent};
  if (grid.training.ema > 0) kinds.push_back(Evaluated::kAverage);
  std::vector<double> losses;
  for (const Evaluated kind : kinds) {
    EvaluationSums sums;
    const TokenBatch& batch = grid.batches[grid.compared].front();
    EXPECT_TRUE(backend.Evaluate(grid.compared, kind, batch, &sums).ok());
    losses.push_back(sums.loss / sums.tokens);
  }
  return at::tensor(losses, at::kDouble);
}

// The same quantities as reference.py's, of the compared run inside its stack.
TensorMap Train(const GridCase& grid) {
  const at::TensorOptions options = TensorOptionsOf(Device::kCpu, grid.precision);
  FlatParameters start(grid.model, grid.training.rule, grid.runs, options);
  const ParameterLayout& layout = start.layout();
  for (int run = 0; run < grid.runs; ++run) {
    start.values()[run].copy_(StartOf(grid, layout, run));
    if (layout.buffer_size > 0) start.buffers()[run].copy_(BuffersOf(layout, run));
  }
  TensorMap out = Differentiated(grid, start);
  const std::unique_ptr<Backend> backend = MakeGridBackend(grid, start);
  std::vector<double> losses, norms;
  for (uint32_t step = 0; step < grid.training.steps; ++step) {
    const absl::StatusOr<std::vector<UpdateResult>> results = backend->Step(RequestsOf(grid, step));
    EXPECT_TRUE(results.ok()) << results.status();
    losses.push_back((*results)[grid.compared].loss);
    norms.push_back((*results)[grid.compared].gradient_norm);
  }
  out["losses"] = at::tensor(losses, at::kDouble);
  out["norms"] = at::tensor(norms, at::kDouble);
  out["evaluations"] = Evaluations(grid, *backend);
  const absl::StatusOr<RunTensors> ended = backend->Tensors(grid.compared);
  const auto flat = [&](absl::string_view bytes) { return FlatTensor(ended->type, {bytes}); };
  out.merge(Named(layout.parameters, flat(ended->parameters), "final."));
  if (layout.buffer_size > 0) {
    out.merge(Named(layout.buffers, flat(ended->buffers), "buffer."));
  }
  if (grid.training.ema > 0) {
    out.merge(Named(layout.parameters, flat(ended->slots.back().bytes), "average."));
  }
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

double LargestGradient(const TensorMap& answers) {
  double largest = 0;
  for (const auto& [name, tensor] : answers) {
    if (!absl::StartsWith(name, "exact.gradient.")) continue;
    largest = std::max(largest, tensor.norm().item<double>());
  }
  return largest;
}

double Distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
}

// What is compared under one name: ours, PyTorch's in the case's precision and in float64.
struct Compared {
  std::string name;
  at::Tensor ours;
  at::Tensor theirs;
  at::Tensor exact;
  double scale = 0;  // what errors are relative to

  // "logits" and "gradient" are of the first step, "trained" is what ten steps have led to.
  std::string kind() const {
    const std::string first = name.substr(0, name.find('.'));
    return first == "logits" || first == "gradient" ? first : "trained";
  }
};

std::vector<Compared> Pairs(const GridCase& grid, const TensorMap& ours, const TensorMap& theirs) {
  const double largest = LargestGradient(theirs);
  std::vector<Compared> pairs;
  for (const auto& [name, value] : theirs) {
    if (absl::StartsWith(name, "exact.")) continue;
    const auto found = ours.find(name);
    EXPECT_TRUE(found != ours.end()) << name;
    if (found == ours.end()) continue;
    const auto shown = [&, &key = name](const at::Tensor& tensor) {
      return WithoutKeyBias(grid, key, key == "logits" ? RealPositions(grid, tensor) : tensor);
    };
    const at::Tensor own = name == "logits" ? OwnLogits(grid, found->second) : found->second;
    Compared pair = {name, shown(own), shown(value), shown(theirs.at("exact." + name))};
    // A gradient that is 0 in exact arithmetic is rounding: measured against the largest tensor's.
    pair.scale = pair.exact.to(at::kDouble).norm().item<double>();
    if (pair.kind() == "gradient" && pair.scale < 1e-10 * largest) pair.scale = largest;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

// Float32 tensors, and those of them that PyTorch's own error does not cover twice.
struct Tally {
  int compared = 0;
  int beyond = 0;
};

// PyTorch's largest relative error against float64 of each kind.
std::map<std::string, double> WorstErrors(const std::vector<Compared>& pairs) {
  std::map<std::string, double> worst;
  for (const Compared& pair : pairs) {
    double& error = worst[pair.kind()];
    if (pair.scale > 0) error = std::max(error, Distance(pair.theirs, pair.exact) / pair.scale);
  }
  return worst;
}

// Each tensor by its own norm: float64 to 1e-9; float32 within four times, and nearly always twice,
// the largest relative error that PyTorch's own float32 has against float64 in a tensor of its
// kind, and a few roundings of the norm (2⁻²⁴ each) where PyTorch happens to have next to none.
// What ten steps have made of rounding is more where a BatchNorm divides by the deviation of a few
// positions.
void Compare(const GridCase& grid, const TensorMap& ours, const TensorMap& theirs, Tally* tally) {
  constexpr double kRounding = 0x1p-24;
  const bool is_exact = grid.precision == Precision::kFloat64;
  const std::vector<Compared> pairs = Pairs(grid, ours, theirs);
  std::map<std::string, double> worst = WorstErrors(pairs);
  for (const Compared& pair : pairs) {
    ASSERT_EQ(pair.ours.sizes(), pair.exact.sizes()) << pair.name;
    const bool amplified = pair.kind() == "trained" && grid.model.norm.kind == NormKind::kBatch;
    const double error = Distance(pair.ours, pair.exact) - 1e-14;
    const double unit = worst[pair.kind()] + 4 * kRounding;
    const double relative = is_exact ? (amplified ? 1e-6 : 1e-9) : (amplified ? 20 : 4) * unit;
    EXPECT_LE(error, relative * pair.scale) << pair.name << " of norm " << pair.scale << "\n"
                                            << ModelJson(grid.model) << "\n"
                                            << TrainingJson(grid.training);
    if (is_exact) continue;
    ++tally->compared;
    if (error > 2 * unit * pair.scale) ++tally->beyond;
  }
}

TEST(GridParityTest, MatchesPyTorchInEveryQuantity) {
  const std::vector<GridCase> grid = MakeGrid();
  const ScratchFolder folder;
  for (const GridCase& settings : grid) WriteGridCase(folder.path(), settings);
  const std::string missing = RunReference("grid", folder.path());
  if (!missing.empty()) GTEST_SKIP() << missing;
  PrepareLaneThread();
  Tally tally;
  for (const GridCase& settings : grid) {
    SCOPED_TRACE(settings.name);
    const TensorMap theirs = ReadAnswer(folder.path(), settings.name);
    ASSERT_GT(theirs.size(), 4u);
    Compare(settings, Train(settings), theirs, &tally);
  }
  EXPECT_GT(tally.compared, 5000);
  EXPECT_LT(tally.beyond, tally.compared / 200);
  RecordProperty("float32_tensors", tally.compared);
  RecordProperty("beyond_twice_pytorchs_error", tally.beyond);
}

// The share of cases for which `holds`.
template <typename Predicate>
double Share(const std::vector<GridCase>& grid, const Predicate& holds) {
  return static_cast<double>(std::count_if(grid.begin(), grid.end(), holds)) /
         static_cast<double>(grid.size());
}

// Rates of every step beside PyTorch's.
TEST(OneCycleTest, MatchesPyTorchAtEveryStep) {
  struct Cycle {
    uint32_t warmup;
    uint32_t steps;
  };
  const std::vector<Cycle> cycles = {{2, 2}, {2, 3}, {3, 10}, {10, 10}, {300, 1000}, {999, 1000}};
  const ScratchFolder folder;
  for (const auto& [warmup, steps] : cycles) {
    WriteCase(folder.path(), std::to_string(warmup) + "of" + std::to_string(steps),
              {{"rate", 0.01}, {"warmup", warmup}, {"steps", steps}}, {});
  }
  const std::string missing = RunReference("cycles", folder.path());
  if (!missing.empty()) GTEST_SKIP() << missing;
  for (const auto& [warmup, steps] : cycles) {
    const TensorMap answer =
        ReadAnswer(folder.path(), std::to_string(warmup) + "of" + std::to_string(steps));
    const at::Tensor& rates = answer.at("rates");
    ASSERT_EQ(rates.numel(), steps);
    for (uint32_t step = 0; step < steps; ++step) {
      const double expected = rates[step].item<double>();
      EXPECT_NEAR(LearningRate({ScheduleKind::kOneCycle, warmup}, 0.01, step, steps) / expected, 1,
                  1e-9)
          << "step " << step << " of " << steps << ", warmup " << warmup;
    }
  }
}

TEST(GridParityTest, HasEverySettingOftenEnough) {
  const std::vector<GridCase> grid = MakeGrid();
  const auto share = [&grid](const auto& holds) { return Share(grid, holds); };
  for (const auto& kind : kNames<NormKind>) {
    EXPECT_GT(share([&](const GridCase& c) { return c.model.norm.kind == kind.value; }), 0.12);
  }
  for (const auto& mode : kNames<NormBackward>) {
    EXPECT_GT(share([&](const GridCase& c) { return c.model.norm.backward == mode.value; }), 0.08);
  }
  for (const auto& kind : kNames<AttentionKind>) {
    EXPECT_GT(share([&](const GridCase& c) { return c.model.attention.kind == kind.value; }), 0.1);
  }
  for (const auto& kind : kNames<Positions>) {
    EXPECT_GT(share([&](const GridCase& c) { return c.model.positions == kind.value; }), 0.15);
  }
  for (const auto& kind : kNames<Activation>) {
    EXPECT_GT(share([&](const GridCase& c) { return c.model.activation == kind.value; }), 0.12);
  }
  for (const auto& rule : kNames<LearningRule>) {
    EXPECT_GT(share([&](const GridCase& c) { return c.training.rule == rule.value; }), 0.15);
  }
  EXPECT_GT(share([](const GridCase& c) { return c.model.dropout > 0; }), 0.2);
  EXPECT_GT(share([](const GridCase& c) {
              return c.model.norm.deviation == NormDeviation::kUnbiasedEpsOutside;
            }),
            0.05);
  EXPECT_GT(share([](const GridCase& c) {
              return c.model.width >= 64 && c.model.layers > 3 &&
                     c.batches[c.compared][0].length >= 16;
            }),
            0.04);
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
  EXPECT_GT(share([](const GridCase& c) {
              return c.training.accumulation > 1 && !c.batches[c.compared][0].uniform();
            }),
            0.15);
  EXPECT_GT(share([](const GridCase& c) {
              return c.training.optimizer.weight_decay > 0 &&
                     c.training.optimizer.weight_decay_on == WeightDecayOn::kMatrices;
            }),
            0.2);
  EXPECT_GT(share([](const GridCase& c) { return c.training.label_smoothing > 0; }), 0.3);
  EXPECT_GT(share([](const GridCase& c) { return c.training.ema > 0; }), 0.4);
}

}  // namespace
}  // namespace ablate::engine
