// Applies a model's final norm and head to the residual stream at each depth, and compares these
// predictions with the targets and with the model's own.
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/norms.h"
#include "server/engine/analyze/target_logits.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/norm.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

// Sums over targets at one depth.
enum LensSum { kLensLoss, kLensCorrect, kLensDivergence, kLensAgreement, kLensSums };
constexpr const char* kLensNames[kLensSums] = {"loss", "accuracy", "divergence", "agreement"};

// The residual stream at each depth and the model's logits, at the predictions of a batch that
// count.
struct Streams {
  CountedTargets counted;
  std::vector<at::Tensor> at;  // by depth, [n, d]
  at::Tensor logits;           // [N, V]
};

// Returns the predictions of one kind of statistics from the stream at any depth.
class Lens {
 public:
  // `last` is the last block's output at the same predictions, [n, d].
  Lens(LensStatistics statistics, const SubjectModel& subject, const at::Tensor& last)
      : subject_(subject), norm_{subject.config.model.norm, Statistics::kRunning, {}, {}} {
    const NormConfig& norm = norm_.config;
    cached_ = norm.final && norm.kind != NormKind::kBatch && !IsPointwise(norm.kind) &&
              statistics == LensStatistics::kCached;
    if (cached_) sigma_ = SigmasOf(last.to(at::kDouble), norm);
  }

  // Returns the logits of `count` predictions from `first` on, [count, V].
  at::Tensor Logits(const at::Tensor& stream, int64_t first, int64_t count) const {
    const ModelConfig& model = subject_.config.model;
    const at::Tensor x = ForHead(model, Normed(stream.narrow(0, first, count), first));
    return Capped(Head(x, subject_.parameters.head), model.logit_cap);
  }

 private:
  at::Tensor Normed(const at::Tensor& x, int64_t first) const {
    const NormParameters& norm = subject_.parameters.final_norm;
    if (!norm_.config.final) return x;
    if (!cached_) return Norm(x, norm, norm_);
    const at::Tensor ratio =
        SigmasOf(x.to(at::kDouble), norm_.config) / sigma_.narrow(0, first, x.size(0));
    at::Tensor y = Norm(x, {}, norm_) * ratio.to(x.scalar_type());
    if (norm.gain.defined()) y = y * GainOf(norm, norm_.config);
    return norm.shift.defined() ? y + norm.shift : y;
  }

  const SubjectModel& subject_;
  const NormPass norm_;
  bool cached_ = false;
  at::Tensor sigma_;  // of the last block's output, [n, 1] float64; defined if cached_
};

class LogitLens : public Computation {
 public:
  LogitLens(const LogitLensOptions& options, const AnalysisContext& analysis)
      : options_(options),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        depths_(HookPointsOr({}, subject_.config.model)),
        sums_(at::zeros({static_cast<int64_t>(depths_.size()), kLensSums}, at::kDouble)) {}

  int64_t pieces() const override { return analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const at::NoGradGuard no_grad;
    const Streams streams = StreamsOf(analysis_.Batch(piece));
    const Lens lens(options_.statistics, subject_, streams.at.back());
    const at::Tensor sums = at::zeros(sums_.sizes(), streams.logits.options().dtype(at::kDouble));
    const auto last = static_cast<int64_t>(depths_.size()) - 1;
    const auto add = [&](int64_t first, int64_t count) {
      const at::Tensor targets = streams.counted.targets.narrow(0, first, count);
      const WholePrediction whole(
          streams.logits.index_select(0, streams.counted.places.narrow(0, first, count)));
      for (int64_t depth = 0; depth < last; ++depth) {
        CheckStop(analysis_);
        const at::Tensor logits = lens.Logits(streams.at[static_cast<size_t>(depth)], first, count);
        sums[depth] += SumsAt(LogProbabilities(logits), whole, targets);
      }
      sums[last] += SumsAt(whole.log_probabilities, whole, targets);
    };
    VisitTargetChunks(streams.counted.targets.numel(), subject_.config.model.vocabulary, add);
    sums_ += OnHost(sums);
  }

  std::vector<StateTensor> State() override { return {{"sums", sums_}}; }

