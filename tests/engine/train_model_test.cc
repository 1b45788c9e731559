// Tests the model's second derivatives, its initial values, and the schedules.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <tuple>

#include "server/engine/core/data/batches.h"
#include "server/engine/names.h"
#include "server/engine/torch/model/init.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/torch/train/run_loop.h"
#include "server/engine/torch/train/torch_backend.h"
#include "server/engine/torch/train/torch_run.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

const at::TensorOptions kDouble = at::TensorOptions().dtype(at::kDouble);

ModelConfig SmallModel(NormKind kind, NormPlacement placement, LossPositions loss) {
  ModelConfig model = SmallDocumentsRun(1).model;
  model.norm = {};
  model.norm.kind = kind;
  model.norm.placement = placement;
  model.bias = true;
  model.activation = Activation::kGelu;
  model.tied_head = true;
  model.loss = loss;
  model.attention.causal = loss == LossPositions::kAll;
  return model;
}

BatchTensors PaddedBatch(LossPositions loss) {
  TokenBatch batch;
  batch.rows = 2;
  batch.length = 4;
  batch.inputs = {6, 1, 2, 3, 6, 5, 0, 0};
  batch.lengths = {4, 2};
  batch.targets = {1, 2, 3, 6, 5, 6, TokenBatch::kIgnored, TokenBatch::kIgnored};
  if (loss == LossPositions::kLast) batch.targets = {1, 2};
  return TensorsOf(batch, kDouble);
}

// Returns the gradient of the loss at `values` [P].
at::Tensor GradientAt(const ModelConfig& model, const BatchTensors& batch,
                      FlatParameters& parameters, const at::Tensor& values) {
  parameters.values().copy_(values);
  Differentiate(model, {.statistics = Statistics::kBatch}, {batch}, parameters);
  return parameters.gradients().clone();
}

// A float32 running sum stops growing at this size: LibTorch's own norm is 0.4 % too small.
TEST(GradientNormTest, IsThatOfFloat64OverFortyMillionElements) {
  constexpr int64_t kElements = 40'000'003;
  const at::Tensor gradient = at::linspace(-1, 2, kElements, at::kFloat);
  const double expected = gradient.to(at::kDouble).norm().item<double>();
  EXPECT_NEAR(GradientNorm(gradient) / expected, 1, 1e-9);
}

// As many elements as GPT-2 has, repeating k·scale for k = 1…768: float64 holds the sum of their
// squares, 162,031 · 768 · 769 · 1,537 / 6 · scale², without rounding.
TEST(GradientNormTest, IsExactAtTheSizeOfGpt2AndAtAnyScale) {
  constexpr int64_t kWidth = 768, kRows = 162'031;
  const at::Tensor gradient = at::arange(1, kWidth + 1, at::kFloat).repeat(kRows);
  const double norm = std::sqrt(kRows * (kWidth * (kWidth + 1) * (2 * kWidth + 1) / 6.0));
  double scale = 1;
  for (const float factor : {1.F, 0x1p-120F, 0x1p110F, 0x1p110F}) {
    gradient.mul_(factor);
    scale *= factor;  // 2^−120 and 2^100: their squares are outside float32's range
    EXPECT_EQ(GradientNorm(gradient), norm * scale) << scale;
  }
}

TEST(GradientNormTest, IsFiniteExactlyWhereTheGradientIs) {
  const at::Tensor gradients = at::ones({4, 37});
  gradients[0].fill_(3e38f);  // its square is infinite in float32
  gradients[1][36] = NAN;
  gradients[2][0] = -INFINITY;
  EXPECT_NEAR(GradientNorm(gradients[0]) / (3e38 * std::sqrt(37.0)), 1, 1e-6);
  EXPECT_TRUE(std::isnan(GradientNorm(gradients[1])));
  EXPECT_TRUE(std::isinf(GradientNorm(gradients[2])));
  EXPECT_DOUBLE_EQ(GradientNorm(gradients[3]), std::sqrt(37.0));
}

class SecondDerivativeTest
    : public testing::TestWithParam<std::tuple<NormKind, NormPlacement, LossPositions>> {};

