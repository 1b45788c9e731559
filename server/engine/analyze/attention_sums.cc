#include "server/engine/analyze/attention_sums.h"

#include <limits>

#include "server/engine/analyze/analysis_context.h"

namespace ablate::engine {
namespace {

// Returns −Σ w ln w over the last axis, float64, where 0·ln 0 = 0.
at::Tensor EntropyOf(const at::Tensor& w) { return -at::xlogy(w, w).sum(-1, false, at::kDouble); }

// Returns the entropy of weights divided by their sum, from both.
at::Tensor ShareEntropyOf(const at::Tensor& entropy, const at::Tensor& sum) {
  return entropy / sum + sum.log();
}

// Returns the keys of each counted row, [T'] float64.
at::Tensor KeysOf(const CountedRows& rows, at::Device device) {
  const at::TensorOptions exact = at::TensorOptions(at::kDouble).device(device);
  if (!rows.causal) return at::full({rows.length - rows.first}, rows.length, exact);
  return at::arange(rows.first + 1, rows.length + 1, exact);
}

// The counted rows of one sequence, and the sums that its pairs of heads share.
class SequenceRows {
 public:
  SequenceRows(const at::Tensor& weights, const at::Tensor& keys)
      : w_(weights), keys_(keys), rest_(weights.narrow(-1, 1, weights.size(-1) - 1)) {
    others_ = rest_.sum(-1, false, at::kDouble);  // [H, T']
    const double least = weights.scalar_type() == at::kDouble
                             ? std::numeric_limits<double>::min()
                             : static_cast<double>(std::numeric_limits<float>::min());
    has_others_ = others_.lt(least).logical_not().logical_and(keys.ge(3));
    entropy_ = EntropyOf(w_);
    entropy_of_others_ = ShareEntropyOf(EntropyOf(rest_), others_);
  }

  // Returns [H, kHeadSums].
  at::Tensor Heads(bool normalised) const {
    const at::Tensor mass = w_.select(-1, 0).to(at::kDouble) + others_;
    const at::Tensor entropy = normalised ? entropy_ : ShareEntropyOf(entropy_, mass);
    return at::stack({(entropy / keys_.log()).sum(1), w_.amax(-1).to(at::kDouble).sum(1),
                      w_.select(-1, 0).sum(1, false, at::kDouble), mass.sum(1)},
                     1);
  }

  // Returns the sums of head h with the later ones, [H − h − 1, kPairSums].
  at::Tensor Pairs(int64_t h) const {
    const int64_t count = w_.size(0) - h - 1;
    const auto later = [&](const at::Tensor& x) { return x.narrow(0, h + 1, count); };
    const auto mean = [&](const at::Tensor& x) { return (x[h] + later(x)) / 2; };
    const at::Tensor apart =
        EntropyOf(w_[h].add(later(w_)).mul_(0.5)).sub_(mean(entropy_)).clamp_min_(0);
    // Each row without its first key, normalised to 1 again.
    const auto share = [&](const at::Tensor& x, const at::Tensor& sum) {
      return x * (0.5 / sum).to(x.scalar_type()).unsqueeze(-1);
    };
    const at::Tensor mixed = share(rest_[h], others_[h]) + share(later(rest_), later(others_));
    const at::Tensor both = has_others_[h].logical_and(later(has_others_));
    const at::Tensor apart_without_first = EntropyOf(mixed)
                                               .sub_(mean(entropy_of_others_))
                                               .clamp_min_(0)
                                               .masked_fill(both.logical_not(), 0);
    return at::stack({apart.sum(1), apart_without_first.sum(1), both.sum(1).to(at::kDouble)}, 1);
  }

 private:
  const at::Tensor w_;                      // [H, T', T]
  const at::Tensor keys_;                   // [T']
  const at::Tensor rest_;                   // without the first key, [H, T', T − 1]
  at::Tensor others_;                       // its sums, [H, T']
  at::Tensor has_others_;                   // as HeadRow::HasOthers, [H, T']
  at::Tensor entropy_, entropy_of_others_;  // [H, T']
};

}  // namespace

BlockAttention BlockSumsOnDevice(const at::Tensor& weights, const CountedRows& rows,
                                 bool normalised) {
  const int64_t heads = weights.size(1);
  const at::TensorOptions exact = weights.options().dtype(at::kDouble);
  const at::Tensor keys = KeysOf(rows, weights.device());
  at::Tensor head_sums = at::zeros({heads, kHeadSums}, exact);
  at::Tensor pair_sums = at::zeros({heads, heads, kPairSums}, exact);
  // Sequences of one token have no row with a choice.
  if (keys.size(0) == 0) return {OnHost(head_sums), OnHost(pair_sums)};
  for (int64_t sequence = 0; sequence < weights.size(0); ++sequence) {
    const SequenceRows of(weights[sequence].narrow(1, rows.first, keys.size(0)), keys);
    head_sums += of.Heads(normalised);
    for (int64_t h = 0; normalised && h + 1 < heads; ++h) {
      pair_sums[h].narrow(0, h + 1, heads - h - 1) += of.Pairs(h);
    }
  }
  return {OnHost(head_sums), OnHost(pair_sums)};
}

double SumOfEvennessOnDevice(const at::Tensor& maps, const CountedRows& rows) {
  const at::Tensor keys = KeysOf(rows, maps.device());
  return (EntropyOf(maps.narrow(-2, rows.first, keys.size(0))) / keys.log()).sum().item<double>();
}

}  // namespace ablate::engine
