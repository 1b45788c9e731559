// Measures a model's predictions: their calibration, their entropy, and their loss over the
// positions of a sequence and in each sequence.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/sequence_sums.h"
#include "server/engine/analyze/target_logits.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

constexpr double kNoMean = std::numeric_limits<double>::quiet_NaN();

// Sums over all targets.
enum PredictionSum { kLossSum, kCorrectSum, kConfidenceSum, kEntropySum, kPredictionSums };
// Sums over the targets of a bin.
enum BinSum { kBinConfidence, kBinCorrect, kBinTargets, kBinSums };
// Sums over the targets of a position.
enum PositionSum { kPositionLoss, kPositionTargets, kPositionSums };
// Sums over sequences with two edges: the losses of an edge, and the sequences.
enum EdgeSum { kEarlyLoss, kLateLoss, kEdgeSequences, kEdgeSums };

// Values of each target of a batch that counts, [n] float64, the host's.
struct TargetValues {
  at::Tensor loss;
  at::Tensor correct;  // 1 or 0
  at::Tensor confidence;
  at::Tensor entropy;
};

int64_t LongestRead(const std::vector<TokenBatch>& batches) {
  int64_t longest = 1;
  for (const TokenBatch& batch : batches) longest = std::max(longest, batch.length);
  return longest;
}

class Predictions : public Computation {
 public:
  Predictions(const PredictionsOptions& options, const AnalysisContext& analysis)
      : analysis_(analysis),
        subject_(analysis.subjects[0]),
        longest_(LongestRead(analysis.batches)),
        edge_(options.edge > 0 ? options.edge : std::max<int64_t>(1, longest_ / 4)),
        sums_(at::zeros({kPredictionSums}, at::kDouble)),
        bins_(at::zeros({kBinSums, options.bins}, at::kDouble)),
        positions_(at::zeros({kPositionSums, longest_}, at::kDouble)),
        edges_(at::zeros({kEdgeSums}, at::kDouble)),
        by_sequence_(analysis.batches, {"loss", "accuracy"}) {}

  int64_t pieces() const override { return analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const at::NoGradGuard no_grad;
    const BatchTensors batch = BatchOf(subject_, analysis_.Batch(piece));
    const CountedTargets on_device = CountedTargetsOf(batch);
    const TargetValues values = ValuesOf(batch, on_device);
    const CountedTargets counted = OnHost(on_device);
    const at::Tensor one = at::ones_like(values.loss);
    // NaN is in no bin, but its sums are NaN anyway.
    const auto bins = static_cast<double>(bins_.size(1));
    const at::Tensor bin = ((values.confidence.nan_to_num() * bins).ceil() - 1)
                               .clamp(0, bins - 1)
                               .to(at::kLong);  // [n]
    const at::Tensor edges = EdgesOf(batch, counted, values.loss);

    sums_ += at::stack(
        {values.loss.sum(), values.correct.sum(), values.confidence.sum(), values.entropy.sum()});
    bins_.index_add_(1, bin, at::stack({values.confidence, values.correct, one}));
    positions_.index_add_(1, counted.positions, at::stack({values.loss, one}));
    edges_ += edges;
    by_sequence_.Add(piece, counted.rows, {values.loss, values.correct});
  }

  std::vector<StateTensor> State() override {
    return {{"sums", sums_},
            {"bins", bins_},
            {"positions", positions_},
            {"edges", edges_},
            by_sequence_.State()};
  }

  AnalysisResult Finish() override {
    const double targets = TargetsIn(analysis_.batches);
    const std::optional<Undefined> undefined = WithoutTargets(targets);
    const double loss = sums_[kLossSum].item<double>() / targets;
    AnalysisResult result;
    const auto add = [&](const std::string& name, double value,
                         const std::optional<Undefined>& reason) {
      result.numbers.push_back(NumberOf(name, value, reason));
    };
    // Without a loss there is no most likely token, although argmax returns one.
    const double if_finite = std::isfinite(loss) ? 1 : kNoMean;
    const auto mean = [&](PredictionSum of) {
      return if_finite * sums_[of].item<double>() / targets;
    };
    add("loss", loss, undefined);
    add("accuracy", mean(kCorrectSum), undefined);
    add("confidence", mean(kConfidenceSum), undefined);
    add("entropy", mean(kEntropySum), undefined);
    const at::Tensor gaps = (bins_[kBinCorrect] - bins_[kBinConfidence]).abs();  // [bins]
    add("calibration_error", if_finite * gaps.sum().item<double>() / targets, undefined);

    const double sequences = edges_[kEdgeSequences].item<double>();
    const std::optional<Undefined> no_edges = WithoutTargets(sequences);
    const double in_edge = sequences * static_cast<double>(edge_);
    const double early = edges_[kEarlyLoss].item<double>() / in_edge;
    const double late = edges_[kLateLoss].item<double>() / in_edge;
    add("early_loss", early, no_edges);
    add("late_loss", late, no_edges);
    add("in_context_loss", late - early, no_edges);

    if (!undefined.has_value()) AddArrays(&result);
    AddNotes(sequences, &result);
    return result;
  }