TEST_P(SecondDerivativeTest, MatchesDifferencesOfTheGradient) {
  const auto [kind, placement, loss] = GetParam();
  const ModelConfig model = SmallModel(kind, placement, loss);
  const BatchTensors batch = PaddedBatch(loss);
  FlatParameters parameters(model, LearningRule::kBackprop, kDouble);
  const at::Tensor start = InitialParameters(model, parameters.layout(), 1).to(at::kDouble);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(2);
  const at::Tensor direction = at::empty_like(start).normal_(0, 1, generator);

  constexpr double kStep = 1e-5;
  const at::Tensor differences = (GradientAt(model, batch, parameters, start + kStep * direction) -
                                  GradientAt(model, batch, parameters, start - kStep * direction)) /
                                 (2 * kStep);

  const at::Tensor flat = start.clone().requires_grad_();
  const ModelParameters bound = BindParameters(
      model, parameters.layout(), ParameterViews(parameters.layout(), flat), parameters.buffers());
  const at::Tensor value =
      MeanLoss(Logits(model, bound, batch, {.statistics = Statistics::kBatch}), batch);
  const at::Tensor gradient = torch::autograd::grad({value}, {flat}, {}, true, true)[0];
  const at::Tensor product = torch::autograd::grad({(gradient * direction).sum()}, {flat})[0];

  EXPECT_LT((GradientAt(model, batch, parameters, start) - gradient).norm().item<double>(),
            1e-12 * gradient.norm().item<double>());
  EXPECT_LT((product - differences).norm().item<double>(),
            1e-7 * differences.norm().item<double>());
}

INSTANTIATE_TEST_SUITE_P(
    Norms, SecondDerivativeTest,
    testing::Combine(testing::Values(NormKind::kLayer, NormKind::kRms),
                     testing::Values(NormPlacement::kPre, NormPlacement::kPost),
                     testing::Values(LossPositions::kAll, LossPositions::kLast)));

// Returns a parameter of a wide model's initial values.
at::Tensor InitialValue(InitKind kind, InitStreams streams, const std::string& name) {
  ModelConfig model = RecallRun(0, NormPlacement::kPost).model;
  model.init = {kind, streams};
  const ParameterLayout layout = MakeLayout(model);
  const at::Tensor flat = InitialParameters(model, layout, 7);
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.name == name) return flat.narrow(0, parameter.offset, parameter.size);
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

TEST(InitialParametersTest, HaveTheKindsDistributions) {
  const auto value = [](InitKind kind, const std::string& name) {
    return InitialValue(kind, InitStreams::kByName, name);
  };
  const auto deviation = [](const at::Tensor& tensor) { return tensor.std().item<double>(); };
  const auto largest = [](const at::Tensor& tensor) { return tensor.abs().max().item<double>(); };
  const std::string up = "block.0.feed_forward.up.", qkv = "block.0.attention.qkv.";
  EXPECT_NEAR(deviation(value(InitKind::kPytorch, "token_embedding.weight")), 1, 0.02);
  EXPECT_NEAR(largest(value(InitKind::kPytorch, up + "weight")), 1 / std::sqrt(128), 1e-4);
  EXPECT_NEAR(largest(value(InitKind::kPytorch, up + "bias")), 1 / std::sqrt(128), 1e-3);
  EXPECT_NEAR(largest(value(InitKind::kPytorchMha, qkv + "weight")), std::sqrt(6. / 512), 1e-4);
  EXPECT_EQ(largest(value(InitKind::kPytorchMha, qkv + "bias")), 0);
  EXPECT_NEAR(largest(value(InitKind::kXavier, up + "weight")), std::sqrt(6. / 640), 1e-4);
  EXPECT_EQ(largest(value(InitKind::kXavier, up + "bias")), 0);
  EXPECT_NEAR(deviation(value(InitKind::kGpt2, up + "weight")), 0.02, 2e-4);
  EXPECT_NEAR(deviation(value(InitKind::kGpt2, "token_embedding.weight")), 0.02, 3e-4);
  EXPECT_EQ(value(InitKind::kGpt2, "block.0.attention.norm.weight").min().item<double>(), 1);
  EXPECT_EQ(largest(value(InitKind::kGpt2, "block.0.attention.norm.bias")), 0);
}

TEST(InitialParametersTest, DrawsFromIndependentStreamsByName) {
  const auto head = [](InitStreams streams) {
    return InitialValue(InitKind::kPytorch, streams, "head.weight");
  };
  EXPECT_TRUE(at::equal(head(InitStreams::kByName), head(InitStreams::kByName)));
  EXPECT_FALSE(at::equal(head(InitStreams::kByName), head(InitStreams::kSequential)));
}

