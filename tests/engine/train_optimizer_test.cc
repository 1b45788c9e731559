// Tests the optimizers directly: Muon's directions, decay and rates by group. tests/parity compares
// their updates with PyTorch.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "server/engine/core/data/batches.h"
#include "server/engine/torch/train/optimizer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

constexpr double kRate = 0.5;

RunConfig RunWith(OptimizerKind kind) {
  RunConfig run = SmallDocumentsRun(1);
  run.model.width = 24;
  run.model.heads = 4;
  run.model.attention.kv_heads = 2;
  run.model.activation = Activation::kSwiglu;
  run.model.bias = true;
  run.training.optimizer = OptimizerConfig();
  run.training.optimizer.kind = kind;
  run.training.optimizer.learning_rate = kRate;
  run.training.optimizer.momentum = 0.9;
  return run;
}

at::Tensor Normal(int64_t size, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::empty({size}).normal_(0, 1, generator);
}

// A run's parameters before and after its first update.
struct Updated {
  ParameterLayout layout;
  at::Tensor before;
  at::Tensor after;

  // Returns the change of a parameter, in units of the learning rate.
  at::Tensor MoveOf(const ParameterInfo& parameter) const {
    return ((before - after) / kRate).narrow(0, parameter.offset, parameter.size);
  }
};

// Makes the update with a gradient of normal numbers times `scale`.
Updated Update(const RunConfig& run, double scale, double factor = 1) {
  Updated made;
  made.layout = MakeLayout(run.model);
  made.before = Normal(made.layout.size, 1);
  made.after = made.before.clone();
  Optimizer optimizer(run, made.layout, made.after);
  const TokenBatch batch;
  optimizer.Step(NumbersOf({batch, 0, run.training.optimizer.learning_rate * factor, factor}),
                 made.after, Normal(made.layout.size, 2) * scale);
  return made;
}

TEST(MuonTest, MovesEachMatrixByNearlyOrthogonalDirections) {
  const RunConfig run = RunWith(OptimizerKind::kMuon);
  const Updated made = Update(run, 1e-3);
  size_t matrices = 0;
  for (const MatrixView& matrix : BlockMatrices(run.model, made.layout)) {
    const auto rows = static_cast<double>(matrix.rows),
               columns = static_cast<double>(matrix.columns);
    const at::Tensor move =
        ((made.before - made.after) / (kRate * std::sqrt(std::max(1.0, rows / columns))))
            .narrow(0, matrix.offset, matrix.rows * matrix.columns)
            .view({matrix.rows, matrix.columns});
    const at::Tensor values = at::linalg_svdvals(move.to(at::kDouble));
    // Square matrices have small singular values, which the iterations don't move all the way.
    EXPECT_LT(values.max().item<double>(), 1.3);
    EXPECT_GT(values.median().item<double>(), 0.6);
    ++matrices;
  }
  EXPECT_EQ(matrices, 7 * static_cast<size_t>(run.model.layers));
}

TEST(MuonTest, MovesTheOthersByAdamW) {
  RunConfig run = RunWith(OptimizerKind::kMuon);
  run.training.optimizer.muon.adamw_learning_rate = 0.25;
  const Updated made = Update(run, 1e-3);
  for (const ParameterInfo& parameter : made.layout.parameters) {
    if (parameter.role == ParameterRole::kWeight) continue;
    // The first step of Adam is one learning rate.
    EXPECT_NEAR(made.MoveOf(parameter).abs().median().item<double>() * kRate, 0.25, 1e-3)
        << parameter.name;
  }
}

TEST(MuonTest, MovesNothingWithoutGradient) {
  RunConfig run = RunWith(OptimizerKind::kMuon);
  for (const MuonPrecision precision : {MuonPrecision::kFloat32, MuonPrecision::kBfloat16}) {
    run.training.optimizer.muon.precision = precision;
    const Updated made = Update(run, 0);
    EXPECT_TRUE(at::equal(made.before, made.after));
  }
}

TEST(MuonTest, IteratesInBfloat16) {
  RunConfig run = RunWith(OptimizerKind::kMuon);
  const at::Tensor exact = Update(run, 1).after;
  run.training.optimizer.muon.precision = MuonPrecision::kBfloat16;
  const Updated rounded = Update(run, 1);
  EXPECT_FALSE(at::equal(rounded.after, exact));
  const double apart = (rounded.after - exact).norm().item<double>();
  EXPECT_LT(apart, 0.05 * (rounded.after - rounded.before).norm().item<double>());
}

TEST(WeightDecayTest, IsIndependentOfThePeak) {
  for (const OptimizerKind kind :
       {OptimizerKind::kAdamW, OptimizerKind::kMuon, OptimizerKind::kLion}) {
    RunConfig run = RunWith(kind);
    OptimizerConfig& optimizer = run.training.optimizer;
    optimizer.learning_rate = optimizer.muon.adamw_learning_rate = 0;
    optimizer.weight_decay = optimizer.muon.adamw_weight_decay = 0.2;
    EXPECT_TRUE(at::equal(Update(run, 1).after, Update(run, 1).before)) << "scaled";
    optimizer.weight_decay_form = WeightDecayForm::kIndependent;
    const Updated made = Update(run, 1, 0.25);
    EXPECT_TRUE(at::allclose(made.after, made.before * 0.95, 1e-6, 0));
  }
}

TEST(RateFactorsTest, MultiplyTheMovesOfTheirGroup) {
  for (const Named<OptimizerKind>& kind : kNames<OptimizerKind>) {
    RunConfig run = RunWith(kind.value);
    run.model.tied_head = false;
    run.training.optimizer.muon.adamw_learning_rate = kRate;
    const Updated plain = Update(run, 1);
    run.training.optimizer.rates = {0.5, 2, 4};
    const Updated made = Update(run, 1);
    for (const ParameterInfo& parameter : made.layout.parameters) {
      double expected = parameter.shape.size() == 1 ? 4 : 1;
      if (parameter.role == ParameterRole::kHead) expected = 2;
      if (parameter.role == ParameterRole::kEmbedding) expected = 0.5;
      if (parameter.role == ParameterRole::kPosition) expected = 0.5;
      EXPECT_TRUE(
          at::allclose(made.MoveOf(parameter), expected * plain.MoveOf(parameter), 1e-4, 1e-5))
          << kind.name << " " << parameter.name;
    }
  }
}

}  // namespace
}  // namespace ablate::engine
