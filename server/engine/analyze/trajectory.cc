// Computes the loss on a plane fitted to a run's checkpoints, and the path of training in it (Li et
// al. 2018).
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/checkpoint_plane.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/moved_model.h"

namespace ablate::engine {
namespace {

constexpr int64_t kElements = int64_t{1} << 22;  // elements of a checkpoint that a piece multiplies
constexpr double kMargin = 0.15;                 // margin beyond the checkpoints, as a fraction of
                                                 // their range
constexpr double kHole = std::numeric_limits<double>::quiet_NaN();

// Returns the grid's coordinates along an axis: the range of all checkpoints plus a margin, or an
// interval around them if the axis is missing.
at::Tensor PlacesAlong(const at::Tensor& coordinates, uint32_t points) {
  const double low = coordinates.min().item<double>(), high = coordinates.max().item<double>();
  const double margin = high > low ? kMargin * (high - low) : 1;
  return at::linspace(low - margin, high + margin, points, at::kDouble);
}

class Trajectory : public Computation {
 public:
  Trajectory(const TrajectoryOptions& options, const AnalysisContext& analysis)
      : points_(options.points),
        analysis_(analysis),
        targets_(TargetsIn(analysis.batches)),
        checkpoints_(static_cast<int64_t>(analysis.subjects.size())),
        size_(analysis.subjects.back().values.size(0)),
        gram_(at::zeros({checkpoints_ - 1, checkpoints_ - 1}, at::kDouble)),
        way_(at::zeros({checkpoints_}, at::kDouble)),
        sums_(at::zeros({points_, points_}, at::kDouble)) {
    for (const SubjectModel& subject : analysis.subjects) values_.push_back(subject.values);
  }

  // Inner products row by row; then each checkpoint and each point of the plane, batch by batch.
  int64_t pieces() const override {
    return Products() + (checkpoints_ + sums_.numel()) * analysis_.batch_count();
  }

  void Add(int64_t piece) override {
    if (piece < Products()) {
      AddProduct(piece);
      return;
    }
    piece -= Products();
    const int64_t place = piece / analysis_.batch_count();
    const TokenBatch& batch = analysis_.Batch(piece % analysis_.batch_count());
    if (place < checkpoints_) {
      MoveToCheckpoint(place);
      way_.mutable_data_ptr<double>()[place] += model_->Loss(batch);
    } else {
      const double loss = MoveToPoint(place) ? model_->Loss(batch) : kHole;
      sums_.mutable_data_ptr<double>()[place - checkpoints_] += loss;
    }
  }

  std::vector<StateTensor> State() override {
    return {{"gram", gram_}, {"way", way_}, {"sums", sums_}};
  }

  AnalysisResult Finish() override {
    MakePlane();
    at::Tensor losses = sums_ / targets_;
    const int64_t holes = losses.isfinite().logical_not().sum().item<int64_t>();
    losses = losses.masked_fill(losses.isfinite().logical_not(), kHole);
    AnalysisResult result;
    AddNumbers(losses, holes, &result);
    AddArrays(losses, &result);
    AddNotes(&result);
    return result;
  }

 private:
  int64_t PartsOfRow() const { return (size_ + kElements - 1) / kElements; }
  int64_t Products() const { return (checkpoints_ - 1) * PartsOfRow(); }

  // Updates in place as the last operation: nothing can fail once a sum has changed.
  void AddProduct(int64_t piece) {
    CheckStop(analysis_);
    const int64_t row = piece / PartsOfRow(), first = piece % PartsOfRow() * kElements;
    const at::Tensor sums = gram_.clone();
    AddProducts(values_, row, first, std::min(kElements, size_ - first), sums);
    gram_.copy_(sums);
  }

  // Computes the plane once all inner products are known; it depends on these alone.
  void MakePlane() {
    if (plane_.has_value()) return;
    CheckpointPlane plane = PlaneOf(gram_);
    if (plane.finite) {
      axes_ = MakeAxes(
                  values_, [this] { CheckStop(analysis_); }, &plane)
                  .to(values_.back().scalar_type());
      alphas_ = PlacesAlong(plane.coordinates.select(1, 0), points_);
      betas_ = PlacesAlong(plane.coordinates.select(1, 1), points_);
    }
    plane_ = std::move(plane);
  }

  void MoveToCheckpoint(int64_t place) {
    if (at_ == place) return;
    UseModelOf(place);
    at_ = place;
  }

  // Returns false if there is no such point.
  bool MoveToPoint(int64_t place) {
    MakePlane();
    if (!plane_->finite) return false;
    if (at_ == place) return true;
    UseModelOf(checkpoints_ - 1);
    at_ = kNowhere;
    const int64_t point = place - checkpoints_;
    const double alpha = alphas_[point / points_].item<double>();
    const double beta = betas_[point % points_].item<double>();
    at::Tensor to = model_->values();
    at::add_out(to, values_.back(), axes_[0], alpha).add_(axes_[1], beta);
    at_ = place;
    return true;
  }

