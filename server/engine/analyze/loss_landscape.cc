// Computes the loss on lines and planes in parameter space around a model (Li et al. 2018).
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/large_vectors.h"
#include "server/engine/analyze/moved_model.h"
#include "server/engine/analyze/parameter_draws.h"

namespace ablate::engine {
namespace {

constexpr double kHole = std::numeric_limits<double>::quiet_NaN();

// The points of a line or a plane, row by row, with the model in the middle. Along an axis they are
// at −(n − 1), −(n − 3) … n − 1 half steps, so that both sides have equal distances.
class LandscapeGrid {
 public:
  LandscapeGrid(uint32_t dims, uint32_t points, double radius)
      : dims_(dims), points_(points), half_step_(radius / (points - 1.0)) {}

  int64_t size() const { return dims_ == 1 ? points_ : points_ * points_; }

  // Returns the half steps from the middle along each axis.
  std::vector<int64_t> StepsTo(int64_t point) const {
    std::vector<int64_t> steps;
    if (dims_ == 2) steps.push_back(2 * (point / points_) - (points_ - 1));
    steps.push_back(2 * (point % points_) - (points_ - 1));
    return steps;
  }

  double Coordinate(int64_t steps) const { return half_step_ * static_cast<double>(steps); }

  bool OnEdge(int64_t point) const {
    const std::vector<int64_t> steps = StepsTo(point);
    return std::any_of(steps.begin(), steps.end(),
                       [&](int64_t along) { return std::abs(along) == points_ - 1; });
  }

  // Returns the squared distance, in half steps.
  int64_t SquaredDistance(int64_t point) const {
    int64_t sum = 0;
    for (const int64_t along : StepsTo(point)) sum += along * along;
    return sum;
  }

