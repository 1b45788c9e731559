// Tests norms against closed forms: outputs, gradients, and tracked statistics.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>

#include "server/engine/torch/model/norm.h"

namespace ablate::engine {
namespace {

constexpr int64_t kWidth = 8;

at::Tensor RandomTokens(int64_t positions, uint64_t seed = 1) {
  at::manual_seed(seed);
  return at::randn({positions, kWidth}, at::kDouble) * 3 + 2;
}

NormConfig Config(NormKind kind) {
  NormConfig config;
  config.kind = kind;
  config.eps = 0;
  return config;
}

NormPass PassOf(NormConfig config, NormBackward backward = NormBackward::kExact) {
  config.backward = backward;
  return {config, Statistics::kRunning, {}, {}};
}

// Uses the statistics of x.
NormPass BatchPassOf(const at::Tensor& x, NormConfig config,
                     Statistics statistics = Statistics::kBatch, const at::Tensor& real = {}) {
  const int64_t positions = real.defined() ? real.sum().item<int64_t>() : x.size(0);
  return MakeNormPass(config, statistics, real, positions, x.options());
}

// Returns the gradient of x, given the gradient g of the norm's output.
at::Tensor HandedBack(const at::Tensor& x, const at::Tensor& g, const NormPass& pass) {
  const at::Tensor leaf = x.clone().requires_grad_();
  Norm(leaf, {}, pass).backward(g);
  return leaf.grad();
}

double Cosine(const at::Tensor& a, const at::Tensor& b) {
  return ((a * b).sum() / (a.norm() * b.norm())).item<double>();
}

bool Near(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-10, 1e-12); }

TEST(NormTest, UnbiasedDeviationIsSmallerByTheKnownFactor) {
  const at::Tensor x = RandomTokens(3);
  NormConfig config = Config(NormKind::kLayer);
  const at::Tensor usual = Norm(x, {}, PassOf(config));
  config.deviation = NormDeviation::kUnbiasedEpsOutside;
  const at::Tensor unbiased = Norm(x, {}, PassOf(config));
  EXPECT_TRUE(Near(unbiased, usual * std::sqrt((kWidth - 1.0) / kWidth)));
  EXPECT_NEAR((unbiased / usual)[0][0].item<double>(), .93541, 1e-5);
}

TEST(NormTest, AddsEpsToTheUnbiasedDeviationItself) {
  NormConfig config = Config(NormKind::kLayer);
  config.deviation = NormDeviation::kUnbiasedEpsOutside;
  config.eps = 0.5;
  const at::Tensor x = RandomTokens(3);
  const at::Tensor centred = x - x.mean(-1, true);
  EXPECT_TRUE(Near(Norm(x, {}, PassOf(config)), centred / (x.std({-1}, true, true) + 0.5)));
}

TEST(NormTest, GivesEqualFeaturesNoGradientThatIsNoNumber) {
  const at::Tensor x = at::full({2, kWidth}, 3.0, at::kDouble);
  const at::Tensor g = RandomTokens(2);
  NormConfig config = Config(NormKind::kLayer);
  config.deviation = NormDeviation::kUnbiasedEpsOutside;
  config.eps = 1e-5;
  const at::Tensor dx = HandedBack(x, g, PassOf(config));
  EXPECT_TRUE(dx.isfinite().all().item<bool>());
  EXPECT_TRUE(Near(dx, (g - g.mean(-1, true)) / 1e-5));
}

TEST(NormTest, L2GivesTokensOfLengthOne) {
  const at::Tensor y = Norm(RandomTokens(3), {}, PassOf(Config(NormKind::kL2)));
  EXPECT_TRUE(Near(y.norm(2, {-1}), at::ones({3}, at::kDouble)));
}

// Σ g and Σ g·x̂ as fractions of Σ g², in terms of which the identities are stated.
struct Parts {
  at::Tensor mean;    // by token, [N]
  at::Tensor radial;  // likewise
};

Parts PartsOf(const at::Tensor& x_hat, const at::Tensor& g) {
  const at::Tensor all = g.square().mean(-1);
  return {g.mean(-1).square() / all, (g * x_hat).mean(-1).square() / all};
}

at::Tensor SquaredCosines(const at::Tensor& a, const at::Tensor& b) {
  return (a * b).sum(-1).square() / (a.square().sum(-1) * b.square().sum(-1));
}

TEST(NormBackwardTest, ModesOfLayerNormObeyTheirIdentities) {
  const at::Tensor x = RandomTokens(5), g = RandomTokens(5, 2);
  const NormConfig config = Config(NormKind::kLayer);
  const at::Tensor x_hat = Norm(x, {}, PassOf(config));
  const auto [mean, radial] = PartsOf(x_hat, g);
  const auto back = [&](NormBackward mode) { return HandedBack(x, g, PassOf(config, mode)); };
  const at::Tensor exact = back(NormBackward::kExact);
  EXPECT_TRUE(Near(back(NormBackward::kIdentity), g));
  EXPECT_TRUE(Near(SquaredCosines(g, exact), 1 - mean - radial));
  EXPECT_TRUE(Near(SquaredCosines(back(NormBackward::kCenterScale), exact),
                   (1 - mean - radial) / (1 - mean)));
  EXPECT_NEAR(Cosine(back(NormBackward::kProjected)[0], exact[0]), 1, 1e-12);
}

TEST(NormBackwardTest, ModesNeverChangeWhatComesOut) {
  const at::Tensor x = RandomTokens(5);
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms, NormKind::kL2, NormKind::kBatch}) {
    NormConfig identity = Config(kind);
    identity.backward = NormBackward::kIdentity;
    EXPECT_TRUE(at::equal(Norm(x, {}, BatchPassOf(x, Config(kind))),
                          Norm(x, {}, BatchPassOf(x, identity))));
  }
}

