#include <gtest/gtest.h>

#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/plain_gradients.h"

namespace ablate::engine {
namespace {

AnalysisRequest FlowRequest(const AnalysisSubject& subject,
                            GradientSignal signal = GradientSignal::kExact) {
  return {GradientFlowOptions{signal}, {subject}, {40, ""}};
}

// Returns a model whose blocks only multiply positive states by `factor`. The first state is
// multiplied by `embedding`.
AnalysisSubject ChainOf(double factor, int layers, Precision precision, double embedding = 1) {
  RunConfig run;
  run.task = LettersTask(3, {0, 1, 2, 0, 1, 2, 1, 0, 2});
  run.precision = precision;
  ModelConfig& model = run.model;
  model.vocabulary = 3;
  model.layers = layers;
  model.width = model.hidden = 4;
  model.heads = 1;
  model.context = 4;
  model.positions = Positions::kNone;
  model.attention.kind = AttentionKind::kNone;
  model.norm.placement = NormPlacement::kNone;
  model.norm.final = false;
  model.residual = false;
  model.activation = Activation::kRelu;
  model.bias = false;
  const ParameterLayout layout = MakeLayout(model);
  at::Tensor values = R(3, {layout.size}).abs();
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.name == "token_embedding.weight") {
      values.narrow(0, parameter.offset, parameter.size) *= embedding;
    }
    if (parameter.role != ParameterRole::kWeight || parameter.block < 0) continue;
    const double scale = parameter.module == Module::kDown ? factor : 1;
    values.narrow(0, parameter.offset, parameter.size).copy_((scale * at::eye(4)).flatten());
  }
  return {run, CheckpointOf(run, values.to(TensorOptionsOf(at::kCPU, precision)))};
}

TEST(GradientFlowTest, GivesTheOracle) {
  const AnalysisResult result = Analyzed(FlowRequest(ModelM()));
  ExpectOracle(NumberIn(result, "gradient/embedding"), 0.8955656858);
  ExpectOracle(NumberIn(result, "gradient/block.0"), 0.3242505532);
  ExpectOracle(NumberIn(result, "gradient/block.1"), 0.2131980811);
  ExpectOracle(NumberIn(result, "gradient_ratio/embedding"), 0.8955656858 / 0.2131980811);
  ExpectOracle(NumberIn(result, "gradient_ratio/block.1"), 1);
  ExpectOracle(NumberIn(result, "parameter_gradient/block.0"), 3.065086413);
  ExpectOracle(NumberIn(result, "parameter_gradient/block.1"), 1.565208787);
  ExpectOracle(NumberIn(result, "parameter_gradient"), 3.771655522);
  ExpectOracle(NumberIn(result, "relative_gradient/block.0.feed_forward.up.weight"), 0.2568592051);
  ExpectOracle(NumberIn(result, "relative_gradient/block.1.feed_forward.up.weight"), 0.1108173936);
  ExpectOracle(NumberIn(result, "log_slope"), std::log(0.2131980811 / 0.8955656858) / 2);
  EXPECT_EQ(NumberIn(result, "vanished_states"), 0);
}

TEST(GradientFlowTest, FallsByTheFactorOfEveryBlock) {
  const AnalysisResult result = Analyzed(FlowRequest(ChainOf(0.5, 6, Precision::kFloat64)));
  for (int l = 0; l < 6; ++l) {
    ExpectOracle(NumberIn(result, "gradient_ratio/block." + std::to_string(l)),
                 std::pow(0.5, 5 - l));
  }
  ExpectOracle(NumberIn(result, "gradient_ratio/embedding"), std::pow(0.5, 6));
  ExpectOracle(NumberIn(result, "log_slope"), std::log(2));
  EXPECT_EQ(NumberIn(result, "vanished_states"), 3);
}

TEST(GradientFlowTest, KeepsGradientsThatFloat32CouldNotHold) {
  // Large embeddings, because the last block's output must not be subnormal.
  const AnalysisResult result =
      Analyzed(FlowRequest(ChainOf(0.0625, 34, Precision::kFloat32, std::exp2(40))));
  EXPECT_NEAR(NumberIn(result, "gradient_ratio/embedding") / std::pow(0.0625, 34), 1, 1e-5);
  EXPECT_NEAR(NumberIn(result, "log_slope"), std::log(16), 1e-5);
}

TEST(GradientFlowTest, HasNoLogarithmWhereAGradientIsZero) {
  const AnalysisResult result = Analyzed(FlowRequest(ChainOf(0, 2, Precision::kFloat64)));
  EXPECT_EQ(NumberIn(result, "gradient/embedding"), 0);
  EXPECT_EQ(ReasonIn(result, "log_slope"), Undefined::kZeroGradient);
  EXPECT_EQ(NumberIn(result, "vanished_states"), 2);
  EXPECT_EQ(ReasonIn(result, "relative_gradient/block.0.feed_forward.down.weight"),
            Undefined::kZeroDenominator);
  // A prompt of one letter has no target.
  const auto [subject, prompt] = ModelOfRows(R(1, {1, 3}));
  const AnalysisResult nothing = Analyzed({GradientFlowOptions{}, {subject}, {0, prompt}});
  ExpectUndefined(nothing, Undefined::kZeroGradient,
                  {"gradient_ratio/embedding", "vanished_states"});
}

TEST(GradientFlowTest, AddsUpTheSquaresOfBlocksAndTensors) {
  const AnalysisResult result = Analyzed(FlowRequest(DrawnSubject(6)));
  double tensors = 0, all = 0;
  for (const AnalysisNumber& number : result.numbers) {
    const bool is_block = number.name.find('.') == number.name.rfind('.') &&
                          number.name.rfind("parameter_gradient/block.", 0) == 0;
    if (number.name.rfind("parameter_gradient/", 0) == 0 && !is_block) {
      tensors += number.value * number.value;
    }
    if (number.name == "parameter_gradient") all = number.value * number.value;
  }
  EXPECT_NEAR(tensors, all, 1e-12 * all);
}

TEST(GradientFlowTest, EqualsOneBackwardPassInDrawnSettings) {
  for (uint64_t number = 0; number < 40; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const RunConfig& run = subject.config;
    const bool rule = number % 3 == 0;
    const AnalysisRequest request =
        FlowRequest(subject, rule ? GradientSignal::kRule : GradientSignal::kExact);
    std::vector<std::string> hook_points = HookPointsOr({}, run.model);
    const Pass pass = rule ? Pass{.rule = run.training.rule,
                                  .norm_backward = run.model.norm.backward,
                                  .statistics = Statistics::kBatch}
                           : Pass();
    const PlainGradients plain = PlainGradientsOf(request, pass, hook_points);
    const AnalysisResult result = Analyzed(request);
    for (size_t i = 0; i < hook_points.size(); ++i) {
      double squares = 0;
      for (const at::Tensor& g : plain.hook_points[i]) squares += g.square().sum().item<double>();
      const std::string place = i == 0 ? "embedding" : "block." + std::to_string(i - 1);
      ExpectNearIn(run.precision, NumberIn(result, "gradient/" + place), std::sqrt(squares), 0.01);
    }
    const ParameterLayout layout = MakeLayout(run.model);
    for (size_t i = 0; i < layout.parameters.size(); ++i) {
      ExpectNearIn(run.precision,
                   NumberIn(result, "parameter_gradient/" + layout.parameters[i].name),
                   plain.parameters[i].norm().item<double>(), 0.1);
    }
  }
}

}  // namespace
}  // namespace ablate::engine