  // Uses the model of a checkpoint at its own parameters.
  void UseModelOf(int64_t checkpoint) {
    if (model_of_ == checkpoint && model_.has_value()) return;
    at_ = kNowhere;
    model_.reset();
    auto model = MovedModel::Make(analysis_, analysis_.subjects[static_cast<size_t>(checkpoint)]);
    if (absl::IsResourceExhausted(model.status())) throw std::bad_alloc();
    TORCH_CHECK(model.ok(), model.status().message());
    model_.emplace(*std::move(model));
    model_of_ = checkpoint;
  }

  void AddNumbers(const at::Tensor& losses, int64_t holes, AnalysisResult* result) const {
    std::vector<AnalysisNumber>& numbers = result->numbers;
    const bool reads = targets_ > 0;
    const auto add_loss = [&](const char* name, double value) {
      numbers.push_back(NumberOf(name, value, WithoutTargets(targets_)));
    };
    add_loss("loss", (way_[-1] / targets_).item<double>());
    AddShares(&numbers);
    double length = 0;
    for (const double distance : plane_->distances) length += distance;
    numbers.push_back(NumberOf("length", plane_->finite ? length : kHole));
    numbers.push_back(NumberOf("displacement", plane_->finite ? plane_->displacement : kHole));
    const bool whole = reads && holes == 0;
    add_loss("range", whole ? (losses.max() - losses.min()).item<double>() : kHole);
    add_loss("lowest", whole ? losses.min().item<double>() : kHole);
    add_loss("holes", static_cast<double>(holes));
  }

  // Returns the fraction of the squared distances along an axis; NaN if there are none.
  double Share(size_t axis) const {
    return plane_->finite ? plane_->along[axis] / plane_->squares : kHole;
  }

  void AddShares(std::vector<AnalysisNumber>* numbers) const {
    const auto add = [&](std::string name, double fraction) {
      std::optional<Undefined> undefined;
      if (plane_->finite && plane_->squares == 0) undefined = Undefined::kZeroVariance;
      numbers->push_back(NumberOf(std::move(name), fraction, undefined));
    };
    add("explained_share", Share(0) + Share(1));
    add("explained_share/axis.0", Share(0));
    add("explained_share/axis.1", Share(1));
  }

  void AddArrays(const at::Tensor& losses, AnalysisResult* result) const {
    const auto or_nothing = [](const at::Tensor& values, at::IntArrayRef shape) {
      return values.defined() ? values : at::full(shape, kHole, at::kDouble);
    };
    const auto add = [&](const char* name, std::vector<std::string> axes,
                         const at::Tensor& values) {
      result->arrays.push_back(ArrayOf(name, std::move(axes), values.contiguous()));
    };
    add("losses", {"alpha", "beta"}, losses);
    add("alphas", {"alpha"}, or_nothing(alphas_, {points_}));
    add("betas", {"beta"}, or_nothing(betas_, {points_}));
    add("way", {"subject", "axis"}, or_nothing(plane_->coordinates, {checkpoints_, 2}));
    add("way_losses", {"subject"}, way_ / targets_);
    add("explained_shares", {"axis"}, at::tensor({Share(0), Share(1)}, at::kDouble));
  }

  void AddNotes(AnalysisResult* result) const {
    result->notes.push_back(
        absl::StrCat("of ", checkpoints_, " checkpoints and ", analysis_.tokens, " tokens"));
    if (!plane_->finite) {
      result->notes.emplace_back("a checkpoint has parameters that are not finite");
    } else if (plane_->along[1] == 0) {
      result->notes.push_back(absl::StrCat(
          "the checkpoints ", plane_->along[0] == 0 ? "are one point" : "lie on a line",
          ": nothing changes along ", plane_->along[0] == 0 ? "either axis" : "the second axis"));
    }
    if (analysis_.subjects.back().config.model.norm.kind == NormKind::kBatch) {
      result->notes.emplace_back(
          "running statistics on the plane are those of the last checkpoint");
    }
  }

  static constexpr int64_t kNowhere = -1;

  const int64_t points_;
  const AnalysisContext& analysis_;
  const double targets_;
  const int64_t checkpoints_;
  const int64_t size_;              // P
  std::vector<at::Tensor> values_;  // [P], by checkpoint
  std::optional<CheckpointPlane> plane_;
  at::Tensor axes_;            // [2, P], in the precision of the checkpoints
  at::Tensor alphas_, betas_;  // [points]
  std::optional<MovedModel> model_;
  int64_t model_of_ = kNowhere;  // a checkpoint
  int64_t at_ = kNowhere;        // the model's current place
  at::Tensor gram_;              // of the checkpoints' differences from the last one
  at::Tensor way_;               // [K], losses of the checkpoints, summed over targets
  at::Tensor sums_;              // [points, points], losses on the plane, summed over targets
};

}  // namespace

MadeComputation Compute(const TrajectoryOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<Trajectory>(options, analysis);
}

}  // namespace ablate::engine
