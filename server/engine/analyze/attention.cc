// Measures attention: the entropy of its weights, the weight on the first token, the distance
// between heads, syntactic heads among the words attended to, and the weights themselves.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/attention_sums.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/mixture_entropy.h"
#include "server/engine/analyze/token_text.h"
#include "server/engine/core/analyses/dependency_words.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

// Least mean weight of the first token in a head that rests on it (Gu et al., 2025).
constexpr double kSinkWeight = 0.3;

// Returns an entropy divided by that of uniform weights.
double Evenness(double entropy, int64_t keys) {
  return entropy / std::log(static_cast<double>(keys));
}

// Returns the sum of the counted rows' evenness in maps [..., T, T], float64.
double SumOfEvenness(const at::Tensor& maps, const CountedRows& rows) {
  if (!maps.is_cpu()) return SumOfEvennessOnDevice(maps, rows);
  const at::Tensor whole = maps.contiguous();
  const double* row = whole.const_data_ptr<double>();
  double sum = 0;
  for (int64_t i = 0; i < whole.numel() / rows.length; ++i, row += rows.length) {
    const int64_t in_map = i % rows.length, keys = rows.Keys(in_map);
    if (in_map < rows.first) continue;
    sum += Evenness(MixtureEntropy(row, 1, row, 0, static_cast<size_t>(keys)), keys);
  }
  return sum;
}

// A row of one head: its weights on the keys that it may see.
template <typename T>
class HeadRow {
 public:
  HeadRow(const T* weights, int64_t keys)
      : weights_(weights), keys_(static_cast<size_t>(keys)), entropy_(Entropy(0, 1)) {
    for (size_t i = 1; i < keys_; ++i) others_ += weights[i];
    if (HasOthers()) entropy_of_others_ = Entropy(1, Share(others_));
  }

  double first() const { return weights_[0]; }
  double mass() const { return first() + others_; }
  double entropy() const { return entropy_; }
  // Returns the entropy of the weights divided by their sum.
  double ShareEntropy() const { return Entropy(0, Share(mass())); }
  double Largest() const {
    const T largest = *std::max_element(weights_, weights_ + keys_);
    return std::isnan(mass()) ? mass() : largest;
  }
  // Returns true if there is weight on at least two keys without the first, in numbers with all
  // their digits.
  bool HasOthers() const {
    return keys_ >= 3 && !(others_ < static_cast<double>(std::numeric_limits<T>::min()));
  }

  // Returns the Jensen–Shannon divergence of two rows, in nats.
  static double Divergence(const HeadRow& a, const HeadRow& b) {
    return OrZero(Mixture(a, T(0.5), b, T(0.5), 0) - (a.entropy_ + b.entropy_) / 2);
  }
  // As above without the first key, each row normalised to 1 again. Both must have others.
  static double DivergenceOfOthers(const HeadRow& a, const HeadRow& b) {
    const double entropy = Mixture(a, Share(2 * a.others_), b, Share(2 * b.others_), 1);
    return OrZero(entropy - (a.entropy_of_others_ + b.entropy_of_others_) / 2);
  }

 private:
  static T Share(double of) { return static_cast<T>(1 / of); }
  // A divergence is negative by rounding only. NaN stays.
  static double OrZero(double divergence) { return divergence < 0 ? 0 : divergence; }
  static double Mixture(const HeadRow& a, T p, const HeadRow& b, T q, size_t from) {
    return MixtureEntropy(a.weights_ + from, p, b.weights_ + from, q, a.keys_ - from);
  }
  double Entropy(size_t from, T scale) const { return Mixture(*this, scale, *this, 0, from); }

  const T* weights_;
  size_t keys_;
  double others_ = 0;  // the weight on all keys except the first
  double entropy_;
  double entropy_of_others_ = 0;
};

