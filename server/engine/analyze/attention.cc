// Measures attention: the entropy of its weights, the weight on the first token, the distance
// between heads, and the weights themselves.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/token_text.h"
#include "server/engine/model/transformer.h"

namespace ablate::engine {
namespace {

// Least mean weight of the first token in a head that rests on it (Gu et al., 2025).
constexpr double kSinkWeight = 0.3;

// Sums over the rows of a head.
enum HeadSum { kRowEntropy, kLargestWeight, kFirstToken, kRowMass, kHeadSums };
// Sums over the rows of a pair of heads.
enum PairSum { kDistance, kDistanceWithoutFirst, kRowsWithoutFirst, kPairSums };

// Returns −Σ a ln a of rows [..., T].
at::Tensor RowEntropies(const at::Tensor& a) { return -at::xlogy(a, a).sum(-1); }

// Rows of weights [..., T] and their entropies.
struct RowWeights {
  at::Tensor weights;
  at::Tensor entropies;
};

// Returns the Jensen–Shannon divergence of rows, in nats.
at::Tensor RowDivergences(const RowWeights& a, const RowWeights& b) {
  const at::Tensor middle = RowEntropies((a.weights + b.weights) / 2);
  return (middle - (a.entropies + b.entropies) / 2).clamp_min(0);
}

// The weights [B, T, T] of a head, and entropies that its distances to all other heads need.
class HeadRows {
 public:
  explicit HeadRows(const at::Tensor& weights)
      : all_{weights, RowEntropies(weights)},
        mass_(weights.narrow(2, 1, weights.size(2) - 1).sum(-1)),
        entropies_without_first_(RowEntropies(WeightsWithoutFirst())) {}

  const RowWeights& all() const { return all_; }
  // Returns the rows without the first key, normalised to 1 again.
  RowWeights WithoutFirst() const { return {WeightsWithoutFirst(), entropies_without_first_}; }
  // Returns true for rows without weight on the other keys, [B, T].
  at::Tensor LacksOthers() const { return mass_.le(0); }

 private:
  at::Tensor WeightsWithoutFirst() const {
    return all_.weights.narrow(2, 1, all_.weights.size(2) - 1) / mass_.unsqueeze(-1);
  }

  RowWeights all_;
  at::Tensor mass_;  // of all keys except the first, [B, T]
  at::Tensor entropies_without_first_;
};

// The contribution of one block to the sums.
struct BlockAttention {
  at::Tensor heads;  // [H, kHeadSums]
  at::Tensor pairs;  // [H, H, kPairSums]
};

// Rows of weights, starting with row `first`. Row i has keys[i] keys that it may see.
struct CountedRows {
  int64_t first = 0;
  at::Tensor keys;  // [T], float64

  // Returns the counted rows of values [..., T, ·] or [..., T].
  at::Tensor Of(const at::Tensor& values, int64_t axis) const {
    return values.narrow(axis, first, values.size(axis) - first);
  }
  // Returns the evenness of weights [..., T, T]: their entropy divided by that of uniform weights,
  // [..., T − first].
  at::Tensor Evenness(const at::Tensor& weights) const {
    return RowEntropies(Of(weights, -2)) / Of(keys, 0).log();
  }
};

class AttentionLook : public Computation {
 public:
  AttentionLook(const AttentionOptions& options, const AnalysisContext& analysis)
      : options_(options),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        model_(subject_.config.model) {
    model_.loss = LossPositions::kAll;  // otherwise the last block would only query last positions
    const int64_t layers = model_.layers, heads = model_.heads;
    heads_ = at::zeros({layers, heads, kHeadSums}, at::kDouble);
    pairs_ = at::zeros({layers, heads, heads, kPairSums}, at::kDouble);
    means_ = at::zeros({layers + 1}, at::kDouble);
    rows_ = at::zeros({}, at::kDouble);
    const auto tokens = static_cast<int64_t>(options.maps.empty() ? 0 : analysis.tokens);
    maps_ = at::zeros({layers, heads, tokens, tokens}, at::kDouble);
  }

