// Measures the effect of norms on their inputs: statistics of the input, of the standardised input,
// and of the output after gain and shift; in evaluation, and with batch statistics of given batch
// sizes.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/norms.h"
#include "server/engine/torch/model/norm.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

// Stages at which values are measured.
enum NormStage { kNormInput, kNormStandardised, kNormOutput, kNormStages };
constexpr const char* kNormStageNames[kNormStages] = {"input", "standardised", "output"};

// Sums over vectors.
enum VectorSum { kVectorCount, kVectorMean, kVectorDeviation, kVectorRms, kVectorSums };

// Sums of one stage of one norm.
struct StageSums {
  at::Tensor sums;     // [kVectorSums]
  at::Tensor largest;  // |x|, []
};

// Returns the sums over vectors [v, m].
StageSums SumsOfVectors(const at::Tensor& x) {
  const at::Tensor mean = x.mean(1);
  return {OnHost(at::stack({at::ones_like(mean).sum(), mean.sum(),
                            (x - mean.unsqueeze(1)).square().mean(1).sqrt().sum(),
                            x.square().mean(1).sqrt().sum()})),
          OnHost(x.abs().max())};
}

// Regroups the rows of all batches in order, `size` per batch; drops an incomplete last batch.
std::vector<TokenBatch> InBatchesOf(int64_t size, const std::vector<TokenBatch>& batches) {
  const std::vector<TokenBatch> rows = SplitRows(batches);
  std::vector<TokenBatch> groups;
  auto first = rows.begin();
  for (; rows.end() - first >= size; first += size)
    groups.push_back(JoinRows({first, first + size}));
  return groups;
}

class NormStatistics : public Computation {
 public:
  NormStatistics(const NormStatisticsOptions& options, const AnalysisContext& analysis)
      : analysis_(analysis),
        subject_(analysis.subjects[0]),
        model_(subject_.config.model),
        norms_(NormPlacesOf(model_, subject_.parameters)),
        batch_sizes_(options.batch) {
    model_.loss = LossPositions::kAll;  // otherwise the last block would compute last positions
                                        // only
    for (const TokenBatch& batch : analysis.batches) parts_.push_back({0, batch});
    for (size_t i = 0; i < batch_sizes_.size(); ++i) {
      for (TokenBatch& batch : InBatchesOf(batch_sizes_[i], analysis.batches)) {
        parts_.push_back({i + 1, std::move(batch)});
      }
    }
    const auto passes = static_cast<int64_t>(batch_sizes_.size()) + 1;
    const auto norms = static_cast<int64_t>(norms_.size());
    sums_ = at::zeros({passes, norms, kNormStages, kVectorSums}, at::kDouble);
    largest_ = at::zeros({passes, norms, kNormStages}, at::kDouble);
    // With running statistics a BatchNorm's vectors span everything that is read.
    const int64_t features = IsBatchNorm() ? model_.width : 0;
    tokens_ = at::zeros({}, at::kDouble);
    means_ = at::zeros({norms, kNormStages, features}, at::kDouble);
    squares_ = at::zeros_like(means_);
  }

  int64_t pieces() const override { return static_cast<int64_t>(parts_.size()); }

  void Add(int64_t piece) override {
    const auto& [pass, batch] = parts_[static_cast<size_t>(piece)];
    const std::vector<at::Tensor> values = ValuesOf(batch, pass > 0);
    const int64_t tokens = values[0].size(0);
    if (IsBatchNorm() && pass > 0 && tokens == 1) return;  // it has no variance
    at::Tensor sums = sums_[static_cast<int64_t>(pass)].clone();
    at::Tensor largest = largest_[static_cast<int64_t>(pass)].clone();
    at::Tensor means = means_.clone(), squares = squares_.clone();
    for (size_t i = 0; i < values.size(); ++i) {
      const auto norm = static_cast<int64_t>(i) / kNormStages;
      const auto stage = static_cast<int64_t>(i) % kNormStages;
      const StageSums more = SumsOfVectors(VectorsOf(values[i], model_.norm.kind));
      sums[norm][stage] += more.sums;
      largest[norm][stage].copy_(at::maximum(largest[norm][stage], more.largest));
      if (IsBatchNorm() && pass == 0) {
        Merge(values[i], means[norm][stage], squares[norm][stage]);
      }
    }
    sums_[static_cast<int64_t>(pass)].copy_(sums);
    largest_[static_cast<int64_t>(pass)].copy_(largest);
    if (pass > 0) return;
    means_.copy_(means);
    squares_.copy_(squares);
    tokens_ += static_cast<double>(tokens);
  }

  std::vector<StateTensor> State() override {
    return {{"sums", sums_},
            {"largest", largest_},
            {"tokens", tokens_},
            {"means", means_},
            {"squares", squares_}};
  }

  AnalysisResult Finish() override {
    const at::Tensor sums = IsBatchNorm() ? WithWholeVectors() : sums_;
    AnalysisResult result;
    for (int64_t pass = 0; pass < sums.size(0); ++pass) {
      for (size_t i = 0; i < norms_.size(); ++i) {
        const std::string by =
            pass == 0 ? "" : absl::StrCat("/batch.", batch_sizes_[static_cast<size_t>(pass) - 1]);
        const auto norm = static_cast<int64_t>(i);
        for (int64_t stage = 0; stage < kNormStages; ++stage) {
          Describe(absl::StrCat(kNormStageNames[stage], "_"), absl::StrCat("/", norms_[i].name, by),
                   sums[pass][norm][stage], largest_[pass][norm][stage].item<double>(), &result);
        }
      }
    }
    return result;
  }