  AnalysisResult Finish() override {
    const double targets = TargetsIn(analysis_.batches);
    const std::optional<Undefined> undefined = WithoutTargets(targets);
    // Without a loss there is no most likely token, although argmax returns one.
    const at::Tensor finite = sums_.select(1, kLensLoss).isfinite();
    const at::Tensor both = finite.logical_and(finite[-1]);
    at::Tensor means = sums_ / targets;  // [depths, kLensSums]
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    means.select(1, kLensCorrect).masked_fill_(finite.logical_not(), kNaN);
    means.select(1, kLensAgreement).masked_fill_(both.logical_not(), kNaN);

    AnalysisResult result;
    const int64_t last = means.size(0) - 1;
    for (const LensSum of : {kLensLoss, kLensCorrect}) {
      result.numbers.push_back(NumberOf(kLensNames[of], means[last][of].item<double>(), undefined));
    }
    for (int of = 0; of < kLensSums; ++of) {
      for (int64_t depth = 0; depth <= last; ++depth) {
        const std::string name = absl::StrCat(kLensNames[of], "/", NameOf(depth));
        result.numbers.push_back(NumberOf(name, means[depth][of].item<double>(), undefined));
      }
      if (undefined.has_value()) continue;
      result.arrays.push_back(ArrayOf(kLensNames[of], {"state"}, means.select(1, of)));
    }
    const NormConfig& norm = subject_.config.model.norm;
    if (!norm.final) {
      result.notes.emplace_back("the model has no final norm: the head reads the stream itself");
    } else if (IsPointwise(norm.kind)) {
      result.notes.emplace_back(
          "the final norm has no statistics: recomputed and cached are the same");
    } else if (norm.kind == NormKind::kBatch) {
      result.notes.emplace_back(
          "the final norm has its running statistics at every depth: recomputed and cached are "
          "equal");
    }
    return result;
  }

 private:
  // The last depth is the model itself, so that only its logits are needed.
  Streams StreamsOf(const TokenBatch& batch) const {
    const BatchTensors tensors = BatchOf(subject_, batch);
    Streams streams;
    streams.counted = CountedTargetsOf(tensors);
    streams.at.resize(depths_.size());
    std::vector<std::pair<std::string, Hook>> observers;
    for (size_t depth = 0; depth < depths_.size(); ++depth) {
      observers.emplace_back(depths_[depth], Observe([&, depth](const at::Tensor& x) {
                               streams.at[depth] = AtCounted(x, tensors, streams.counted);
                             }));
    }
    const Hooks hooks = HooksOf(analysis_, subject_.config.model, std::move(observers));
    streams.logits = Logits(subject_.config.model, subject_.parameters, tensors, {.hooks = &hooks});
    return streams;
  }

  // The model's own prediction, which those at all depths are compared with.
  struct WholePrediction {
    explicit WholePrediction(const at::Tensor& logits)
        : log_probabilities(LogProbabilities(logits)),
          probabilities(log_probabilities.exp()),
          likeliest(log_probabilities.argmax(-1)) {}

    at::Tensor log_probabilities;  // [n, V]
    at::Tensor probabilities;      // [n, V]
    at::Tensor likeliest;          // [n]
  };

  // Returns the sums [kLensSums] of one depth, given its log-probabilities [n, V].
  static at::Tensor SumsAt(const at::Tensor& here, const WholePrediction& whole,
                           const at::Tensor& targets) {
    const at::Tensor likeliest = here.argmax(-1);  // [n]
    return at::stack({LossesOf(here, targets).sum(), likeliest.eq(targets).sum().to(at::kDouble),
                      (whole.probabilities * (whole.log_probabilities - here)).sum(),
                      likeliest.eq(whole.likeliest).sum().to(at::kDouble)});
  }

  static std::string NameOf(int64_t depth) {
    return depth == 0 ? "embedding" : absl::StrCat("block.", depth - 1);
  }

  const LogitLensOptions options_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  const std::vector<std::string> depths_;  // hook points: the embedding, and each block's output
  at::Tensor sums_;                        // [depths, kLensSums]
};

}  // namespace

MadeComputation Compute(const LogitLensOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<LogitLens>(options, analysis);
}

}  // namespace ablate::engine