  int64_t pieces() const override { return analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const at::NoGradGuard no_grad;
    const TokenBatch& batch = analysis_.Batch(piece);
    const int64_t length = batch.length;
    const CountedRows rows = RowsOf(length);
    std::vector<BlockAttention> blocks(static_cast<size_t>(model_.layers));
    std::vector<at::Tensor> means, maps;
    at::Tensor everywhere = at::zeros({batch.rows, length, length}, at::kDouble);
    std::vector<std::pair<std::string, Hook>> observers;
    for (int i = 0; i < model_.layers; ++i) {
      const auto look = [&, i](const at::Tensor& of_heads) {
        const at::Tensor weights =
            of_heads.to(at::kDouble).view({batch.rows, model_.heads, length, length});
        blocks[static_cast<size_t>(i)] = LookAt(weights, rows);
        const at::Tensor mean = weights.mean(1);  // [B, T, T]
        means.push_back(rows.Evenness(mean).sum());
        everywhere += mean / model_.layers;
        if (!options_.maps.empty()) maps.push_back(weights[0]);
      };
      observers.emplace_back(HookPointName(HookPoint::kAttentionWeights, i), Observe(look));
    }
    const Hooks hooks = HooksOf(analysis_, model_, std::move(observers));
    TokenBatch read = batch;
    read.targets.assign(read.inputs.size(), 0);  // targets are unused
    HeadInput(model_, subject_.parameters, TensorsOf(read, subject_.values.options()),
              {.hooks = &hooks});
    means.push_back(rows.Evenness(everywhere).sum());
    const at::Tensor all_means = at::stack(means);
    if (!maps.empty()) maps_.copy_(at::stack(maps));
    for (int64_t i = 0; i < model_.layers; ++i) {
      heads_[i] += blocks[static_cast<size_t>(i)].heads;
      pairs_[i] += blocks[static_cast<size_t>(i)].pairs;
    }
    means_ += all_means;
    rows_ += static_cast<double>(batch.rows * (length - rows.first));
  }

  std::vector<StateTensor> State() override {
    return {
        {"heads", heads_}, {"pairs", pairs_}, {"means", means_}, {"rows", rows_}, {"maps", maps_}};
  }

  AnalysisResult Finish() override {
    AnalysisResult result;
    const at::Tensor heads = heads_ / rows_;
    const std::optional<Undefined> unequal =
        Normalised() ? std::nullopt : std::optional(Undefined::kUnnormalised);
    Describe("entropy", heads.select(-1, kRowEntropy), unequal, &result);
    Describe("largest_weight", heads.select(-1, kLargestWeight), unequal, &result);
    Describe("first_token", heads.select(-1, kFirstToken), unequal, &result);
    if (!Normalised()) {
      Describe("row_mass", heads.select(-1, kRowMass), std::nullopt, &result);
      Describe("share_entropy", heads.select(-1, kRowEntropy), std::nullopt, &result);
    }
    Add("sink_share", SinkShare(), unequal, &result);
    const at::Tensor distances = pairs_.select(-1, kDistance);
    DescribePairs("head_distance", distances, rows_.expand_as(distances), &result);
    DescribePairs("head_distance_without_first", pairs_.select(-1, kDistanceWithoutFirst),
                  pairs_.select(-1, kRowsWithoutFirst), &result);
    Add("mean_map_entropy", means_[-1] / rows_, unequal, &result);
    for (int64_t i = 0; i < model_.layers; ++i) {
      Add(absl::StrCat("mean_map_entropy/block.", i), means_[i] / rows_, unequal, &result);
    }
    AddMaps(&result);
    return result;
  }

 private:
  bool Normalised() const { return model_.attention.kind == AttentionKind::kSoftmax; }

  // Returns the rows with at least two keys to choose from.
  CountedRows RowsOf(int64_t length) const {
    const at::TensorOptions options = at::TensorOptions().dtype(at::kDouble);
    if (model_.attention.causal) return {1, at::arange(1, length + 1, options)};
    return {length > 1 ? 0 : 1, at::full({length}, static_cast<double>(length), options)};
  }

  // Returns the fraction of heads whose mean weight of the first token exceeds kSinkWeight. The
  // mean includes rows without a choice, whose weight is 1.
  at::Tensor SinkShare() const {
    int64_t without_choice = 0;
    for (const TokenBatch& batch : analysis_.batches) {
      without_choice += batch.rows * RowsOf(batch.length).first;
    }
    const at::Tensor means = (heads_.select(-1, kFirstToken) + without_choice) /
                             (rows_ + without_choice);              // [layers, H]
    if (!means.isfinite().all().item<bool>()) return means.mean();  // NaN
    return means.gt(kSinkWeight).to(at::kDouble).mean();
  }

  // Measures weights [B, H, T, T].
  BlockAttention LookAt(const at::Tensor& weights, const CountedRows& rows) const {
    const auto by_head = [](const at::Tensor& values) {
      return values.sum(at::IntArrayRef({0, 2}));
    };
    const at::Tensor mass = weights.sum(-1);  // [B, H, T]
    const at::Tensor shares = Normalised() ? weights : weights / mass.unsqueeze(-1);
    BlockAttention block;
    block.heads = at::stack({by_head(rows.Evenness(shares)), by_head(rows.Of(weights.amax(-1), 2)),
                             by_head(rows.Of(weights.select(-1, 0), 2)), by_head(rows.Of(mass, 2))},
                            -1);
    block.pairs = at::zeros({model_.heads, model_.heads, kPairSums}, at::kDouble);
    if (!Normalised()) return block;
    std::vector<HeadRows> heads;
    for (int64_t h = 0; h < model_.heads; ++h) heads.emplace_back(weights.select(1, h));
    for (int64_t h = 0; h < model_.heads; ++h) {
      for (int64_t g = h + 1; g < model_.heads; ++g) {
        const at::Tensor sums =
            LookAtPair(heads[static_cast<size_t>(h)], heads[static_cast<size_t>(g)], rows);
        block.pairs[h][g].copy_(sums);
        block.pairs[g][h].copy_(sums);
      }
    }
    return block;
  }

