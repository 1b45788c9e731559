// Tests logistic regressions and the minimisation by which they are fitted.
#include "server/engine/analyze/logistic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "server/engine/analyze/lbfgs.h"
#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {
namespace {

void NoCheck() {}

// A fitted regression: W [classes, d] and intercepts less their mean.
struct FittedLogistic {
  LbfgsState state;
  double objective = 0;
  at::Tensor weights, intercepts;
};

FittedLogistic FitTo(const at::Tensor& rows, const std::vector<int64_t>& of_rows, int64_t classes,
                     double c, double tolerance = 1e-11) {
  const LogisticObjective objective(rows, of_rows, classes, c, NoCheck);
  FittedLogistic fit;
  fit.state = BeginLbfgs(objective.coefficients(), objective, tolerance);
  AdvanceLbfgs(kMostLogisticSteps, objective, tolerance, &fit.state);
  fit.objective = fit.state.value() * c * static_cast<double>(of_rows.size());
  const at::Tensor by_class = fit.state.x.view({classes, -1});
  fit.weights = by_class.narrow(1, 0, rows.size(1));
  fit.intercepts = by_class.select(1, rows.size(1));
  fit.intercepts = fit.intercepts - fit.intercepts.mean();
  return fit;
}

double FittedAccuracy(const FittedLogistic& fit, const at::Tensor& rows,
                      const std::vector<int64_t>& of_rows) {
  const at::Tensor labels = at::tensor(at::ArrayRef<int64_t>(of_rows), at::kLong);
  return LogisticScores(fit.state.x, rows)
      .argmax(1)
      .eq(labels)
      .to(at::kDouble)
      .mean()
      .item<double>();
}

// The reference's rows and labels: 28 to learn from and 12 to score.
struct LogisticOracle {
  at::Tensor rows = StandardisedRows(R(21, {40, 3}), 28);
  at::Tensor training = rows.narrow(0, 0, 28), scored = rows.narrow(0, 28, 12);
  std::vector<int64_t> training_labels, scored_labels;

