#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/engine/analyze/checkpoint_plane.h"
#include "server/engine/analyze/computation.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_model.h"
#include "tests/engine/analyze/small_models.h"
#include "tests/engine/analyze/stops.h"

namespace ablate::engine {
namespace {

using ::testing::HasSubstr;

// The plane of points [P], with its axes.
struct Found {
  CheckpointPlane plane;
  at::Tensor axes;
};

Found PlaneThrough(const std::vector<at::Tensor>& points) {
  const auto others = static_cast<int64_t>(points.size()) - 1;
  const int64_t size = points.back().numel(), half = size / 2;
  const at::Tensor gram = at::zeros({others, others}, at::kDouble);
  for (int64_t row = 0; row < others; ++row) {
    AddProducts(points, row, 0, half, gram);
    AddProducts(points, row, half, size - half, gram);
  }
  Found found;
  found.plane = PlaneOf(gram);
  found.axes = MakeAxes(
      points, [] {}, &found.plane);
  return found;
}

double ShareOf(const CheckpointPlane& plane, size_t axis) {
  return plane.along[axis] / plane.squares;
}

// Points R(70 + k)·(4 − k)/4 of six elements; the last one is 0.
TEST(TrajectoryTest, GivesTheOraclesPlane) {
  std::vector<at::Tensor> points;
  for (uint64_t k = 0; k < 5; ++k) {
    points.push_back(R(70 + k, {6}) * ((4.0 - static_cast<double>(k)) / 4));
  }
  const Found found = PlaneThrough(points);
  ExpectOracle(ShareOf(found.plane, 0), 0.6314155475);
  ExpectOracle(ShareOf(found.plane, 1), 0.2608966831);
  ExpectOracle(found.plane.coordinates[0][0].item<double>(), 1.363907472);
  ExpectOracle(found.plane.coordinates[0][1].item<double>(), 0.3787352828);
  EXPECT_DOUBLE_EQ(found.plane.displacement, points[0].norm().item<double>());
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(found.plane.distances[k], (points[k] - points[k + 1]).norm().item<double>(), 1e-12);
  }
}

TEST(TrajectoryTest, HasOrthonormalAxesOnWhichTheCoordinatesAreProjections) {
  std::vector<at::Tensor> points;
  for (uint64_t k = 0; k < 12; ++k) {
    points.push_back((R(k, {500}) * 1e-3 + R(99, {500}) * static_cast<double>(k)).to(at::kFloat));
  }
  const Found found = PlaneThrough(points);
  const at::Tensor products = found.axes.mm(found.axes.t()) - at::eye(2, at::kDouble);
  EXPECT_LT(products.abs().max().item<double>(), 1e-12);
  for (int64_t k = 0; k < 12; ++k) {
    const at::Tensor difference =
        points[static_cast<size_t>(k)].to(at::kDouble) - points.back().to(at::kDouble);
    const at::Tensor projected = found.axes.mv(difference);
    EXPECT_LT((projected - found.plane.coordinates[k]).abs().max().item<double>(), 1e-9) << k;
  }
  for (const int64_t axis : {0, 1}) {
    EXPECT_GT(found.axes[axis][found.axes[axis].abs().argmax()].item<double>(), 0);
  }
}

// Returns subjects like a run's checkpoints: parameters at some distance from the model's, in their
// precision.
std::vector<AnalysisSubject> CheckpointsNear(const AnalysisSubject& subject, int count) {
  const SubjectModel model = *ReadSubject(subject.config, subject.checkpoint);
  std::vector<AnalysisSubject> checkpoints;
  for (int k = 0; k < count; ++k) {
    const double far = 0.1 * (count - 1 - k);
    const at::Tensor way = R(300 + static_cast<uint64_t>(k), {model.layout.size}) * far;
    checkpoints.push_back(
        {subject.config,
         CheckpointOf(subject.config, (model.values + way.to(model.values.scalar_type())),
                      model.buffers)});
  }
  return checkpoints;
}

AnalysisResult TrajectoryOf(std::vector<AnalysisSubject> subjects, uint32_t points) {
  return Analyzed({TrajectoryOptions{points}, std::move(subjects), {60, ""}});
}

// Compares with the singular vectors of the checkpoints' differences, and with the plain model on
// the plane.
void CompareWithThePlainModel(uint64_t number) {
  const AnalysisSubject subject = DrawnSubject(number);
  const Precision precision = subject.config.precision;
  const std::vector<AnalysisSubject> subjects = CheckpointsNear(subject, 5);
  const AnalysisContext analysis = *ReadAnalysisContext({TrajectoryOptions{}, subjects, {60, ""}});
  const AnalysisResult result = TrajectoryOf(subjects, 3);
  std::vector<at::Tensor> rows;
  const at::Tensor last = analysis.subjects.back().values.to(at::kDouble);
  for (const SubjectModel& of : analysis.subjects) {
    rows.push_back(of.values.to(at::kDouble) - last);
  }
  const at::Tensor differences = at::stack(rows);
  const auto [u, s, vt] = at::linalg_svd(differences, false);
  const at::Tensor squares = s.square();
  ExpectNearIn(Precision::kFloat64, NumberIn(result, "explained_share/axis.1"),
               (squares[1] / squares.sum()).item<double>(), 1);
  std::vector<at::Tensor> axes;
  for (const int64_t axis : {0, 1}) {
    axes.push_back(vt[axis] * vt[axis][vt[axis].abs().argmax()].sign());
    const at::Tensor coordinates = differences.mv(axes.back());
    const at::Tensor way = ArrayIn(result, "way").select(1, axis);
    EXPECT_LT((way - coordinates).abs().max().item<double>(), 1e-9);
  }
  const auto loss = [&](const SubjectModel& of, const at::Tensor& values) {
    return PlainMeanLoss(analysis, of, values).item<double>();
  };
  const at::Tensor way_losses = ArrayIn(result, "way_losses");
  for (int64_t k = 0; k < 5; ++k) {
    const SubjectModel& of = analysis.subjects[static_cast<size_t>(k)];
    ExpectNearIn(precision, way_losses[k].item<double>(), loss(of, of.values.to(at::kDouble)), 1);
  }
  EXPECT_EQ(NumberIn(result, "loss"), way_losses[4].item<double>());
  const at::Tensor alphas = ArrayIn(result, "alphas"), betas = ArrayIn(result, "betas");
  for (const int64_t a : {0, 2}) {
    const at::Tensor at = last + alphas[a] * axes[0] + betas[1] * axes[1];
    ExpectNearIn(precision, ArrayIn(result, "losses")[a][1].item<double>(),
                 loss(analysis.subjects.back(), at), 1);
  }
}

TEST(TrajectoryTest, AgreesWithAPlainModelOnDrawnSettings) {
  for (uint64_t number = 0; number < 24; ++number) {
    SCOPED_TRACE(number);
    CompareWithThePlainModel(number);
  }
}

TEST(TrajectoryTest, ReachesAsFarAsTheCheckpointsAndAMargin) {
  const AnalysisResult result = TrajectoryOf(CheckpointsNear(ModelM(), 4), 5);
  const at::Tensor way = ArrayIn(result, "way");
  EXPECT_TRUE(way[3].eq(0).all().item<bool>());
  int64_t axis = 0;
  for (const char* name : {"alphas", "betas"}) {
    const at::Tensor along = way.select(1, axis++), places = ArrayIn(result, name);
    const double low = along.min().item<double>(), high = along.max().item<double>();
    EXPECT_NEAR(places[0].item<double>(), low - 0.15 * (high - low), 1e-12);
    EXPECT_NEAR(places[4].item<double>(), high + 0.15 * (high - low), 1e-12);
  }
  const at::Tensor losses = ArrayIn(result, "losses");
  EXPECT_EQ(NumberIn(result, "lowest"), losses.min().item<double>());
  EXPECT_EQ(NumberIn(result, "range"), (losses.max() - losses.min()).item<double>());
  EXPECT_EQ(NumberIn(result, "holes"), 0);
}

TEST(TrajectoryTest, HasOneAxisWhereTheCheckpointsLieOnALine) {
  std::vector<AnalysisSubject> line;
  for (const double far : {2.0, 1.0, 0.0}) {
    line.push_back(Changed(ModelM(), [&](const ParameterInfo& parameter, at::Tensor values) {
      values += far * R(5, {440}).narrow(0, parameter.offset, parameter.size);
    }));
  }
  const AnalysisResult result = TrajectoryOf(line, 3);
  EXPECT_NEAR(NumberIn(result, "explained_share/axis.0"), 1, 1e-12);
  EXPECT_EQ(NumberIn(result, "explained_share/axis.1"), 0);
  EXPECT_NEAR(NumberIn(result, "length"), NumberIn(result, "displacement"), 1e-12);
  const at::Tensor losses = ArrayIn(result, "losses");
  EXPECT_TRUE(at::equal(losses.select(1, 0), losses.select(1, 2)));
  EXPECT_THAT(result.notes[1], HasSubstr("lie on a line"));
}

TEST(TrajectoryTest, HasNoSharesWhereNothingMoved) {
  const AnalysisResult result = TrajectoryOf({ModelM(), ModelM(), ModelM()}, 2);
  EXPECT_EQ(ReasonIn(result, "explained_share"), Undefined::kZeroVariance);
  EXPECT_EQ(NumberIn(result, "length"), 0);
  EXPECT_EQ(NumberIn(result, "range"), 0);
  ExpectOracle(NumberIn(result, "lowest"), 2.162577511);
}

TEST(TrajectoryTest, HasNoPlaneWhereACheckpointIsNoNumber) {
  const AnalysisResult result = TrajectoryOf({DivergedModelM(), ModelM(), ModelM()}, 2);
  ExpectOracle(NumberIn(result, "loss"), 2.162577511);
  ExpectUndefined(result, Undefined::kNonFinite, {"explained_share", "length", "range"});
  EXPECT_EQ(NumberIn(result, "holes"), 4);
  EXPECT_TRUE(ArrayIn(result, "alphas").isnan().all().item<bool>());
  EXPECT_TRUE(ArrayIn(result, "way").isnan().all().item<bool>());
}

TEST(TrajectoryTest, RefusesModelsThatAreNoCheckpointsOfOneRun) {
  AnalysisSubject other = ModelM();
  other.config.model.layers = 1;
  other = UntrainedSubject(other.config);
  const auto made = MakeAnalysis({TrajectoryOptions{}, {ModelM(), ModelM(), other}, {60, ""}});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(std::string(made.status().message()),
              HasSubstr("its subjects have different numbers of parameters"));
}

TEST(TrajectoryTest, DoesNotNoticeWhereItIsCut) {
  ExpectSameBitsWhereverItIsCut(
      {TrajectoryOptions{2}, CheckpointsNear(DrawnSubject(2), 3), {60, ""}});
  ExpectSameBitsWhereverItIsCut(
      {TrajectoryOptions{2}, CheckpointsNear(DrawnSubject(3), 4), {60, ""}});
}

TEST(TrajectoryTest, IsAsBeforeWhereAPieceWasStopped) {
  ExpectNothingOfWhatWasStopped(
      TrajectoryOptions{2},
      *ReadAnalysisContext({TrajectoryOptions{}, CheckpointsNear(DrawnSubject(2), 3), {60, ""}}));
}

}  // namespace
}  // namespace ablate::engine
