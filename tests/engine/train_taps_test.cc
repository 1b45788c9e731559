// Tests that without hooks (`Taps`), and with hooks that change nothing, the bits are those of
// training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/model/init.h"
#include "server/engine/model/transformer.h"
#include "server/engine/train/torch_backend.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

using ::testing::HasSubstr;

using Captured = std::map<std::string, at::Tensor>;

// One batch and the initial parameters of a small model.
struct TappedModel {
  explicit TappedModel(LossPositions loss) : model(SmallDocumentsRun(1).model) {
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
  std::pair<double, at::Tensor> Differentiated(const Taps* taps) {
    const Pass pass = {.statistics = Statistics::kBatch, .taps = taps};
    const double loss = Differentiate(model, pass, {batch}, *parameters);
    return {loss, parameters->gradients().clone()};
  }

  // Captures the activation at every site.
  Captured Capture() {
    Captured captured;
    std::vector<std::pair<std::string, Tap>> taps;
    for (const std::string& name : SiteNames(model)) {
      taps.emplace_back(
          name, Observe([&captured, name](const at::Tensor& x) { captured[name] = x.detach(); }));
    }
    const Taps made = *Taps::Make(model, std::move(taps));
    Logits(model, parameters->model(), batch, {.taps = &made});
    return captured;
  }

  at::Tensor TappedLogits(const std::string& site, Tap tap) {
    const Taps taps = *Taps::Make(model, {{site, std::move(tap)}});
    return Logits(model, parameters->model(), batch, {.taps = &taps});
  }

  ModelConfig model;
  BatchTensors batch;
  std::optional<FlatParameters> parameters;
};

class TapsTest : public testing::TestWithParam<LossPositions> {};

TEST_P(TapsTest, ObserversChangeNoBit) {
  TappedModel setup(GetParam());
  const auto [loss, gradient] = setup.Differentiated(nullptr);
  std::vector<std::pair<std::string, Tap>> taps;
  int observed = 0;
  for (const std::string& name : SiteNames(setup.model)) {
    taps.emplace_back(name, Observe([&observed](const at::Tensor&) { ++observed; }));
  }
  const Taps made = *Taps::Make(setup.model, std::move(taps));
  const auto [tapped_loss, tapped_gradient] = setup.Differentiated(&made);
  EXPECT_EQ(observed, static_cast<int>(SiteNames(setup.model).size()));
  EXPECT_EQ(loss, tapped_loss);
  EXPECT_TRUE(at::equal(gradient, tapped_gradient));
  const Taps none = *Taps::Make(setup.model, {});
  const auto [same_loss, same_gradient] = setup.Differentiated(&none);
  EXPECT_EQ(loss, same_loss);
  EXPECT_TRUE(at::equal(gradient, same_gradient));
}

TEST_P(TapsTest, ReplacingByTheSameChangesNoBit) {
  TappedModel setup(GetParam());
  const at::Tensor logits = Logits(setup.model, setup.parameters->model(), setup.batch, Pass());
  for (const auto& [name, value] : setup.Capture()) {
    EXPECT_TRUE(at::equal(setup.TappedLogits(name, Replace(value)), logits)) << name;
  }
}

TEST_P(TapsTest, AnotherValueReachesTheLogits) {
  TappedModel setup(GetParam());
  const at::Tensor logits = Logits(setup.model, setup.parameters->model(), setup.batch, Pass());
  at::manual_seed(1);
  for (const auto& [name, value] : setup.Capture()) {
    const at::Tensor change = at::rand(value.sizes());
    const at::Tensor added = setup.TappedLogits(name, Add(change));
    EXPECT_FALSE(at::equal(added, logits)) << name;
    EXPECT_TRUE(at::equal(added, setup.TappedLogits(name, Replace(value + change)))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, TapsTest,
                         testing::Values(LossPositions::kAll, LossPositions::kLast));

TEST(TapSitesTest, SeeWhatTheSiteIsCalled) {
  TappedModel setup(LossPositions::kAll);
  const Captured captured = setup.Capture();
  const at::Tensor weights = captured.at("block.1.attention.weights");
  EXPECT_TRUE(at::allclose(weights.sum(-1), at::ones({weights.size(0), weights.size(1)})));
  EXPECT_TRUE(
      at::equal(captured.at("logits"),
                Logits(setup.model, setup.parameters->model(), setup.batch, Pass()).detach()));
  EXPECT_EQ(captured.at("block.0.feed_forward.hidden").size(1), setup.model.hidden);
}

TEST(TapSitesTest, RefuseASiteThatTheModelLacks) {
  const ModelConfig model = SmallDocumentsRun(1).model;
  for (const char* name : {"block.2.output", "block.0.attention", "head", ""}) {
    const auto taps = Taps::Make(model, {{name, Observe([](const at::Tensor&) {})}});
    ASSERT_EQ(taps.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(taps.status().message()), HasSubstr(std::string("'") + name + "'"));
    EXPECT_THAT(std::string(taps.status().message()), HasSubstr("block.1.attention.input"));
  }
}

TEST(TapSitesTest, RefuseAnotherShape) {
  TappedModel setup(LossPositions::kAll);
  EXPECT_THROW(setup.TappedLogits("logits", Replace(at::ones({1}))), c10::Error);
}

}  // namespace
}  // namespace ablate::engine