  LogisticOracle() {
    const at::Tensor labels =
        (at::mm(R(21, {40, 3}), R(22, {3, 3})) + 0.5 * R(23, {40, 3})).argmax(1);
    for (int64_t i = 0; i < 40; ++i) {
      (i < 28 ? training_labels : scored_labels).push_back(labels[i].item<int64_t>());
    }
  }
};

TEST(LogisticTest, GivesTheOracle) {
  const LogisticOracle oracle;
  const FittedLogistic fit = FitTo(oracle.training, oracle.training_labels, 3, 1);
  EXPECT_EQ(fit.state.status(), LbfgsStatus::kConverged);
  ExpectOracle(fit.objective, 12.397592599217692);
  ExpectOracle(fit.weights[0][0].item<double>(), 0.36945966098039407);
  ExpectOracle(fit.weights[0][1].item<double>(), -0.31836399521087233);
  ExpectOracle(fit.weights[0][2].item<double>(), -1.3978752034078699);
  ExpectOracle(fit.intercepts[0].item<double>(), -0.1569615390509877);
  ExpectOracle(FittedAccuracy(fit, oracle.training, oracle.training_labels), 0.8928571428571429);
  ExpectOracle(FittedAccuracy(fit, oracle.scored, oracle.scored_labels), 0.8333333333333334);
}

// Objectives and coefficients of scikit-learn 1.9.1 for other values of C.
TEST(LogisticTest, GivesThoseOfScikitLearn) {
  const LogisticOracle oracle;
  const FittedLogistic weak = FitTo(oracle.training, oracle.training_labels, 3, 100);
  EXPECT_NEAR(weak.objective, 421.9844247687779, 1e-8);
  EXPECT_NEAR(weak.weights[2][0].item<double>(), -7.5098327721466696, 1e-6);
  EXPECT_NEAR(weak.intercepts[1].item<double>(), 1.1221498182310057, 1e-6);
  const FittedLogistic strong = FitTo(oracle.training, oracle.training_labels, 3, 0.01);
  EXPECT_NEAR(strong.objective, 0.2853883721905686, 1e-10);
  EXPECT_NEAR(strong.weights[1][2].item<double>(), 0.019237486497831344, 1e-8);
  EXPECT_NEAR(strong.intercepts[2].item<double>(), 0.2742751337134603, 1e-8);
}

TEST(LogisticTest, ShuffledLabelsOfTheOracle) {
  const LogisticOracle oracle;
  const at::Tensor order = ((UniformSequence(24, 0, 28) + 1) / 2).argsort(/*stable=*/true);
  std::vector<int64_t> shuffled;
  for (int64_t i = 0; i < 28; ++i) {
    shuffled.push_back(oracle.training_labels[static_cast<size_t>(order[i].item<int64_t>())]);
  }
  const FittedLogistic fit = FitTo(oracle.training, shuffled, 3, 1);
  ExpectOracle(FittedAccuracy(fit, oracle.scored, oracle.scored_labels), 0.25);
}

TEST(LogisticTest, SeparatesWhatIsSeparable) {
  const at::Tensor rows = R(1, {60, 4});
  std::vector<int64_t> labels;
  const at::Tensor most = rows.argmax(1);
  for (int64_t i = 0; i < 60; ++i) labels.push_back(most[i].item<int64_t>());
  const FittedLogistic fit = FitTo(rows, labels, 4, 1e6, 1e-7);
  EXPECT_EQ(fit.state.status(), LbfgsStatus::kConverged);
  EXPECT_EQ(FittedAccuracy(fit, rows, labels), 1);
}

TEST(LogisticTest, HasTheGradientOfItsValue) {
  const LogisticOracle oracle;
  const LogisticObjective objective(oracle.training, oracle.training_labels, 3, 0.7, NoCheck);
  const at::Tensor x = R(5, {objective.coefficients()});
  at::Tensor gradient, unused;
  objective(x, &gradient);
  for (int64_t i = 0; i < x.numel(); ++i) {
    at::Tensor up = x.clone(), down = x.clone();
    up[i] += 1e-5;
    down[i] -= 1e-5;
    const double slope = (objective(up, &unused) - objective(down, &unused)) / 2e-5;
    EXPECT_NEAR(gradient[i].item<double>(), slope, 1e-9) << i;
  }
}

// Continues one step at a time from copies.
TEST(LbfgsTest, GivesTheSameBitsWhereverItIsCut) {
  const LogisticOracle oracle;
  const LogisticObjective objective(oracle.training, oracle.training_labels, 3, 100, NoCheck);
  LbfgsState whole = BeginLbfgs(objective.coefficients(), objective, 1e-9), cut = whole.Clone();
  AdvanceLbfgs(1000, objective, 1e-9, &whole);
  EXPECT_EQ(whole.status(), LbfgsStatus::kConverged);
  EXPECT_GT(whole.steps(), LbfgsState::kHistory) << "the oldest pairs are replaced";
  LbfgsState kept = LbfgsState::Make(objective.coefficients() + 5);  // larger, as for more classes
  kept.First(objective.coefficients()).CopyFrom(cut);
  for (int64_t step = 0; step < whole.steps(); ++step) {
    LbfgsState next = kept.First(objective.coefficients()).Clone();
    AdvanceLbfgs(1, objective, 1e-9, &next);
    kept.First(objective.coefficients()).CopyFrom(next);
    cut = next;
  }
  EXPECT_TRUE(at::equal(cut.x, whole.x));
  EXPECT_TRUE(at::equal(cut.numbers, whole.numbers));
}

TEST(LbfgsTest, FindsTheMinimumOfRosenbrock) {
  const auto rosenbrock = [](const at::Tensor& x, at::Tensor* gradient) {
    const double a = x[0].item<double>(), b = x[1].item<double>(), c = b - a * a;
    *gradient = at::tensor({-2 * (1 - a) - 400 * a * c, 200 * c}, at::kDouble);
    return (1 - a) * (1 - a) + 100 * c * c;
  };
  LbfgsState state = BeginLbfgs(2, rosenbrock, 1e-10);
  AdvanceLbfgs(200, rosenbrock, 1e-10, &state);
  EXPECT_EQ(state.status(), LbfgsStatus::kConverged);
  EXPECT_LT(state.steps(), 60);
  EXPECT_NEAR(state.x[0].item<double>(), 1, 1e-9);
  EXPECT_NEAR(state.x[1].item<double>(), 1, 1e-9);
}

TEST(LbfgsTest, EndsWithoutAMinimum) {
  const auto line = [](const at::Tensor& x, at::Tensor* gradient) {
    *gradient = at::ones({1}, at::kDouble);
    return x[0].item<double>();
  };
  LbfgsState state = BeginLbfgs(1, line, 1e-10);
  AdvanceLbfgs(10, line, 1e-10, &state);
  EXPECT_EQ(state.status(), LbfgsStatus::kStalled);
  const auto none = [](const at::Tensor&, at::Tensor* gradient) {
    *gradient = at::full({1}, std::nan(""), at::kDouble);
    return std::nan("");
  };
  state = BeginLbfgs(1, none, 1e-10);
  AdvanceLbfgs(10, none, 1e-10, &state);
  EXPECT_EQ(state.status(), LbfgsStatus::kNonFinite);
  EXPECT_EQ(state.steps(), 0);
}

TEST(StandardisedRowsTest, StandardisesByTheRowsToLearnFrom) {
  const at::Tensor x = R(3, {9, 3}) * at::tensor({1.0, 1e200, 1e-200}, at::kDouble) + 5;
  const at::Tensor z = StandardisedRows(R(3, {9, 3}) * 3 + 5, 6), trained = z.narrow(0, 0, 6);
  EXPECT_NEAR(trained.mean(0).abs().max().item<double>(), 0, 1e-14);
  EXPECT_NEAR(trained.square().mean(0).sub(1).abs().max().item<double>(), 0, 1e-14);
  const at::Tensor wide = StandardisedRows(x, 6);
  EXPECT_TRUE(at::allclose(wide.select(1, 0), z.select(1, 0), 1e-9, 1e-12));
  EXPECT_TRUE(at::allclose(wide.select(1, 1), z.select(1, 1), 1e-9, 1e-12)) << "none overflows";
}

TEST(StandardisedRowsTest, OnlyCentresAConstantColumn) {
  at::Tensor x = R(3, {5, 3});
  x.select(1, 1).fill_(0.1);
  x.select(1, 2).zero_();
  const at::Tensor z = StandardisedRows(x, 5);
  EXPECT_LT(z.select(1, 1).abs().max().item<double>(), 1e-15);
  EXPECT_EQ(z.select(1, 2).abs().max().item<double>(), 0);
  x[2][0].fill_(std::nan(""));
  EXPECT_TRUE(std::isnan(StandardisedRows(x, 5).sum().item<double>()));
}

}  // namespace
}  // namespace ablate::engine
