#include <gtest/gtest.h>

#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/moved_model.h"
#include "server/engine/analyze/parameter_draws.h"
#include "server/engine/core/supports.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_model.h"
#include "tests/engine/analyze/small_models.h"
#include "tests/engine/analyze/stops.h"

namespace ablate::engine {
namespace {

// Model M on lines and planes along given directions.
class GivenDirections {
 public:
  explicit GivenDirections(Direction direction) : direction_(direction) {}

  at::Tensor Scaled(uint64_t seed) const {
    const SubjectModel& m = analysis_.subjects[0];
    return ScaledDirection(direction_, m.layout, m.values, R(seed, {440}));
  }

  double Loss(double alpha, double beta = 0) const {
    MovedModel model = *MovedModel::Make(analysis_, analysis_.subjects[0]);
    model.values().copy_(analysis_.subjects[0].values.add(Scaled(9), alpha).add(Scaled(10), beta));
    return model.Loss(analysis_.batches[0]) / 8;
  }

 private:
  const Direction direction_;
  const AnalysisContext analysis_ = ContextOf(ModelM());
};

AnalysisResult LandscapeOf(const AnalysisSubject& subject, const LossLandscapeOptions& options) {
  return Analyzed({options, {subject}, {1000, ""}});
}

LossLandscapeOptions Lines(Direction direction, uint32_t directions, double radius,
                           uint32_t points) {
  return {direction, 1, directions, radius, points};
}

LossLandscapeOptions Planes(uint32_t directions, double radius, uint32_t points) {
  return {Direction::kFilter, 2, directions, radius, points};
}

TEST(LossLandscapeTest, GivesTheOracle) {
  const struct {
    Direction direction;
    double alpha, beta, loss;
  } points[] = {
      {Direction::kUnit, -1, 0, 2.09259809},    {Direction::kUnit, 0, 0, 2.162577511},
      {Direction::kUnit, 0.5, 0, 2.230654293},  {Direction::kUnit, 1, 0, 2.287055046},
      {Direction::kFilter, -1, 0, 3.211321635}, {Direction::kFilter, 0.5, 0, 2.04072272},
      {Direction::kFilter, 1, 0, 1.891414333},  {Direction::kFilter, 0.5, -0.25, 2.202280504},
      {Direction::kLayer, -1, 0, 2.800530193},  {Direction::kLayer, 0.5, 0, 2.019955775},
      {Direction::kLayer, 1, 0, 1.907492674}};
  for (const auto& [direction, alpha, beta, loss] : points) {
    SCOPED_TRACE(loss);
    ExpectOracle(GivenDirections(direction).Loss(alpha, beta), loss);
  }
  for (const Direction direction : {Direction::kFilter, Direction::kLayer}) {
    ExpectOracle(GivenDirections(direction).Scaled(9).norm().item<double>(), 10.91558261);
  }
}

TEST(LossLandscapeTest, LeavesTensorsOfOneDimensionAndRowsWithoutNormAsTheyAre) {
  SubjectModel m = ContextOf(ModelM()).subjects[0];
  m.values.narrow(0, 0, 4).zero_();  // the first token's embedding
  for (const Direction kind : {Direction::kFilter, Direction::kLayer}) {
    const at::Tensor scaled = ScaledDirection(kind, m.layout, m.values, R(9, {440}));
    for (const ParameterInfo& parameter : m.layout.parameters) {
      const at::Tensor part = scaled.narrow(0, parameter.offset, parameter.size);
      EXPECT_EQ(part.eq(0).all().item<bool>(), parameter.shape.size() == 1) << parameter.name;
    }
  }
  const auto first = [](const at::Tensor& scaled) { return scaled.narrow(0, 0, 4); };
  const at::Tensor filter = ScaledDirection(Direction::kFilter, m.layout, m.values, R(9, {440}));
  EXPECT_TRUE(first(filter).eq(0).all().item<bool>());
  // A direction drawn as zero doesn't become NaN.
  at::Tensor drawn = R(9, {440});
  drawn.narrow(0, 0, 8).zero_();
  EXPECT_TRUE(
      ScaledDirection(Direction::kFilter, m.layout, m.values, drawn).isfinite().all().item<bool>());
  const at::Tensor nothing = at::zeros({440}, at::kDouble);
  EXPECT_TRUE(
      ScaledDirection(Direction::kUnit, m.layout, m.values, nothing).eq(0).all().item<bool>());
}

// Queries times 3 and keys divided by 3 give the same function.
TEST(LossLandscapeTest, MovesAlongTheSameFunctionsWhereRowsAreScaledBothWays) {
  const AnalysisSubject other =
      Changed(ModelM(), [](const ParameterInfo& parameter, const at::Tensor& values) {
        if (parameter.module != Module::kQkv) return;
        const at::Tensor rows = values.view({3, 4, -1});  // q, k, v
        rows[0] *= 3;
        rows[1] /= 3;
      });
  const auto difference = [&](Direction direction) {
    const LossLandscapeOptions lines = Lines(direction, 2, 1, 9);
    const at::Tensor a = ArrayIn(LandscapeOf(ModelM(), lines), "losses");
    return (a - ArrayIn(LandscapeOf(other, lines), "losses")).abs().max().item<double>();
  };
  EXPECT_LT(difference(Direction::kFilter), 1e-12);
  EXPECT_GT(difference(Direction::kUnit), 0.01);
  EXPECT_GT(difference(Direction::kLayer), 0.01);
}

TEST(LossLandscapeTest, HasTheEvaluationsLossInItsMiddle) {
  for (const Precision precision : {Precision::kFloat64, Precision::kFloat32}) {
    RunConfig config = ModelM().config;
    config.precision = precision;
    const AnalysisSubject subject = UntrainedSubject(config);
    const AnalysisContext analysis = ContextOf(subject);
    double expected = 0;
    if (precision == Precision::kFloat32) {
      const at::Tensor& values = analysis.subjects[0].values;
      const native::FlatPoint point = {{values.const_data_ptr<float>(), 440}, {}};
      expected =
          (*native::NativeForward::Make(config, point))->Score(analysis.batches[0])->loss / 8;
    } else {
      expected = ScoreOf(analysis.subjects[0], analysis.batches[0], {}).loss / 8;
    }
    const AnalysisResult result = LandscapeOf(subject, Lines(Direction::kRaw, 3, 1, 5));
    EXPECT_EQ(NumberIn(result, "loss"), expected);
    const at::Tensor losses = ArrayIn(result, "losses");
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(losses[i][2].item<double>(), expected);
    const at::Tensor plane = ArrayIn(LandscapeOf(subject, Planes(1, 1, 5)), "losses");
    EXPECT_EQ(plane[0][2][2].item<double>(), expected);
  }
}

TEST(LossLandscapeTest, DrawsADirectionByItsNumberAndEachTensorByItsName) {
  const LossLandscapeOptions one = Lines(Direction::kRaw, 1, 0.5, 4);
  const at::Tensor first = ArrayIn(LandscapeOf(ModelM(), one), "losses");
  const at::Tensor both =
      ArrayIn(LandscapeOf(ModelM(), Lines(Direction::kRaw, 2, 0.5, 4)), "losses");
  EXPECT_TRUE(at::equal(first[0], both[0]));
  EXPECT_FALSE(at::equal(both[0], both[1]));
  const AnalysisResult seeded = Analyzed({one, {ModelM()}, {1000, ""}, 1});
  EXPECT_FALSE(at::equal(first, ArrayIn(seeded, "losses")));

  const AnalysisContext m = ContextOf(ModelM());
  ModelConfig without = m.subjects[0].config.model;
  without.norm.placement = NormPlacement::kNone;
  const ParameterLayout smaller = MakeLayout(without);
  const at::Tensor drawn = NormalVector(m, m.subjects[0].layout, "x");
  const at::Tensor other = NormalVector(m, smaller, "x");
  const ParameterInfo& head = m.subjects[0].layout.parameters.back();
  const ParameterInfo& same = smaller.parameters.back();
  ASSERT_EQ(head.name, same.name);
  EXPECT_NE(head.offset, same.offset);
  EXPECT_TRUE(
      at::equal(drawn.narrow(0, head.offset, head.size), other.narrow(0, same.offset, same.size)));
}

TEST(LossLandscapeTest, DescribesWhatItsArraysHave) {
  for (const uint32_t points : {4u, 5u}) {
    const AnalysisResult result = LandscapeOf(ModelM(), Lines(Direction::kFilter, 3, 1, points));
    const at::Tensor losses = ArrayIn(result, "losses");  // [3, points]
    const at::Tensor alphas = ArrayIn(result, "alphas");
    EXPECT_EQ(alphas[0].item<double>(), -1);
    EXPECT_EQ(alphas[points - 1].item<double>(), 1);
    const at::Tensor range = losses.amax(1) - losses.amin(1);
    EXPECT_DOUBLE_EQ(NumberIn(result, "range"), range.median().item<double>());
    const double loss = NumberIn(result, "loss");
    const at::Tensor rise = (losses.select(1, 0) + losses.select(1, points - 1)) / 2 - loss;
    EXPECT_NEAR(NumberIn(result, "rise"), rise.median().item<double>(), 1e-12);
    const int64_t left = 1, right = points - 2;
    const double step = alphas[right].item<double>();
    const at::Tensor curvature =
        (losses.select(1, left) + losses.select(1, right) - 2 * loss) / (step * step);
    EXPECT_NEAR(NumberIn(result, "curvature"), curvature.median().item<double>(), 1e-9);
    EXPECT_EQ(NumberIn(result, "lowest"), losses.min().item<double>());
    EXPECT_EQ(NumberIn(result, "holes"), 0);
  }
}

// Returns the exact second derivative of M's loss along a direction: dᵀHd.
double SecondDerivative(const at::Tensor& direction) {
  const AnalysisContext m = ContextOf(ModelM());
  const auto gradient = [&](double at) {
    at::Tensor values = m.subjects[0].values.add(direction, at).detach().requires_grad_();
    (PlainModel(m.subjects[0].config, values, {}).Evaluate(m.batches[0]).loss / 8).backward();
    return values.grad().dot(direction).item<double>();
  };
  constexpr double kStep = 1e-5;
  return (gradient(kStep) - gradient(-kStep)) / (2 * kStep);
}

TEST(LossLandscapeTest, HasTheHessiansCurvatureWhereItsPointsAreClose) {
  const AnalysisContext m = ContextOf(ModelM());
  std::vector<double> along;
  for (const char* name : {"loss_landscape/0", "loss_landscape/1"}) {
    const SubjectModel& subject = m.subjects[0];
    along.push_back(
        SecondDerivative(ScaledDirection(Direction::kFilter, subject.layout, subject.values,
                                         NormalVector(m, subject.layout, name))));
  }
  const AnalysisResult line = LandscapeOf(ModelM(), Lines(Direction::kFilter, 1, 1e-4, 3));
  EXPECT_NEAR(NumberIn(line, "curvature"), along[0], 1e-3 * std::abs(along[0]));
  const double mean = (along[0] + along[1]) / 2;
  for (const uint32_t points : {2u, 3u}) {
    const AnalysisResult plane = LandscapeOf(ModelM(), Planes(1, 1e-4, points));
    EXPECT_NEAR(NumberIn(plane, "curvature"), mean, 1e-3 * std::abs(mean)) << points;
  }
}

TEST(LossLandscapeTest, HasHolesWhereTheLossIsNotFinite) {
  RunConfig config = ModelM().config;
  config.precision = Precision::kFloat32;
  config.model.norm.placement = NormPlacement::kNone;
  config.model.norm.final = false;
  const AnalysisResult result =
      LandscapeOf(UntrainedSubject(config), Lines(Direction::kRaw, 1, 1e30, 3));
  EXPECT_GT(NumberIn(result, "loss"), 0);
  EXPECT_EQ(NumberIn(result, "holes"), 2);
  ExpectUndefined(result, Undefined::kNonFinite, {"range", "lowest"});
  EXPECT_TRUE(ArrayIn(result, "losses")[0][0].isnan().item<bool>());

  AnalysisSubject diverged = ModelM();
  diverged.checkpoint = CheckpointOf(diverged.config, at::full({440}, NAN, at::kDouble));
  const AnalysisResult nothing = LandscapeOf(diverged, Lines(Direction::kUnit, 1, 1, 2));
  EXPECT_EQ(ReasonIn(nothing, "loss"), Undefined::kNonFinite);
  EXPECT_EQ(NumberIn(nothing, "holes"), 2);
}

TEST(LossLandscapeTest, IsUndefinedWithoutTargets) {
  const AnalysisResult result = Analyzed({Lines(Direction::kUnit, 1, 1, 2), {ModelM()}, {0, "a"}});
  ExpectUndefined(result, Undefined::kTooFewTokens, {"loss", "holes"});
}

TEST(LossLandscapeTest, IsAsBeforeWhereAPieceWasStopped) {
  ExpectNothingOfWhatWasStopped(Lines(Direction::kFilter, 2, 1, 3),
                                DrawnContext(2, Precision::kFloat64));
}

// Compares the whole computation, batch by batch, with the plain model at the same points.
void CompareLandscapes(uint64_t number, Precision precision, double tolerance) {
  const AnalysisContext analysis = DrawnContext(number, precision);
  const SubjectModel& subject = analysis.subjects[0];
  const LossLandscapeOptions options = {static_cast<Direction>(number % 4), 2, 1, 0.3, 2};
  const AnalysisResult result = ComputedFrom(options, analysis);
  const auto axis = [&](const char* name) {
    return ScaledDirection(options.direction, subject.layout, subject.values,
                           NormalVector(analysis, subject.layout, name));
  };
  const at::Tensor values = subject.values.to(at::kDouble);
  const auto loss = [&](double alpha, double beta) {
    const at::Tensor at =
        values + alpha * axis("loss_landscape/0") + beta * axis("loss_landscape/1");
    return PlainMeanLoss(analysis, subject, at).item<double>();
  };
  const auto expect = [&](double made, double expected) {
    EXPECT_NEAR(made, expected, tolerance * std::max(1.0, expected)) << "setting " << number;
  };
  const at::Tensor losses = ArrayIn(result, "losses");
  expect(NumberIn(result, "loss"), loss(0, 0));
  expect(losses[0][0][0].item<double>(), loss(-0.3, -0.3));
  expect(losses[0][0][1].item<double>(), loss(-0.3, 0.3));
  expect(losses[0][1][0].item<double>(), loss(0.3, -0.3));
}

TEST(LossLandscapeTest, AgreesWithAPlainModelOnDrawnSettings) {
  int native = 0;
  for (uint64_t number = 0; number < 24; ++number) {
    CompareLandscapes(number, Precision::kFloat64, 1e-9);
    CompareLandscapes(number, Precision::kFloat32, 1e-5);
    native += WhyNotNative(DrawnContext(number, Precision::kFloat32).subjects[0].config).empty();
  }
  EXPECT_GT(native, 10);
  EXPECT_LT(native, 24);
}

TEST(LossLandscapeTest, ReadsRecallAtItsLastPositions) {
  RunConfig config;
  config.task = RecallTask{4, 4, 4};
  config.model.vocabulary = 24;
  config.model.loss = LossPositions::kLast;
  config.model.context = 5;
  config.model.layers = 1;
  config.model.width = 8;
  config.model.heads = 2;
  config.model.hidden = 8;
  config.evaluation.batches = 1;
  config.training.batch = 4;
  const AnalysisSubject subject = UntrainedSubject(config);
  const Score sum = ScoreOfAll(ContextOf(subject));
  const AnalysisResult result = LandscapeOf(subject, Lines(Direction::kFilter, 1, 1, 2));
  EXPECT_NEAR(NumberIn(result, "loss"), sum.loss / sum.targets, 1e-5);
}

}  // namespace
}  // namespace ablate::engine
