// Computes the similarity of representations of the same tokens: linear centred kernel alignment.
#include "server/engine/analyze/cka.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/analyze/hsic.h"
#include "server/engine/analyze/representations.h"
#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

// An HSIC below this fraction of its terms is a rounding error of 0.
constexpr double kLeastHsic = 1e-12;

// Returns why a representation has no CKA with any other; nullopt if it has.
std::optional<Undefined> WhyNoCka(const HsicMatrix& hsic, int64_t i) {
  if (!hsic.varies[i].item<bool>()) return Undefined::kZeroVariance;
  const double self = hsic.values[i][i].item<double>();
  if (!std::isfinite(self)) return Undefined::kNonFinite;
  const bool positive = self > kLeastHsic * hsic.scale[i].item<double>();
  return positive ? std::nullopt : std::optional(Undefined::kZeroDenominator);
}

// Returns the smallest number of tokens for which an estimate exists.
uint64_t LeastTokens(CkaEstimator estimator) { return estimator == CkaEstimator::kBiased ? 2 : 4; }

void AddCkaNotes(const Representations& of, CkaEstimator estimator, uint64_t tokens,
                 AnalysisResult* result) {
  const std::vector<int64_t> features = of.Features();
  const auto [least, most] = std::minmax_element(features.begin(), features.end());
  const std::string range =
      *least == *most ? absl::StrCat(*most) : absl::StrCat(*least, " to ", *most);
  result->notes.push_back(absl::StrCat("of ", tokens, " tokens in ", range, " features"));
  result->notes.push_back(
      absl::StrCat("representations in their order: ", absl::StrJoin(of.Labels(), ", ")));
  if (estimator == CkaEstimator::kBiased && tokens < 10 * static_cast<uint64_t>(*most)) {
    result->notes.push_back(
        "with so few tokens for so many features the biased estimate is far above 0 also where "
        "representations have nothing to do with each other");
  }
}

// Returns the result from an HSIC, which isn't read if there are too few tokens.
AnalysisResult CkaResult(const Representations& of, CkaEstimator estimator, uint64_t tokens,
                         const HsicMatrix& hsic) {
  AnalysisResult result;
  AddCkaNotes(of, estimator, tokens, &result);
  const bool enough = tokens >= LeastTokens(estimator);
  const auto m = static_cast<int64_t>(of.all().size());
  std::vector<std::optional<Undefined>> reasons;
  for (int64_t i = 0; i < m; ++i) {
    reasons.push_back(enough ? WhyNoCka(hsic, i) : Undefined::kTooFewTokens);
  }
  at::Tensor cka = at::full({m, m}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  const auto values = hsic.values.accessor<double, 2>();
  auto ratios = cka.accessor<double, 2>();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = i; j < m; ++j) {
      const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
      const std::optional<Undefined> reason = reasons[a].has_value() ? reasons[a] : reasons[b];
      if (!reason.has_value()) {
        ratios[i][j] = ratios[j][i] =
            i == j ? 1 : values[i][j] / std::sqrt(values[i][i]) / std::sqrt(values[j][j]);
      }
      std::string name = of.PairName(a, b);
      if (name.empty()) continue;
      result.numbers.push_back(NumberOf(std::move(name), ratios[i][j], reason));
    }
  }
  if (!enough) return result;
  result.arrays.push_back(ArrayOf("cka", {"representation", "other"}, cka));
  result.arrays.push_back(ArrayOf("hsic", {"representation", "other"}, hsic.values));
  return result;
}

// Computes CKA from sums over all tokens, as if all rows were available at once.
class ExactCka : public Computation {
 public:
  ExactCka(const CkaOptions& options, const AnalysisContext& analysis,
           Representations representations)
      : options_(options),
        analysis_(analysis),
        representations_(std::move(representations)),
        sums_(representations_.Features(), representations_.first_means()) {}

  int64_t pieces() const override { return analysis_.batch_count(); }
  void Add(int64_t piece) override { sums_.Add(representations_.Rows(piece)); }
  std::vector<StateTensor> State() override { return sums_.State(); }

  AnalysisResult Finish() override {
    return CkaResult(representations_, options_.estimator, analysis_.tokens,
                     sums_.Estimate(options_.estimator, analysis_.tokens));
  }

 private:
  const CkaOptions options_;
  const AnalysisContext& analysis_;
  Representations representations_;
  HsicSums sums_;
};

// Computes CKA from the HSIC_u of blocks of tokens, summed over blocks (Nguyen et al. 2020). A
// block is drawn from all tokens, because tokens of one sequence depend on each other. Its rows are
// therefore gathered in a pass over all batches, for as many blocks per pass as fit in memory.
class MinibatchCka : public Computation {
 public:
  MinibatchCka(const CkaOptions& options, const AnalysisContext& analysis,
               Representations representations, uint64_t most_bytes)
      : options_(options), analysis_(analysis), representations_(std::move(representations)) {
    const std::vector<int64_t> features = representations_.Features();
    const auto tokens = static_cast<int64_t>(analysis.tokens);
    const int64_t columns = std::accumulate(features.begin(), features.end(), int64_t{0});
    at::ScalarType type = at::kFloat;
    for (const SubjectModel& subject : analysis.subjects) {
      type = at::promote_types(type, subject.values.scalar_type());
    }
    blocks_ = std::max<int64_t>(1, tokens / options.block);
    const int64_t largest = (tokens + blocks_ - 1) / blocks_;
    const int64_t block_bytes =
        std::max<int64_t>(1, largest * columns * static_cast<int64_t>(at::elementSize(type)));
    together_ = std::clamp<int64_t>(static_cast<int64_t>(most_bytes) / block_bytes, 1, blocks_);
    const at::Device device = analysis.subjects[0].values.device();
    gathered_ = at::zeros({std::min(together_ * largest, tokens), columns},
                          at::TensorOptions(type).device(device));
    place_ = ShuffledPlaces(tokens).to(device);
    const auto m = static_cast<int64_t>(features.size());
    values_ = at::zeros({m, m}, at::kDouble);
    scale_ = at::zeros({m}, at::kDouble);
    varying_ = at::zeros({m}, at::kLong);
  }