// Returns 1 if the head is the candidate that gets the largest weight, else 0; NaN if a weight is.
// The weight of a word is the sum over its tokens, for all tokens of the attending word. `map` is
// [T, T]. Of equal candidates the first one counts.
template <typename T>
double AttendsToHead(const T* map, int64_t length, const std::vector<TokenSpan>& words,
                     const DependentWord& dependent) {
  const TokenSpan query = words[dependent.word];
  double largest = -1;
  size_t most = 0;
  for (const size_t candidate : dependent.candidates) {
    double weight = 0;
    for (int64_t row = query.first; row <= query.last; ++row) {
      for (int64_t key = words[candidate].first; key <= words[candidate].last; ++key) {
        weight += map[row * length + key];
      }
    }
    if (std::isnan(weight)) return weight;
    if (weight <= largest) continue;
    largest = weight;
    most = candidate;
  }
  return most == dependent.head ? 1 : 0;
}

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
    matches_ = at::zeros({layers, heads}, at::kDouble);
    if (options.dependency.empty()) return;
    words_ = SelectDependents(options.dependency, model_.attention.causal, *analysis.tagged);
    int64_t row = 0;
    for (const TokenBatch& batch : analysis.batches) {
      first_rows_.push_back(row);
      row += batch.rows;
    }
  }

  int64_t pieces() const override { return analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const at::NoGradGuard no_grad;
    const TokenBatch& batch = analysis_.Batch(piece);
    const int64_t length = batch.length;
    const CountedRows rows = RowsOf(length);
    std::vector<BlockAttention> blocks(static_cast<size_t>(model_.layers));
    std::vector<at::Tensor> maps;
    std::vector<double> means;
    at::Tensor matches = at::zeros_like(matches_);
    at::Tensor everywhere =
        at::zeros({batch.rows, length, length}, subject_.values.options().dtype(at::kDouble));
    std::vector<std::pair<std::string, Hook>> observers;
    for (int i = 0; i < model_.layers; ++i) {
      const auto look = [&, i](const at::Tensor& of_heads) {
        const at::Tensor weights =
            of_heads.contiguous().view({batch.rows, model_.heads, length, length});
        const at::Tensor mean = weights.mean(1, /*keepdim=*/false, at::kDouble);  // [B, T, T]
        blocks[static_cast<size_t>(i)] = SumsOf(weights, rows);
        means.push_back(SumOfEvenness(mean, rows));
        everywhere += mean / model_.layers;
        if (!options_.maps.empty()) maps.push_back(weights[0]);
        if (!options_.dependency.empty()) AddMatches(piece, OnHost(weights), matches[i]);
      };
      observers.emplace_back(HookPointName(HookPoint::kAttentionWeights, i), Observe(look));
    }
    const Hooks hooks = HooksOf(analysis_, model_, std::move(observers));
    TokenBatch read = batch;
    read.targets.assign(read.inputs.size(), 0);  // targets are unused
    HeadInput(model_, subject_.parameters, TensorsOf(read, subject_.values.options()),
              {.hooks = &hooks});
    means.push_back(SumOfEvenness(everywhere, rows));
    const at::Tensor all_means = at::tensor(means, at::kDouble);
    if (!maps.empty()) maps_.copy_(at::stack(maps));
    for (int64_t i = 0; i < model_.layers; ++i) {
      heads_[i] += blocks[static_cast<size_t>(i)].heads;
      const at::Tensor& pairs = blocks[static_cast<size_t>(i)].pairs;
      pairs_[i] += pairs + pairs.transpose(0, 1);
    }
    means_ += all_means;
    matches_ += matches;
    rows_ += static_cast<double>(batch.rows * (length - rows.first));
  }

  std::vector<StateTensor> State() override {
    return {{"heads", heads_}, {"pairs", pairs_}, {"means", means_},
            {"rows", rows_},   {"maps", maps_},   {"matches", matches_}};
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
    if (!options_.dependency.empty()) AddDependency(&result);
    AddMaps(&result);
    return result;
  }

 private:
  bool Normalised() const { return HasNormalisedRows(model_); }

  // Returns the rows with at least two keys to choose from.
  CountedRows RowsOf(int64_t length) const {
    const bool causal = model_.attention.causal;
    return {causal || length == 1 ? 1 : 0, length, causal};
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

  BlockAttention SumsOf(const at::Tensor& weights, const CountedRows& rows) const {
    if (!weights.is_cpu()) return BlockSumsOnDevice(weights, rows, Normalised());
    return weights.scalar_type() == at::kDouble ? LookAt<double>(weights, rows)
                                                : LookAt<float>(weights, rows);
  }

  // Measures weights [B, H, T, T], contiguous.
  template <typename T>
  BlockAttention LookAt(const at::Tensor& weights, const CountedRows& rows) const {
    BlockAttention block;
    block.heads = at::zeros({model_.heads, kHeadSums}, at::kDouble);
    block.pairs = at::zeros({model_.heads, model_.heads, kPairSums}, at::kDouble);
    const T* const values = weights.const_data_ptr<T>();
    for (int64_t sequence = 0; sequence < weights.size(0); ++sequence) {
      for (int64_t row = rows.first; row < rows.length; ++row) {
        std::vector<HeadRow<T>> heads;
        heads.reserve(static_cast<size_t>(model_.heads));
        for (int64_t h = 0; h < model_.heads; ++h) {
          const int64_t at = ((sequence * model_.heads + h) * rows.length + row) * rows.length;
          heads.emplace_back(values + at, rows.Keys(row));
        }
        AddHeads(heads, rows.Keys(row), block.heads.mutable_data_ptr<double>());
        if (Normalised()) AddPairs(heads, block.pairs.mutable_data_ptr<double>());
      }
    }
    return block;
  }

  // Adds a row to sums [H, kHeadSums].
  template <typename T>
  void AddHeads(const std::vector<HeadRow<T>>& heads, int64_t keys, double* sums) const {
    for (const HeadRow<T>& head : heads) {
      sums[kRowEntropy] += Evenness(Normalised() ? head.entropy() : head.ShareEntropy(), keys);
      sums[kLargestWeight] += head.Largest();
      sums[kFirstToken] += head.first();
      sums[kRowMass] += head.mass();
      sums += kHeadSums;
    }
  }

  // Adds a row to sums [H, H, kPairSums]. The variant without the first token, which most heads of
  // trained models attend to, only counts rows with at least two other keys.
  template <typename T>
  static void AddPairs(const std::vector<HeadRow<T>>& heads, double* sums) {
    for (size_t h = 0; h < heads.size(); ++h) {
      for (size_t g = h + 1; g < heads.size(); ++g) {
        double* const pair = sums + (h * heads.size() + g) * kPairSums;
        pair[kDistance] += HeadRow<T>::Divergence(heads[h], heads[g]);
        if (!heads[h].HasOthers() || !heads[g].HasOthers()) continue;
        pair[kDistanceWithoutFirst] += HeadRow<T>::DivergenceOfOthers(heads[h], heads[g]);
        ++pair[kRowsWithoutFirst];
      }
    }
  }

  // Adds the words of a batch that attend to their syntactic heads to sums [H], from weights
  // [B, H, T, T] on the host.
  void AddMatches(int64_t piece, const at::Tensor& weights, const at::Tensor& sums) const {
    weights.scalar_type() == at::kDouble ? AddMatchesOf<double>(piece, weights, sums)
                                         : AddMatchesOf<float>(piece, weights, sums);
  }
  template <typename T>
  void AddMatchesOf(int64_t piece, const at::Tensor& weights, const at::Tensor& sums) const {
    const at::Tensor whole = weights.contiguous();
    const int64_t length = weights.size(-1);
    const T* map = whole.const_data_ptr<T>();
    auto* const of_heads = sums.mutable_data_ptr<double>();
    for (int64_t row = 0; row < weights.size(0); ++row) {
      const auto at = static_cast<size_t>(first_rows_[static_cast<size_t>(piece)] + row);
      for (int64_t h = 0; h < model_.heads; ++h, map += length * length) {
        for (const DependentWord& dependent : words_.of_rows[at]) {
          of_heads[h] += AttendsToHead(map, length, analysis_.tagged->rows[at].words, dependent);
        }
      }
    }
  }

  // Adds the share of words that attend most to their syntactic head: of each head, the largest of
  // each block and of the model, and the shares without attention.
  void AddDependency(AnalysisResult* result) const {
    const auto words = static_cast<double>(words_.words);
    const at::Tensor shares = matches_ / words;
    const auto add = [&](const std::string& name, double value) {
      result->numbers.push_back(NumberOf(name, value));
    };
    add("dependency", shares.max().item<double>());
    for (int64_t i = 0; i < model_.layers; ++i) {
      add(absl::StrCat("dependency/block.", i), shares[i].max().item<double>());
    }
    for (int64_t i = 0; i < model_.layers; ++i) {
      for (int64_t h = 0; h < model_.heads; ++h) {
        add(absl::StrCat("dependency/block.", i, ".head.", h), shares[i][h].item<double>());
      }
    }
    add("dependency_offset", static_cast<double>(words_.at_offset) / words);
    add("dependency_chance", words_.chance / words);
    add("dependency_words", words);
    result->arrays.push_back(ArrayOf("dependency", {"block", "head"}, shares));
    result->notes.push_back(
        absl::StrCat("the best fixed offset from a word to its head is ", words_.offset, " words"));
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
  at::Tensor heads_;       // [layers, H, kHeadSums]
  at::Tensor pairs_;       // [layers, H, H, kPairSums]
  at::Tensor means_;       // evenness of the mean map: by block, then overall, [layers + 1]
  at::Tensor rows_;        // rows with a choice, []
  at::Tensor maps_;        // maps of a prompt, [layers, H, T, T]; T is 0 if none is requested
  at::Tensor matches_;     // words that attend to their syntactic head, [layers, H]
  DependencyWords words_;  // none without the option
  std::vector<int64_t> first_rows_;  // of each batch, among all rows; empty without the option
};

}  // namespace

MadeComputation Compute(const AttentionOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<AttentionLook>(options, analysis);
}

}  // namespace ablate::engine
