// Compares losses and gradients at given parameters with autograd's in float64, over the grid of
// settings.
#include "server/engine/native/forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/engine/core/checkpoint.h"
#include "server/engine/core/supports.h"
#include "server/engine/torch/model/batch.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/trainer.h"
#include "tests/native/start.h"
#include "tests/parity/grid.h"

namespace ablate::engine::native {
namespace {

// A case of the grid that the native backend supports.
struct Case {
  explicit Case(const GridCase& grid)
      : config(ConfigOf(grid)),
        layout(MakeLayout(config.model, config.training.rule)),
        start(StartOf(config, layout)),
        values(FloatsOf(start.values)),
        buffers(FloatsOf(start.buffers)),
        batch(grid.batches.front()) {}

  FlatPoint point() const { return {values, buffers}; }

  RunConfig config;
  ParameterLayout layout;
  Start start;
  std::vector<float> values;
  std::vector<float> buffers;
  TokenBatch batch;
};

std::vector<GridCase> NativeGrid(size_t every) {
  std::vector<GridCase> cases;
  const std::vector<GridCase> grid = MakeGrid();
  for (size_t i = 0; i < grid.size(); i += every) {
    if (WhyNoNativePass(ConfigOf(grid[i])).empty()) cases.push_back(grid[i]);
  }
  return cases;
}

struct Exact {
  double loss = 0;
  at::Tensor gradient;  // [P]
};

// Computes by autograd in float64.
Exact ByAutograd(const Case& of, const Pass& pass) {
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, Precision::kFloat64);
  const auto rounded = [&](const std::vector<float>& floats) {
    return at::tensor(floats).to(options);
  };
  const at::Tensor leaf = rounded(of.values).requires_grad_();
  const ModelParameters parameters = BindParameters(
      of.config.model, of.layout, ParameterViews(of.layout, leaf), rounded(of.buffers));
  const BatchTensors batch = TensorsOf(of.batch, options);
  const at::Tensor loss = MeanLoss(Logits(of.config.model, parameters, batch, pass), batch);
  loss.backward();
  return {loss.item<double>(), leaf.grad()};
}

// Relative error of a loss. Losses of random models are several times larger than usual, and a
// processor without fused products rounds more often.
constexpr double kLossError = 2e-5;

// Returns ‖gradient − exact‖/‖exact‖.
double ErrorOf(const std::vector<float>& gradient, const at::Tensor& exact) {
  const at::Tensor error = at::tensor(gradient).to(at::kDouble) - exact;
  return error.norm().item<double>() / exact.norm().item<double>();
}

TEST(NativeForwardTest, HasTheLossesOfThePlainPass) {
  PrepareLaneThread();
  int cases = 0;
  for (const GridCase& grid : NativeGrid(2)) {
    const Case of(grid);
    SCOPED_TRACE(grid.name + " " + ModelJson(of.config.model));
    const auto forward = NativeForward::Make(of.config, of.point());
    ASSERT_TRUE(forward.ok()) << forward.status();
    const auto sums = (*forward)->Score(of.batch);
    ASSERT_TRUE(sums.ok()) << sums.status();
    const double exact = ByAutograd(of, Pass()).loss;
    EXPECT_NEAR(sums->loss / sums->tokens, exact, kLossError * std::max(1.0, exact));
    ++cases;
  }
  EXPECT_GE(cases, 180);
}

void CheckGradients(Signal signal) {
  PrepareLaneThread();
  int cases = 0, beyond = 0;
  for (const GridCase& grid : NativeGrid(2)) {
    const Case of(grid);
    SCOPED_TRACE(grid.name + " " + ModelJson(of.config.model));
    const auto forward = NativeForward::Make(of.config, of.point(), signal);
    ASSERT_TRUE(forward.ok()) << forward.status();
    std::vector<float> gradient(of.values.size(), std::numeric_limits<float>::quiet_NaN());
    const auto loss = (*forward)->Differentiate(of.batch, absl::MakeSpan(gradient));
    ASSERT_TRUE(loss.ok()) << loss.status();
    Pass pass = {.statistics = Statistics::kBatch};
    if (signal == Signal::kLearnt) {
      pass.rule = of.config.training.rule;
      pass.norm_backward = of.config.model.norm.backward;
    }
    const Exact exact = ByAutograd(of, pass);
    EXPECT_NEAR(*loss, exact.loss, kLossError * std::max(1.0, exact.loss));
    // Rounding may move a ReLU's input across its kink.
    EXPECT_LE(ErrorOf(gradient, exact.gradient), 1e-3);
    beyond += ErrorOf(gradient, exact.gradient) > 1e-5 ? 1 : 0;
    ++cases;
  }
  EXPECT_GE(cases, 180);
  EXPECT_LE(beyond, cases / 20);
}

TEST(NativeForwardTest, HasExactGradients) { CheckGradients(Signal::kExact); }

TEST(NativeForwardTest, HasTheGradientsThatTheRuleLearnsFrom) { CheckGradients(Signal::kLearnt); }

TEST(NativeForwardTest, SaysTheSameOfAPointWhateverItDidBefore) {
  int cases = 0;
  for (const GridCase& grid : NativeGrid(7)) {
    const Case of(grid);
    SCOPED_TRACE(grid.name + " " + ModelJson(of.config.model));
    std::vector<float> elsewhere = of.values;
    for (size_t i = 0; i < elsewhere.size(); ++i) elsewhere[i] += i % 3 == 0 ? 0.02f : -0.01f;
    const auto fresh = NativeForward::Make(of.config, of.point());
    const auto used = NativeForward::Make(of.config, {elsewhere, of.buffers});
    ASSERT_TRUE(fresh.ok() && used.ok());
    std::vector<float> expected(of.values.size()), gradient(of.values.size());
    const double loss = *(*used)->Differentiate(of.batch, absl::MakeSpan(gradient));
    ASSERT_TRUE((*used)->Move(of.point()).ok());
    EXPECT_EQ((*used)->Score(of.batch)->loss, (*fresh)->Score(of.batch)->loss);
    EXPECT_EQ(*(*used)->Differentiate(of.batch, absl::MakeSpan(gradient)),
              *(*fresh)->Differentiate(of.batch, absl::MakeSpan(expected)));
    EXPECT_EQ(gradient, expected);
    // Neither has changed the running statistics.
    EXPECT_EQ((*used)->Score(of.batch)->loss, (*fresh)->Score(of.batch)->loss);
    EXPECT_NE(loss, *(*fresh)->Differentiate(of.batch, absl::MakeSpan(gradient)));
    ++cases;
  }
  EXPECT_GE(cases, 50);
}

TEST(NativeForwardTest, DescendsAlongItsGradient) {
  // With an exact gradient g, L(θ + h·g) − L(θ − h·g) = 2h·‖g‖² up to third order.
  int cases = 0;
  for (const GridCase& grid : NativeGrid(23)) {
    const Case of(grid);
    if (of.config.model.norm.kind == NormKind::kBatch) continue;  // Score uses other statistics
    SCOPED_TRACE(grid.name + " " + ModelJson(of.config.model));
    const auto forward = NativeForward::Make(of.config, of.point());
    ASSERT_TRUE(forward.ok());
    std::vector<float> gradient(of.values.size());
    ASSERT_TRUE((*forward)->Differentiate(of.batch, absl::MakeSpan(gradient)).ok());
    double squared = 0;
    for (const float g : gradient) squared += double{g} * g;
    const double step = 0.01 / std::sqrt(squared);
    const auto loss_at = [&](double along) {
      std::vector<float> moved = of.values;
      for (size_t i = 0; i < moved.size(); ++i) {
        moved[i] += static_cast<float>(along * gradient[i]);
      }
      EXPECT_TRUE((*forward)->Move({moved, of.buffers}).ok());
      const auto sums = (*forward)->Score(of.batch);
      return sums->loss / sums->tokens;
    };
    // Blocks of relu2 without norms can square values up to a loss of millions. Its third order is
    // too large.
    if (loss_at(0) > 1000) continue;
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(slope / squared, 1, 0.02);
    ++cases;
  }
  EXPECT_GE(cases, 5);
}

TEST(NativeForwardTest, SaysWhatItIsNotGiven) {
  const Case of(NativeGrid(1).front());
  RunConfig exact = of.config;
  exact.precision = Precision::kFloat64;
  EXPECT_EQ(NativeForward::Make(exact, of.point()).status(),
            absl::InvalidArgumentError("the native trainer computes in float32"));
  const auto forward = NativeForward::Make(of.config, of.point());
  ASSERT_TRUE(forward.ok());
  std::vector<float> longer = of.values;
  longer.push_back(0);
  const std::string complaint = "there are " + std::to_string(longer.size()) +
                                ", but the model has " + std::to_string(of.values.size());
  EXPECT_EQ(NativeForward::Make(of.config, {longer, of.buffers}).status(),
            absl::InvalidArgumentError("parameters: " + complaint));
  EXPECT_EQ((*forward)->Move({longer, of.buffers}),
            absl::InvalidArgumentError("parameters: " + complaint));
  EXPECT_EQ((*forward)->Differentiate(of.batch, absl::MakeSpan(longer)).status(),
            absl::InvalidArgumentError("gradient: " + complaint));
}

}  // namespace
}  // namespace ablate::engine::native