  int64_t pieces() const override { return Passes() * analysis_.batch_count() + blocks_; }

  void Add(int64_t piece) override {
    const int64_t in_pass = analysis_.batch_count() + together_;
    const int64_t pass = piece / in_pass, within = piece % in_pass;
    if (within < analysis_.batch_count()) {
      Gather(within, pass * together_);
    } else {
      AddBlock(pass * together_ + within - analysis_.batch_count(), pass * together_);
    }
  }

  std::vector<StateTensor> State() override {
    return {{"gathered", gathered_}, {"values", values_}, {"scale", scale_}, {"varying", varying_}};
  }

  AnalysisResult Finish() override {
    const auto count = static_cast<double>(blocks_);
    AnalysisResult result = CkaResult(representations_, options_.estimator, analysis_.tokens,
                                      {values_ / count, scale_ / count, varying_.gt(0)});
    result.notes.push_back(
        absl::StrCat("from ", blocks_, " minibatches of ", Begin(1),
                     " tokens or one more, for sums of all pairs are too large"));
    return result;
  }

 private:
  // Returns the place of each token in a random permutation of all.
  at::Tensor ShuffledPlaces(int64_t tokens) const {
    SplitMix64 draws(DrawSeed(analysis_, "cka/tokens"));
    at::Tensor order = at::arange(tokens, at::kLong);
    int64_t* const at = order.mutable_data_ptr<int64_t>();
    for (int64_t i = tokens - 1; i > 0; --i) {
      std::swap(at[i], at[draws.Below(static_cast<uint64_t>(i) + 1)]);
    }
    return order;
  }

  int64_t Passes() const { return (blocks_ + together_ - 1) / together_; }
  // Returns the place of a block's first token; block blocks_ begins after the last token.
  int64_t Begin(int64_t block) const {
    return block * static_cast<int64_t>(analysis_.tokens) / blocks_;
  }

  // Stores a batch's rows of the blocks in this pass, which starts with block `first`.
  void Gather(int64_t batch, int64_t first) {
    int64_t before = 0;  // tokens in earlier batches
    for (int64_t i = 0; i < batch; ++i) {
      before += static_cast<int64_t>(analysis_.Batch(i).tokens());
    }
    const at::Tensor rows = at::cat(representations_.Rows(batch), 1);  // [n, D]
    const at::Tensor place = place_.narrow(0, before, rows.size(0)) - Begin(first);
    const int64_t end = Begin(std::min(first + together_, blocks_)) - Begin(first);
    const at::Tensor chosen = place.ge(0).logical_and(place.lt(end)).nonzero().flatten();
    gathered_.index_copy_(0, place.index_select(0, chosen),
                          rows.index_select(0, chosen).to(gathered_.scalar_type()));
  }

  void AddBlock(int64_t block, int64_t first) {
    const at::Tensor rows =
        gathered_.narrow(0, Begin(block) - Begin(first), Begin(block + 1) - Begin(block))
            .to(at::kDouble);
    const HsicMatrix hsic = UnbiasedHsic(rows.split_with_sizes(representations_.Features(), 1));
    values_ += hsic.values;
    scale_ += hsic.scale;
    varying_ += hsic.varies.to(at::kLong);
  }

  const CkaOptions options_;
  const AnalysisContext& analysis_;
  Representations representations_;
  int64_t blocks_ = 0;
  int64_t together_ = 0;  // blocks per pass over all batches
  at::Tensor place_;      // [tokens]
  at::Tensor gathered_;   // [tokens of those blocks, D]
  at::Tensor values_;     // sums over blocks, as in HsicMatrix
  at::Tensor scale_;
  at::Tensor varying_;  // number of blocks in which a representation varies, [m]
};

}  // namespace

MadeComputation MakeCka(const CkaOptions& options, const AnalysisContext& analysis,
                        uint64_t most_bytes) {
  Representations representations(options.sites, analysis);
  uint64_t columns = 0, bytes = 0;  // 8 times the features of a pair, over all pairs
  for (const int64_t features : representations.Features()) {
    columns += static_cast<uint64_t>(features);
    bytes += 8 * static_cast<uint64_t>(features) * columns;
  }
  if (bytes <= most_bytes) {
    return std::make_unique<ExactCka>(options, analysis, std::move(representations));
  }
  return std::make_unique<MinibatchCka>(options, analysis, std::move(representations), most_bytes);
}

MadeComputation Compute(const CkaOptions& options, const AnalysisContext& analysis) {
  return MakeCka(options, analysis, kMostCkaBytes);
}

}  // namespace ablate::engine