 private:
  // A batch of the evaluation (pass 0), or of the pass with some batch size.
  struct Part {
    size_t pass;
    TokenBatch batch;
  };
  bool IsBatchNorm() const { return model_.norm.kind == NormKind::kBatch; }

  // Returns the values of every norm at every stage: [n, d] in float64, without padding.
  std::vector<at::Tensor> ValuesOf(const TokenBatch& batch, bool by_batch) const {
    const at::NoGradGuard no_grad;
    TokenBatch read = batch;
    read.targets.assign(read.inputs.size(), 0);  // targets are unused
    const BatchTensors tensors = TensorsOf(read, subject_.values.options());
    std::vector<at::Tensor> values(norms_.size() * kNormStages);
    std::vector<std::pair<std::string, Hook>> observers;
    const auto observe = [&](const std::string& hook_point, size_t to) {
      observers.emplace_back(hook_point, Observe([&values, &tensors, to](const at::Tensor& x) {
                               values[to] = RealRows(x.to(at::kDouble), tensors);
                             }));
    };
    for (size_t i = 0; i < norms_.size(); ++i) {
      observe(norms_[i].input, i * kNormStages + kNormInput);
      observe(norms_[i].output, i * kNormStages + kNormOutput);
    }
    const Hooks hooks = HooksOf(analysis_, model_, std::move(observers));
    HeadInput(
        model_, subject_.parameters, tensors,
        {.statistics = by_batch ? Statistics::kBatch : Statistics::kRunning, .hooks = &hooks});
    for (size_t i = 0; i < norms_.size(); ++i) {
      values[i * kNormStages + kNormStandardised] =
          Standardised(values[i * kNormStages + kNormInput], norms_[i].parameters, by_batch);
    }
    return values;
  }

  // Returns x̂ of x [n, d].
  at::Tensor Standardised(const at::Tensor& x, const NormParameters& parameters,
                          bool by_batch) const {
    NormParameters running;  // without gain and shift
    if (parameters.alpha.defined()) running.alpha = parameters.alpha.to(at::kDouble);
    if (parameters.offset.defined()) running.offset = parameters.offset.to(at::kDouble);
    if (IsBatchNorm()) {
      running.running_mean = parameters.running_mean.to(at::kDouble);
      running.running_variance = parameters.running_variance.to(at::kDouble);
    }
    const bool reads_batch = IsBatchNorm() && by_batch;
    const NormPass pass =
        reads_batch ? MakeNormPass(model_.norm, Statistics::kBatch, {}, x.size(0), x.options())
                    : NormPass{model_.norm, Statistics::kRunning, {}, {}};
    return Norm(x, running, pass);
  }

  // Merges the tokens of values [n, d] into the running means [d] and the sums of squares around
  // them.
  void Merge(const at::Tensor& values, const at::Tensor& means, const at::Tensor& squares) const {
    const auto n = static_cast<double>(values.size(0)), before = tokens_.item<double>();
    const at::Tensor mean = values.mean(0), apart = OnHost(mean) - means;
    squares.add_(OnHost((values - mean).square().sum(0)) +
                 apart.square() * (before * n / (before + n)));
    at::Tensor(means).add_(apart * (n / (before + n)));
  }

  // Returns the sums. For a BatchNorm in evaluation they are over each feature's values at all
  // tokens, independent of how these were divided.
  at::Tensor WithWholeVectors() const {
    const at::Tensor variance = squares_ / tokens_;  // [norms, stages, d]
    const at::Tensor whole =
        at::stack({at::ones_like(means_).sum(-1), means_.sum(-1), variance.sqrt().sum(-1),
                   (variance + means_.square()).sqrt().sum(-1)},
                  -1);
    at::Tensor sums = sums_.clone();
    sums[0].copy_(tokens_.item<double>() > 1 ? whole : at::zeros_like(whole));
    return sums;
  }

  static void Describe(const std::string& stage, const std::string& place, const at::Tensor& sums,
                       double largest, AnalysisResult* result) {
    const double vectors = sums[kVectorCount].item<double>();
    const auto add = [&](const char* name, double value) {
      result->numbers.push_back(
          NumberOf(absl::StrCat(stage, name, place), value, WithoutTargets(vectors)));
    };
    add("mean", sums[kVectorMean].item<double>() / vectors);
    add("deviation", sums[kVectorDeviation].item<double>() / vectors);
    add("rms", sums[kVectorRms].item<double>() / vectors);
    add("largest", largest);
  }

  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  ModelConfig model_;
  const std::vector<NormPlace> norms_;
  const std::vector<uint32_t> batch_sizes_;
  std::vector<Part> parts_;
  at::Tensor sums_;     // [passes, norms, stages, kVectorSums]
  at::Tensor largest_;  // [passes, norms, stages]
  // For a BatchNorm in evaluation, by feature: tokens so far, their mean, the sum of squares around
  // it; without features for other norms.
  at::Tensor tokens_;   // []
  at::Tensor means_;    // [norms, stages, d]
  at::Tensor squares_;  // [norms, stages, d]
};

}  // namespace

MadeComputation Compute(const NormStatisticsOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<NormStatistics>(options, analysis);
}

}  // namespace ablate::engine