 private:
  TargetValues ValuesOf(const BatchTensors& batch, const CountedTargets& counted) const {
    const Hooks hooks = HooksOf(analysis_, subject_.config.model, {});
    const at::Tensor all =
        Logits(subject_.config.model, subject_.parameters, batch, {.hooks = &hooks});  // [N, V]
    const int64_t targets = counted.targets.numel();
    const at::TensorOptions exact = all.options().dtype(at::kDouble);
    TargetValues values = {at::empty({targets}, exact), at::empty({targets}, exact),
                           at::empty({targets}, exact), at::empty({targets}, exact)};
    const auto fill = [&](int64_t first, int64_t count) {
      CheckStop(analysis_);
      const auto put = [&](const at::Tensor& to, const at::Tensor& from) {
        to.narrow(0, first, count).copy_(from);
      };
      const at::Tensor logits =
          all.index_select(0, counted.places.narrow(0, first, count)).to(at::kDouble);
      const at::Tensor target = counted.targets.narrow(0, first, count);
      const at::Tensor log_p = LogProbabilities(logits);  // [count, V]
      const at::Tensor p = log_p.exp();                   // [count, V]
      put(values.loss, LossesOf(log_p, target));
      put(values.correct, logits.argmax(-1).eq(target));
      put(values.confidence, p.amax(-1));
      put(values.entropy, -(p * log_p).sum(-1));
    };
    VisitTargetChunks(targets, subject_.config.model.vocabulary, fill);
    return {OnHost(values.loss), OnHost(values.correct), OnHost(values.confidence),
            OnHost(values.entropy)};
  }

  // Returns the sums [kEdgeSums] over the sequences of a batch with at least 2·edge targets.
  at::Tensor EdgesOf(const BatchTensors& batch, const CountedTargets& counted,
                     const at::Tensor& losses) const {
    std::vector<std::vector<double>> rows(static_cast<size_t>(batch.rows));
    const auto row = counted.rows.accessor<int64_t, 1>();
    const auto loss = losses.accessor<double, 1>();
    for (int64_t i = 0; i < loss.size(0); ++i) {
      rows[static_cast<size_t>(row[i])].push_back(loss[i]);
    }
    double early = 0, late = 0, sequences = 0;
    const auto edge = static_cast<size_t>(edge_);
    for (const std::vector<double>& of : rows) {
      if (of.size() < 2 * edge) continue;
      for (size_t i = 0; i < edge; ++i) {
        early += of[i];
        late += of[of.size() - edge + i];
      }
      ++sequences;
    }
    return at::tensor({early, late, sequences}, at::kDouble);
  }

  void AddArrays(AnalysisResult* result) const {
    const at::Tensor seen = positions_[kPositionTargets], held = bins_[kBinTargets];
    const auto add = [&](const char* name, const char* axis, const at::Tensor& values) {
      result->arrays.push_back(ArrayOf(name, {axis}, values));
    };
    add("loss_by_position", "position", positions_[kPositionLoss] / seen);  // NaN if there is none
    add("targets_by_position", "position", seen.to(at::kLong));
    add("bin_confidence", "bin", bins_[kBinConfidence] / held);
    add("bin_accuracy", "bin", bins_[kBinCorrect] / held);
    add("bin_targets", "bin", held.to(at::kLong));
    by_sequence_.AddArrays(result);
  }

  void AddNotes(double sequences, AnalysisResult* result) const {
    int64_t read = 0;
    for (const TokenBatch& batch : analysis_.batches) read += batch.rows;
    if (sequences == static_cast<double>(read)) return;
    result->notes.push_back(absl::StrCat(
        "early_loss and late_loss are of the ", static_cast<int64_t>(sequences), " of ", read,
        " sequences that have at least ", 2 * edge_, " targets, twice the edge"));
  }

  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  const int64_t longest_;  // tokens of the longest sequence
  const int64_t edge_;     // targets at either end of a sequence
  at::Tensor sums_;        // [kPredictionSums]
  at::Tensor bins_;        // [kBinSums, bins]
  at::Tensor positions_;   // [kPositionSums, longest_]
  at::Tensor edges_;       // [kEdgeSums]
  SequenceSums by_sequence_;
};

}  // namespace

MadeComputation Compute(const PredictionsOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<Predictions>(options, analysis);
}

}  // namespace ablate::engine
