// Compares logits, loss, every gradient and ten updates with PyTorch, in float64 over the grid of
// settings.
#include "tests/parity/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/config_json.h"
#include "server/engine/core/layout.h"
#include "server/engine/names.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/torch/train/run_loop.h"
#include "server/engine/torch/train/torch_backend.h"
#include "server/engine/torch/train/torch_run.h"
#include "server/engine/trainer.h"
#include "tests/parity/exchange.h"
#include "tests/parity/grid_run.h"

namespace ablate::engine {
namespace {

// Returns the product's own backend for a case, with the case's parameters.
std::unique_ptr<Backend> MakeGridBackend(const GridCase& grid, const FlatParameters& start) {
  auto backend = MakeTorchBackend(ComparedRun(grid));
  EXPECT_TRUE(backend.ok()) << backend.status();
  SetState(backend->get(), grid.training, {start.values(), start.buffers(), {}});
  return *std::move(backend);
}

// Returns the first update's gradient, and the logits of its whole batch.
TensorMap Differentiated(const GridCase& grid, const FlatParameters& start) {
  const TokenBatch& batch = grid.batches.front();
  const at::TensorOptions options = start.values().options();
  const Dropout dropout = {grid.model.dropout, grid.seed, 0, 0};
  Pass pass = TrainingPass(ComparedRun(grid), &dropout);
  // The running statistics must remain the initial ones.
  if (pass.statistics == Statistics::kBatchAndTrack) pass.statistics = Statistics::kBatch;
  Differentiate(grid.model, pass, MakeMicroBatches(batch, grid.training.accumulation, options),
                start, ObjectiveOf(grid.training));
  TensorMap out = ByName(start.layout().parameters, start.gradients(), "gradient.");
  out["logits"] = Logits(grid.model, start.model(), TensorsOf(batch, options), Pass()).detach();
  return out;
}

// Returns the loss on the first batch for each kind of parameters that the run has.
at::Tensor Evaluations(const GridCase& grid, Backend& backend) {
  std::vector<Evaluated> kinds = {Evaluated::kCurrent};
  if (grid.training.ema > 0) kinds.push_back(Evaluated::kEmaWeights);
  std::vector<double> losses;
  for (const Evaluated kind : kinds) {
    EvaluationSums sums;
    const TokenBatch& batch = grid.batches.front();
    EXPECT_TRUE(backend.Evaluate(kind, {&batch, 1}, &sums).ok());
    losses.push_back(sums.loss / sums.tokens);
  }
  return at::tensor(losses, at::kDouble);
}

// Returns the same quantities as reference.py.
TensorMap Train(const GridCase& grid) {
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, grid.precision);
  FlatParameters start(grid.model, grid.training.rule, options);
  const ParameterLayout& layout = start.layout();
  start.values().copy_(RandomParameters(grid.model, layout, grid.seed));
  if (layout.buffer_size > 0) start.buffers().copy_(RandomBuffers(layout, grid.seed));
  TensorMap out = Differentiated(grid, start);
  const std::unique_ptr<Backend> backend = MakeGridBackend(grid, start);
  std::vector<double> losses, norms;
  for (uint32_t step = 0; step < grid.training.steps; ++step) {
    const absl::StatusOr<UpdateResult> result = backend->Step(RequestOf(grid, step));
    EXPECT_TRUE(result.ok()) << result.status();
    losses.push_back(result->loss);
    norms.push_back(result->gradient_norm);
  }
  out["losses"] = at::tensor(losses, at::kDouble);
  out["norms"] = at::tensor(norms, at::kDouble);
  out["evaluations"] = Evaluations(grid, *backend);
  const absl::StatusOr<RunTensors> ended = backend->Tensors();
  const auto flat = [&](absl::string_view bytes) { return FlatTensor(ended->type, {bytes}); };
  out.merge(ByName(layout.parameters, flat(ended->parameters), "value."));
  if (layout.buffer_size > 0) {
    out.merge(ByName(layout.buffers, flat(ended->buffers), "buffer."));
  }
  for (const NamedBytes& slot : ended->slots) {
    out.merge(ByName(layout.parameters, flat(slot.bytes), slot.name + "."));
  }
  return out;
}

// Returns our logits, in rows.
at::Tensor LogitRows(const GridCase& grid, const at::Tensor& logits) {
  if (grid.model.loss == LossPositions::kLast) return logits;
  const TokenBatch& batch = grid.batches.front();
  return logits.view({batch.rows, batch.length, logits.size(-1)});
}

double LargestGradient(const TensorMap& answer) {
  double largest = 0;
  for (const auto& [name, tensor] : answer) {
    if (!absl::StartsWith(name, "gradient.")) continue;
    largest = std::max(largest, tensor.norm().item<double>());
  }
  return largest;
}

// Compares each tensor to within 1e-9 of its own norm.
void Compare(const GridCase& grid, const TensorMap& ours, const TensorMap& theirs) {
  const double largest = LargestGradient(theirs);
  for (const auto& [name, whole] : theirs) {
    const auto found = ours.find(name);
    ASSERT_TRUE(found != ours.end()) << name;
    const bool is_logits = name == "logits";
    const at::Tensor own =
        is_logits ? RealPositions(grid, LogitRows(grid, found->second)) : found->second;
    const at::Tensor exact = is_logits ? RealPositions(grid, whole) : whole;
    ASSERT_EQ(own.sizes(), exact.sizes()) << name;
    double scale = exact.norm().item<double>();
    // A gradient that is 0 in exact arithmetic is a rounding error: it is measured against the
    // largest tensor's.
    if (scale < 1e-10 * largest) scale = largest;
    EXPECT_LE((own - exact).norm().item<double>(), 1e-9 * scale + 1e-14)
        << name << " of norm " << scale << "\n"
        << ModelJson(grid.model) << "\n"
        << ConfigJson(grid.training);
  }
}

// Makes the tokens of rows differ.
void Vary(TokenBatch* batch, int64_t vocabulary) {
  for (int64_t row = 0; row < batch->rows; ++row) {
    int64_t* tokens = &batch->inputs[static_cast<size_t>(row * batch->length)];
    if (tokens[1] == tokens[0]) tokens[1] = (tokens[0] + 1) % vocabulary;
  }
}

// A BatchNorm over a few positions divides by their deviation, which amplifies float64's rounding
// errors from update to update: such runs make four updates. Tokens are varied, because a deviation
// of 0 in exact arithmetic would leave nothing but rounding errors, and so would scores of equal
// keys, whose sign Lion takes.
std::vector<GridCase> Float64Cases() {
  std::vector<GridCase> cases;
  for (GridCase& settings : MakeGrid()) {
    if (settings.precision != Precision::kFloat64) continue;
    const bool reads_batch = settings.model.norm.kind == NormKind::kBatch;
    if (reads_batch) {
      settings.training.steps = 4;
      // Adam divides the gradient of a bias before the norm, a rounding error, by at least this.
      settings.training.optimizer.eps = 1e-6;
      settings.training.schedule.decay = std::min(settings.training.schedule.decay, 2u);
    }
    if (reads_batch || settings.training.optimizer.kind == OptimizerKind::kLion) {
      for (TokenBatch& batch : settings.batches) Vary(&batch, settings.model.vocabulary);
    }
    cases.push_back(std::move(settings));
  }
  return cases;
}

TEST(GridParityTest, MatchesPyTorchInEveryQuantity) {
  const ScratchFolder folder;
  const std::vector<GridCase> grid = Float64Cases();
  for (const GridCase& settings : grid) WriteGridCase(folder.path(), settings, 0);
  const std::string missing = RunReference("runs", folder.path());
  if (!missing.empty()) GTEST_SKIP() << missing;
  PrepareLaneThread();
  for (const GridCase& settings : grid) {
    SCOPED_TRACE(settings.name);
    const TensorMap theirs = ReadAnswer(folder.path(), settings.name);
    ASSERT_GT(theirs.size(), 4u);
    Compare(settings, Train(settings), theirs);
  }
}

// Returns the fraction of cases for which `holds`.
template <typename Predicate>
double Fraction(const std::vector<GridCase>& grid, const Predicate& holds) {
  return static_cast<double>(std::count_if(grid.begin(), grid.end(), holds)) /
         static_cast<double>(grid.size());
}

// Compares the learning rate of every step with PyTorch's.
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

struct Switch {
  const char* name;
  bool (*on)(const ModelConfig& model);
};

constexpr Switch kSwitches[] = {
    {"kv_heads", [](const ModelConfig& m) { return Attends(m) && KvHeads(m) < m.heads; }},
    {"qk_norm", [](const ModelConfig& m) { return m.attention.qk_norm.kind != QkNormKind::kNone; }},
    {"score_cap", [](const ModelConfig& m) { return m.attention.score_cap > 0; }},
    {"window", [](const ModelConfig& m) { return m.attention.window > 0; }},
    {"sink", [](const ModelConfig& m) { return m.attention.sink; }},
    {"value_residual",
     [](const ModelConfig& m) { return m.attention.value_residual != ValueResidual::kNone; }},
    {"parallel", [](const ModelConfig& m) { return m.parallel; }},
    {"parallel_norms", [](const ModelConfig& m) { return m.parallel_norms; }},
    {"head_size", [](const ModelConfig& m) { return Attends(m) && QueryWidth(m) != m.width; }},
    {"qkv_bias", [](const ModelConfig& m) { return m.attention.qkv_bias; }},
    {"update_gain", [](const ModelConfig& m) { return m.update_gain != UpdateGain::kNone; }},
    {"embedding_scale", [](const ModelConfig& m) { return m.embedding_scale != 1; }},
    {"embedding_norm", [](const ModelConfig& m) { return m.embedding_norm; }},
    {"logit_cap", [](const ModelConfig& m) { return m.logit_cap > 0; }},
    {"base_width", [](const ModelConfig& m) { return WidthRatio(m) != 1; }},
    {"gain_form", [](const ModelConfig& m) { return m.norm.gain_form == GainForm::kOnePlus; }},
};

TEST(GridParityTest, HasEverySettingOftenEnough) {
  const std::vector<GridCase> grid = MakeGrid();
  const auto fraction = [&grid](const auto& holds) { return Fraction(grid, holds); };
  for (const auto& kind : kNames<NormKind>) {
    EXPECT_GT(fraction([&](const GridCase& c) { return c.model.norm.kind == kind.value; }),
              IsPointwise(kind.value) ? 0.01 : 0.12);
  }
  for (const auto& mode : kNames<NormBackward>) {
    EXPECT_GT(fraction([&](const GridCase& c) { return c.model.norm.backward == mode.value; }),
              0.08);
  }
  for (const auto& kind : kNames<AttentionKind>) {
    EXPECT_GT(fraction([&](const GridCase& c) { return c.model.attention.kind == kind.value; }),
              0.1);
  }
  for (const auto& kind : kNames<Positions>) {
    EXPECT_GT(fraction([&](const GridCase& c) { return c.model.positions == kind.value; }),
              kind.value == Positions::kAlibi ? 0.04 : 0.15);
  }
  for (const auto& kind : kNames<Activation>) {
    EXPECT_GT(fraction([&](const GridCase& c) { return c.model.activation == kind.value; }), 0.03);
  }
  for (const auto& rule : kNames<LearningRule>) {
    EXPECT_GT(fraction([&](const GridCase& c) { return c.training.rule == rule.value; }), 0.15);
  }
  for (const auto& kind : kNames<OptimizerKind>) {
    EXPECT_GT(fraction([&](const GridCase& c) { return c.training.optimizer.kind == kind.value; }),
              0.15);
  }
  for (const auto& kind : kNames<ScheduleKind>) {
    EXPECT_GT(fraction([&](const GridCase& c) { return c.training.schedule.kind == kind.value; }),
              0.12);
  }
  for (const auto& form : kNames<DecayForm>) {
    EXPECT_GT(fraction([&](const GridCase& c) {
                const ScheduleConfig& schedule = c.training.schedule;
                return schedule.kind == ScheduleKind::kWsd && schedule.decay > 0 &&
                       schedule.decay_form == form.value;
              }),
              0.02);
  }
  for (const auto& adjust : kNames<MuonAdjust>) {
    EXPECT_GT(fraction([&](const GridCase& c) {
                return c.training.optimizer.kind == OptimizerKind::kMuon &&
                       c.training.optimizer.muon.adjust == adjust.value;
              }),
              0.06);
  }
  EXPECT_GT(fraction([](const GridCase& c) {
              return c.training.optimizer.weight_decay > 0 &&
                     c.training.optimizer.weight_decay_form == WeightDecayForm::kIndependent;
            }),
            0.2);
  EXPECT_GT(fraction([](const GridCase& c) { return c.training.optimizer.rates.embeddings != 1; }),
            0.2);
  EXPECT_GT(fraction([](const GridCase& c) { return c.model.dropout > 0; }), 0.2);
  for (const auto& used : kSwitches) {
    EXPECT_GT(fraction([&](const GridCase& c) { return used.on(c.model); }), 0.02) << used.name;
  }
  EXPECT_GT(fraction([](const GridCase& c) {
              return c.model.norm.deviation == NormDeviation::kUnbiasedEpsOutside;
            }),
            0.05);
  EXPECT_GT(fraction([](const GridCase& c) {
              return c.model.width >= 64 && c.model.layers > 3 && c.batches[0].length >= 16;
            }),
            0.04);
  EXPECT_GT(fraction([](const GridCase& c) {
              return c.model.norm.placement == NormPlacement::kPost && c.model.norm.attention;
            }),
            0.15);
  EXPECT_GT(fraction([](const GridCase& c) { return !c.model.residual; }), 0.1);
  EXPECT_GT(fraction([](const GridCase& c) { return c.model.tied_head; }), 0.3);
  EXPECT_GT(fraction([](const GridCase& c) { return c.model.head_bias; }), 0.15);
  EXPECT_GT(fraction([](const GridCase& c) { return c.training.clip > 0 && c.training.clip < 1; }),
            0.2);
  EXPECT_GT(fraction([](const GridCase& c) {
              return c.model.loss == LossPositions::kLast && !c.batches[0].uniform();
            }),
            0.1);
  EXPECT_GT(fraction([](const GridCase& c) {
              return !c.model.attention.causal && !c.batches[0].uniform();
            }),
            0.1);
  EXPECT_GT(fraction([](const GridCase& c) { return c.precision == Precision::kFloat64; }), 0.4);
  EXPECT_GT(fraction([](const GridCase& c) {
              return c.training.accumulation > 1 && !c.batches[0].uniform();
            }),
            0.15);
  EXPECT_GT(fraction([](const GridCase& c) {
              return c.training.optimizer.weight_decay > 0 &&
                     c.training.optimizer.weight_decay_on == WeightDecayOn::kMatrices;
            }),
            0.2);
  EXPECT_GT(fraction([](const GridCase& c) { return c.training.label_smoothing > 0; }), 0.3);
  EXPECT_GT(fraction([](const GridCase& c) { return c.training.ema > 0; }), 0.4);
}

}  // namespace
}  // namespace ablate::engine