TEST(NormBackwardTest, ProjectedHasThePartAlongZTakenAway) {
  const at::Tensor x = RandomTokens(5), g = RandomTokens(5, 2);
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms, NormKind::kL2}) {
    const at::Tensor x_hat = Norm(x, {}, PassOf(Config(kind)));
    const at::Tensor dx = HandedBack(x, g, PassOf(Config(kind), NormBackward::kProjected));
    EXPECT_TRUE(Near((dx * x_hat).sum(-1), at::zeros({5}, at::kDouble)));
  }
}

// Returns the gradient of the squared norm of the gradient of Σ g·norm(x).
at::Tensor SecondGradient(const at::Tensor& x, const at::Tensor& g,
                          const std::function<at::Tensor(const at::Tensor&)>& norm) {
  const at::Tensor leaf = x.clone().requires_grad_();
  const at::Tensor first = torch::autograd::grad({(norm(leaf) * g).sum()}, {leaf}, {},
                                                 /*retain_graph=*/true, /*create_graph=*/true)[0];
  return torch::autograd::grad({first.square().sum()}, {leaf})[0];
}

TEST(NormBackwardTest, TheExactOneIsDifferentiableTwice) {
  const at::Tensor x = RandomTokens(5), g = RandomTokens(5, 2);
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms, NormKind::kL2, NormKind::kBatch}) {
    const NormPass pass = BatchPassOf(x, Config(kind));
    const auto ours = [&](const at::Tensor& in) { return Norm(in, {}, pass); };
    const auto composed = [&](const at::Tensor& in) {
      const int64_t over = kind == NormKind::kBatch ? 0 : 1;
      const bool centres = kind == NormKind::kBatch || kind == NormKind::kLayer;
      const at::Tensor centred = centres ? in - in.mean(over, true) : in;
      const at::Tensor squares = centred.square();
      return centred /
             (kind == NormKind::kL2 ? squares.sum(over, true) : squares.mean(over, true)).sqrt();
    };
    EXPECT_TRUE(Near(SecondGradient(x, g, ours), SecondGradient(x, g, composed)))
        << static_cast<int>(kind);
  }
}

NormParameters Running() {
  NormParameters parameters;
  parameters.running_mean = at::zeros({kWidth}, at::kDouble);
  parameters.running_variance = at::ones({kWidth}, at::kDouble);
  return parameters;
}

TEST(BatchNormTest, StandardisesEachFeatureOverRealPositionsOnly) {
  const at::Tensor x = RandomTokens(6);
  at::Tensor real = at::ones({6, 1}, at::kDouble);
  real[5].zero_();
  at::Tensor padded = x.clone();
  padded[5].fill_(1e6);
  const NormPass pass = BatchPassOf(x, Config(NormKind::kBatch), Statistics::kBatch, real);
  const at::Tensor y = Norm(padded, {}, pass).narrow(0, 0, 5);
  EXPECT_TRUE(Near(y.mean(0), at::zeros({kWidth}, at::kDouble)));
  EXPECT_TRUE(Near(y.var(0, false), at::ones({kWidth}, at::kDouble)));
}

TEST(BatchNormTest, TracksATenthOfTheBatchWithUnbiasedVariance) {
  const at::Tensor x = RandomTokens(6);
  const NormParameters parameters = Running();
  Norm(x, parameters, BatchPassOf(x, Config(NormKind::kBatch), Statistics::kBatchAndTrack));
  EXPECT_TRUE(Near(parameters.running_mean, .1 * x.mean(0)));
  EXPECT_TRUE(Near(parameters.running_variance, .9 + .1 * x.var(0, true)));
}

TEST(BatchNormTest, TracksNothingUnlessAsked) {
  const at::Tensor x = RandomTokens(6);
  const NormParameters parameters = Running();
  Norm(x, parameters, BatchPassOf(x, Config(NormKind::kBatch)));
  EXPECT_TRUE(at::equal(parameters.running_mean, at::zeros({kWidth}, at::kDouble)));
}

TEST(BatchNormTest, EvaluatesByRunningStatistics) {
  const at::Tensor x = RandomTokens(1);
  NormParameters parameters = Running();
  parameters.running_mean.fill_(2);
  parameters.running_variance.fill_(4);
  EXPECT_TRUE(Near(Norm(x, parameters, PassOf(Config(NormKind::kBatch))), (x - 2) / 2));
}

TEST(BatchNormTest, RefusesToTrackOnePosition) {
  const at::Tensor x = RandomTokens(2);
  at::Tensor real = at::ones({2, 1}, at::kDouble);
  const auto track = [&](const at::Tensor& of, const at::Tensor& mask) {
    return BatchPassOf(of, Config(NormKind::kBatch), Statistics::kBatchAndTrack, mask);
  };
  EXPECT_THROW(track(x.narrow(0, 0, 1), {}), c10::Error);
  EXPECT_NO_THROW(track(x, real));
  real[1].zero_();
  EXPECT_THROW(track(x, real), c10::Error);
  EXPECT_NO_THROW(BatchPassOf(x, Config(NormKind::kBatch), Statistics::kBatch, real));
}

}  // namespace
}  // namespace ablate::engine