TEST(LearningRateTest, FollowsItsSchedule) {
  const auto learning_rate = [](ScheduleKind kind, uint32_t warmup, uint32_t step) {
    return LearningRate({kind, warmup}, 0.01, step, 1000);
  };
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kConstant, 0, 999), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kLinear, 0, 0), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kLinear, 0, 250), 0.0075);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kLinear, 99, 0), 0.0001);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kCosine, 99, 49), 0.005);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kCosine, 200, 600), 0.005);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kConstant, 2000, 999), 0.01 * 1000 / 2001);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kInverseSqrt, 0, 99), 0.001);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kInverseSqrt, 99, 49), 0.005);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kInverseSqrt, 99, 99), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate(ScheduleKind::kInverseSqrt, 99, 399), 0.005);
}

TEST(LearningRateTest, FallsToItsFinalRate) {
  const auto linear = [](uint32_t step) {
    return LearningRate({ScheduleKind::kLinear, 0, 0, {}, 0.2}, 0.01, step, 1000);
  };
  EXPECT_DOUBLE_EQ(linear(0), 0.01);
  EXPECT_DOUBLE_EQ(linear(500), 0.006);
  EXPECT_DOUBLE_EQ(linear(1000), 0.002);
  const ScheduleConfig cosine = {ScheduleKind::kCosine, 200, 0, {}, 0.5};
  EXPECT_DOUBLE_EQ(LearningRate(cosine, 0.01, 600, 1000), 0.0075);
}

TEST(LearningRateTest, IsStableUntilItDecays) {
  const auto wsd = [](DecayForm form, uint32_t step) {
    return LearningRate({ScheduleKind::kWsd, 99, 400, form, 0}, 0.01, step, 1000);
  };
  for (const Named<DecayForm>& form : kNames<DecayForm>) {
    EXPECT_DOUBLE_EQ(wsd(form.value, 49), 0.005);
    for (const uint32_t step : {99, 300, 600}) EXPECT_DOUBLE_EQ(wsd(form.value, step), 0.01);
    EXPECT_LT(wsd(form.value, 601), 0.01);
    EXPECT_NEAR(wsd(form.value, 1000), 0, 1e-17);
  }
  EXPECT_DOUBLE_EQ(wsd(DecayForm::kLinear, 700), 0.0075);
  EXPECT_DOUBLE_EQ(wsd(DecayForm::kSqrt, 700), 0.005);
  EXPECT_DOUBLE_EQ(wsd(DecayForm::kCosine, 800), 0.005);
  // With a decay from the end of the warm-up on it is the linear schedule, step for step.
  const ScheduleConfig all = {ScheduleKind::kWsd, 100, 900, DecayForm::kLinear, 0.1};
  const ScheduleConfig linear = {ScheduleKind::kLinear, 100, 0, {}, 0.1};
  for (uint32_t step = 0; step < 1000; ++step) {
    EXPECT_EQ(LearningRate(all, 0.01, step, 1000), LearningRate(linear, 0.01, step, 1000));
  }
  EXPECT_EQ(LearningRate({ScheduleKind::kWsd}, 0.01, 999, 1000), 0.01) << "without decay";
}

// tests/parity compares with PyTorch's learning rates where these exist.
TEST(LearningRateTest, BeginsACycleAtItsPeakWithoutWarmUp) {
  for (const uint32_t warmup : {0U, 1U}) {
    const auto learning_rate = [warmup](uint32_t step, uint32_t steps) {
      return LearningRate({ScheduleKind::kOneCycle, warmup}, 0.01, step, steps);
    };
    EXPECT_DOUBLE_EQ(learning_rate(0, 1), 0.01);
    EXPECT_DOUBLE_EQ(learning_rate(0, 101), 0.01);
    EXPECT_DOUBLE_EQ(learning_rate(50, 101), (0.01 + 0.01 / 250'000) / 2);
    EXPECT_DOUBLE_EQ(learning_rate(100, 101), 0.01 / 250'000);
  }
}

// If DependsOnSteps is false, the learning rates of two runs agree at every step that they share.
TEST(LearningRateTest, DependsOnTheStepsOfTheRunWhereItSaysSo) {
  for (const Named<ScheduleKind>& kind : kNames<ScheduleKind>) {
    bool differs = false;
    for (uint32_t step = 0; step < 50; ++step) {
      const auto learning_rate = [&](uint32_t steps) {
        return LearningRate({kind.value, 10, 20}, 0.01, step, steps);
      };
      differs = differs || learning_rate(50) != learning_rate(80);
    }
    EXPECT_EQ(DependsOnSteps(kind.value), differs) << kind.name;
  }
}

}  // namespace
}  // namespace ablate::engine