  // Returns [kPairSums] for two heads. The variant without the first token, which most heads of
  // trained models attend to, only counts rows with at least two other keys.
  static at::Tensor LookAtPair(const HeadRows& a, const HeadRows& b, const CountedRows& rows) {
    const at::Tensor none = a.LacksOthers().logical_or(b.LacksOthers());  // [B, T]
    const at::Tensor counts = rows.keys.ge(3).logical_and(none.logical_not());
    const at::Tensor apart = RowDivergences(a.WithoutFirst(), b.WithoutFirst());
    return at::stack({rows.Of(RowDivergences(a.all(), b.all()), 1).sum(),
                      apart.masked_fill(counts.logical_not(), 0).sum(),
                      counts.sum().to(at::kDouble)});
  }

  void Add(const std::string& name, const at::Tensor& value, std::optional<Undefined> undefined,
           AnalysisResult* result) const {
    if (!undefined && rows_.item<double>() == 0) undefined = Undefined::kTooFewTokens;
    result->numbers.push_back(NumberOf(name, value.item<double>(), undefined));
  }

  // Adds numbers for values by head, [layers, H]: their mean, the mean of every block, and each
  // value.
  void Describe(const std::string& name, const at::Tensor& values,
                std::optional<Undefined> undefined, AnalysisResult* result) const {
    Add(name, values.mean(), undefined, result);
    for (int64_t i = 0; i < model_.layers; ++i) {
      Add(absl::StrCat(name, "/block.", i), values[i].mean(), undefined, result);
    }
    for (int64_t i = 0; i < model_.layers; ++i) {
      for (int64_t h = 0; h < model_.heads; ++h) {
        Add(absl::StrCat(name, "/block.", i, ".head.", h), values[i][h], undefined, result);
      }
    }
    if (!undefined && rows_.item<double>() > 0) {
      result->arrays.push_back(ArrayOf(name, {"block", "head"}, values));
    }
  }

  // Adds the mean over pairs of heads, from sums over rows and numbers of rows, [layers, H, H].
  void DescribePairs(const std::string& name, const at::Tensor& sums, const at::Tensor& rows,
                     AnalysisResult* result) const {
    const at::Tensor two = at::eye(model_.heads, at::kBool).logical_not();
    const at::Tensor used = rows.gt(0).logical_and(two);
    const at::Tensor known = (sums / rows).masked_fill(used.logical_not(), 0);
    const auto mean = [&](const at::Tensor& of, const at::Tensor& is_used,
                          const std::string& full) {
      const at::Tensor count = is_used.sum();
      std::optional<Undefined> undefined;
      if (count.item<int64_t>() == 0) undefined = Undefined::kTooFewTokens;
      if (model_.heads == 1) undefined = Undefined::kZeroDenominator;
      if (!Normalised()) undefined = Undefined::kUnnormalised;
      Add(full, of.sum() / count, undefined, result);
    };
    mean(known, used, name);
    for (int64_t i = 0; i < model_.layers; ++i) {
      mean(known[i], used[i], absl::StrCat(name, "/block.", i));
    }
    const bool all = at::equal(used, two.expand_as(used));
    if (Normalised() && all && rows_.item<double>() > 0) {
      result->arrays.push_back(ArrayOf(name, {"block", "head", "other_head"}, known));
    }
  }

  void AddMaps(AnalysisResult* result) const {
    for (const AttentionMaps maps : options_.maps) {
      switch (maps) {
        case AttentionMaps::kHeads:
          result->arrays.push_back(ArrayOf("head_maps", {"block", "head", "query", "key"}, maps_));
          break;
        case AttentionMaps::kLayers:
          result->arrays.push_back(ArrayOf("layer_maps", {"block", "query", "key"}, maps_.mean(1)));
          break;
        case AttentionMaps::kModel:
          result->arrays.push_back(
              ArrayOf("model_map", {"query", "key"}, maps_.mean(at::IntArrayRef({0, 1}))));
          break;
      }
    }
    if (!options_.maps.empty()) {
      AddTokenText(subject_.config, analysis_.batches[0].inputs, result);
    }
  }

  const AttentionOptions options_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  ModelConfig model_;
  at::Tensor heads_;  // [layers, H, kHeadSums]
  at::Tensor pairs_;  // [layers, H, H, kPairSums]
  at::Tensor means_;  // evenness of the mean map: by block, then overall, [layers + 1]
  at::Tensor rows_;   // rows with a choice, []
  at::Tensor maps_;   // maps of a prompt, [layers, H, T, T]; T is 0 if none is requested
};

}  // namespace

MadeComputation Compute(const AttentionOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<AttentionLook>(options, analysis);
}

}  // namespace ablate::engine