 private:
  const int64_t dims_;
  const int64_t points_;
  const double half_step_;
};

// Summarises the losses on one grid, with the loss in its middle.
struct GridShape {
  double range = 0;  // largest − smallest
  double rise = 0;   // mean on the edge − middle
  // The mean second derivative along the axes, from the points next to the middle. The mean of a
  // quadratic over these is its middle value + curvature·distance²/2, even if an even number of
  // points per side leaves none on an axis.
  double curvature = 0;
};

GridShape ShapeOf(const LandscapeGrid& grid, absl::Span<const double> losses, double middle) {
  int64_t nearest = std::numeric_limits<int64_t>::max();
  for (int64_t i = 0; i < grid.size(); ++i) {
    const int64_t distance = grid.SquaredDistance(i);
    if (distance > 0) nearest = std::min(nearest, distance);
  }
  double edge = 0, edges = 0, near = 0, nears = 0;
  for (int64_t i = 0; i < grid.size(); ++i) {
    const double rise = losses[static_cast<size_t>(i)] - middle;
    if (grid.OnEdge(i)) edge += rise, ++edges;
    if (grid.SquaredDistance(i) == nearest) near += rise, ++nears;
  }
  const auto [least, most] = std::minmax_element(losses.begin(), losses.end());
  const double squared = std::pow(grid.Coordinate(1), 2) * static_cast<double>(nearest);
  return {*most - *least, edge / edges, 2 * (near / nears) / squared};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

class LossLandscape : public Computation {
 public:
  LossLandscape(const LossLandscapeOptions& options, const AnalysisContext& analysis,
                MovedModel model)
      : options_(options),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        targets_(TargetsIn(analysis.batches)),
        grid_(options.dims, options.points, options.radius),
        model_(std::move(model)),
        middle_(at::zeros({1}, at::kDouble)),
        sums_(at::zeros({options.directions, grid_.size()}, at::kDouble)),
        norms_(at::zeros({options.directions, options.dims}, at::kDouble)) {}

  // The middle, then grid by grid; each point batch by batch.
  int64_t pieces() const override { return (1 + sums_.numel()) * analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const int64_t point = piece / analysis_.batch_count() - 1;  // −1: the middle
    if (point >= 0 && grid_.SquaredDistance(point % grid_.size()) == 0) {
      CheckStop(analysis_);
      sums_.mutable_data_ptr<double>()[point] = middle_.item<double>();  // no need to compute again
      return;
    }
    MoveTo(point);
    const double loss = model_.Loss(analysis_.Batch(piece % analysis_.batch_count()));
    if (point < 0) {
      middle_.mutable_data_ptr<double>()[0] += loss;
      return;
    }
    sums_.mutable_data_ptr<double>()[point] += loss;
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      norms_.mutable_data_ptr<double>()[drawn_ * options_.dims + axis] = axis_norms_[axis];
    }
  }

  std::vector<StateTensor> State() override {
    return {{"middle", middle_}, {"sums", sums_}, {"norms", norms_}};
  }

  AnalysisResult Finish() override {
    const double loss = middle_.item<double>() / targets_;
    at::Tensor losses = sums_ / targets_;  // [directions, points]
    const int64_t holes = losses.isfinite().logical_not().sum().item<int64_t>();
    losses = losses.masked_fill(losses.isfinite().logical_not(), kHole);
    AnalysisResult result;
    AddNumbers(loss, losses, holes, &result);
    AddArrays(losses, &result);
    result.notes.push_back(absl::StrCat("of ", analysis_.tokens, " tokens"));
    if (std::isfinite(loss)) {
      const double eps = subject_.values.scalar_type() == at::kDouble
                             ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
      result.notes.push_back(
          absl::StrCat("differences in loss below about ", eps * loss, " are rounding"));
    }
    return result;
  }

 private:
  // Moves to a point. The result doesn't depend on earlier moves.
  void MoveTo(int64_t point) {
    if (point == at_) return;
    at_ = kNowhere;
    at::Tensor to = model_.values();
    if (point < 0) {
      to.copy_(subject_.values);
    } else {
      DrawAxes(point / grid_.size());
      const std::vector<int64_t> steps = grid_.StepsTo(point % grid_.size());
      at::add_out(to, subject_.values, axes_[0], grid_.Coordinate(steps[0]));
      if (axes_.size() > 1) to.add_(axes_[1], grid_.Coordinate(steps[1]));
    }
    at_ = point;
  }

  void DrawAxes(int64_t grid) {
    if (grid == drawn_) return;
    drawn_ = kNowhere;
    axes_.clear();
    axis_norms_.clear();
    for (uint32_t axis = 0; axis < options_.dims; ++axis) {
      const std::string name = absl::StrCat("loss_landscape/", grid * options_.dims + axis);
      const at::Tensor direction = ScaledDirection(
          options_.direction, subject_.layout, subject_.values,
          NormalVector(analysis_, subject_.layout, name, subject_.values.options()));
      axis_norms_.push_back(NormOf(direction));
      axes_.push_back(direction);
    }
    drawn_ = grid;
  }

  void AddNumbers(double loss, const at::Tensor& losses, int64_t holes,
                  AnalysisResult* result) const {
    std::vector<double> ranges, rises, curvatures;
    const auto points = static_cast<size_t>(grid_.size());
    for (int64_t i = 0; i < losses.size(0); ++i) {
      const GridShape shape =
          ShapeOf(grid_, {losses.const_data_ptr<double>() + i * losses.size(1), points}, loss);
      ranges.push_back(shape.range);
      rises.push_back(shape.rise);
      curvatures.push_back(shape.curvature);
    }
    const auto add = [&](const char* name, bool defined, double value) {
      std::optional<Undefined> undefined = WithoutTargets(targets_);
      if (!undefined && !defined) undefined = Undefined::kNonFinite;
      result->numbers.push_back(NumberOf(name, value, undefined));
    };
    const bool whole = holes == 0 && std::isfinite(loss);
    add("loss", true, loss);
    add("range", whole, whole ? Median(ranges) : 0);
    add("rise", whole, whole ? Median(rises) : 0);
    add("curvature", whole, whole ? Median(curvatures) : 0);
    add("lowest", whole, losses.min().item<double>());
    add("holes", true, static_cast<double>(holes));
  }

  void AddArrays(const at::Tensor& losses, AnalysisResult* result) const {
    const at::Tensor alphas = at::empty({options_.points}, at::kDouble);
    for (int64_t i = 0; i < alphas.numel(); ++i) {
      alphas[i] = grid_.Coordinate(2 * i - (alphas.numel() - 1));
    }
    if (options_.dims == 1) {
      result->arrays.push_back(ArrayOf("losses", {"direction", "alpha"}, losses));
      result->arrays.push_back(ArrayOf("norms", {"direction"}, norms_.squeeze(1)));
    } else {
      result->arrays.push_back(ArrayOf("losses", {"plane", "alpha", "beta"},
                                       losses.view({-1, options_.points, options_.points})));
      result->arrays.push_back(ArrayOf("norms", {"plane", "axis"}, norms_));
    }
    result->arrays.push_back(ArrayOf("alphas", {"alpha"}, alphas));
  }

  static constexpr int64_t kNowhere = -2;

  const LossLandscapeOptions options_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  const double targets_;
  const LandscapeGrid grid_;
  MovedModel model_;
  int64_t at_ = kNowhere;           // the model's current point
  int64_t drawn_ = kNowhere;        // the grid that the axes belong to
  std::vector<at::Tensor> axes_;    // [P] each, in the subject's precision
  std::vector<double> axis_norms_;  // of each
  at::Tensor middle_;               // [1], loss summed over targets
  at::Tensor sums_;                 // [directions, points], losses summed over targets
  at::Tensor norms_;                // [directions, dims]
};

}  // namespace

MadeComputation Compute(const LossLandscapeOptions& options, const AnalysisContext& analysis) {
  ASSIGN_OR_RETURN(MovedModel model, MovedModel::Make(analysis, analysis.subjects[0]));
  return std::make_unique<LossLandscape>(options, analysis, std::move(model));
}

}  // namespace ablate::engine
