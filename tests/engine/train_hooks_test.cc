// Tests that without hooks (`Hooks`), and with hooks that change nothing, the bits are those of
// training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/torch/model/init.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/torch/train/torch_run.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

using ::testing::HasSubstr;

using Captured = std::map<std::string, at::Tensor>;

// One batch and the initial parameters of a small model.
struct HookedModel {
  explicit HookedModel(LossPositions loss) : model(SmallDocumentsRun(1).model) {
    model.norm.kind = NormKind::kLayer;
    model.bias = true;
    model.loss = loss;
    model.attention.causal = loss == LossPositions::kAll;
    TokenBatch tokens;
    tokens.rows = 2;
    tokens.length = 4;
    tokens.inputs = {6, 1, 2, 3, 6, 5, 0, 0};
    tokens.lengths = {4, 2};
    tokens.targets = {1, 2, 3, 6, 5, 6, TokenBatch::kIgnored, TokenBatch::kIgnored};
    if (loss == LossPositions::kLast) tokens.targets = {1, 2};
    batch = TensorsOf(tokens, at::kFloat);
    parameters.emplace(model, LearningRule::kBackprop, at::kFloat);
    parameters->values().copy_(InitialParameters(model, parameters->layout(), 1));
  }

  // Returns the exact loss and gradient.
  std::pair<double, at::Tensor> Differentiated(const Hooks* hooks) {
    const Pass pass = {.statistics = Statistics::kBatch, .hooks = hooks};
    const double loss = Differentiate(model, pass, {batch}, *parameters).item<double>();
    return {loss, parameters->gradients().clone()};
  }

  // Captures the activation at every hook point.
  Captured Capture() {
    Captured captured;
    std::vector<std::pair<std::string, Hook>> hooks;
    for (const std::string& name : HookPointNames(model)) {
      hooks.emplace_back(
          name, Observe([&captured, name](const at::Tensor& x) { captured[name] = x.detach(); }));
    }
    const Hooks made = *Hooks::Make(model, std::move(hooks));
    Logits(model, parameters->model(), batch, {.hooks = &made});
    return captured;
  }

  at::Tensor HookedLogits(const std::string& hook_point, Hook hook) {
    const Hooks hooks = *Hooks::Make(model, {{hook_point, std::move(hook)}});
    return Logits(model, parameters->model(), batch, {.hooks = &hooks});
  }

  ModelConfig model;
  BatchTensors batch;
  std::optional<FlatParameters> parameters;
};

class HooksTest : public testing::TestWithParam<LossPositions> {};

TEST_P(HooksTest, ObserversChangeNoBit) {
  HookedModel setup(GetParam());
  const auto [loss, gradient] = setup.Differentiated(nullptr);
  std::vector<std::pair<std::string, Hook>> hooks;
  int observed = 0;
  for (const std::string& name : HookPointNames(setup.model)) {
    hooks.emplace_back(name, Observe([&observed](const at::Tensor&) { ++observed; }));
  }
  const Hooks made = *Hooks::Make(setup.model, std::move(hooks));
  const auto [hooked_loss, hooked_gradient] = setup.Differentiated(&made);
  EXPECT_EQ(observed, static_cast<int>(HookPointNames(setup.model).size()));
  EXPECT_EQ(loss, hooked_loss);
  EXPECT_TRUE(at::equal(gradient, hooked_gradient));
  const Hooks none = *Hooks::Make(setup.model, {});
  const auto [same_loss, same_gradient] = setup.Differentiated(&none);
  EXPECT_EQ(loss, same_loss);
  EXPECT_TRUE(at::equal(gradient, same_gradient));
}

TEST_P(HooksTest, ReplacingByTheSameChangesNoBit) {
  HookedModel setup(GetParam());
  const at::Tensor logits = Logits(setup.model, setup.parameters->model(), setup.batch, Pass());
  for (const auto& [name, value] : setup.Capture()) {
    EXPECT_TRUE(at::equal(setup.HookedLogits(name, Replace(value)), logits)) << name;
  }
}

TEST_P(HooksTest, AnotherValueReachesTheLogits) {
  HookedModel setup(GetParam());
  const at::Tensor logits = Logits(setup.model, setup.parameters->model(), setup.batch, Pass());
  at::manual_seed(1);
  for (const auto& [name, value] : setup.Capture()) {
    const at::Tensor change = at::rand(value.sizes());
    const at::Tensor added = setup.HookedLogits(name, Add(change));
    EXPECT_FALSE(at::equal(added, logits)) << name;
    EXPECT_TRUE(at::equal(added, setup.HookedLogits(name, Replace(value + change)))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, HooksTest,
                         testing::Values(LossPositions::kAll, LossPositions::kLast));

TEST(HookPointsTest, HaveNamesOfTheirValues) {
  HookedModel setup(LossPositions::kAll);
  const Captured captured = setup.Capture();
  const at::Tensor weights = captured.at("block.1.attention.weights");
  EXPECT_TRUE(at::allclose(weights.sum(-1), at::ones({weights.size(0), weights.size(1)})));
  EXPECT_TRUE(
      at::equal(captured.at("logits"),
                Logits(setup.model, setup.parameters->model(), setup.batch, Pass()).detach()));
  EXPECT_EQ(captured.at("block.0.feed_forward.hidden").size(1), setup.model.hidden);
}

TEST(HookPointsTest, AreRefusedIfTheModelLacksThem) {
  const ModelConfig model = SmallDocumentsRun(1).model;
  for (const char* name : {"block.2.output", "block.0.attention", "head", ""}) {
    const auto hooks = Hooks::Make(model, {{name, Observe([](const at::Tensor&) {})}});
    ASSERT_EQ(hooks.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(hooks.status().message()), HasSubstr(std::string("'") + name + "'"));
    EXPECT_THAT(std::string(hooks.status().message()), HasSubstr("block.1.attention.input"));
  }
}

TEST(HookPointsTest, RefuseAnotherShape) {
  HookedModel setup(LossPositions::kAll);
  EXPECT_THROW(setup.HookedLogits("logits", Replace(at::ones({1}))), c10::Error);
}

}  // namespace
}  // namespace ablate::engine
