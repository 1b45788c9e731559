#include "server/engine/analyze/sentence_bootstrap.h"

#include <algorithm>
#include <cmath>

#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

constexpr size_t kResamples = 1000;

// Returns a quantile of ascending values (type 7).
double QuantileOf(const std::vector<double>& ascending, double probability) {
  const double place = probability * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, ascending.size() - 1);
  return std::lerp(ascending[below], ascending[above], place - static_cast<double>(below));
}

}  // namespace

std::vector<Interval> BootstrapIntervals(absl::Span<const size_t> words,
                                         const std::vector<std::vector<int64_t>>& correct,
                                         uint64_t key) {
  std::vector<std::vector<double>> accuracies(correct.size());
  std::vector<int64_t> right(correct.size());
  SplitMix64 draws(key);
  for (size_t resample = 0; resample < kResamples; ++resample) {
    std::fill(right.begin(), right.end(), 0);
    size_t drawn = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      const auto sentence = static_cast<size_t>(draws.Below(words.size()));
      drawn += words[sentence];
      for (size_t of = 0; of < correct.size(); ++of) right[of] += correct[of][sentence];
    }
    for (size_t of = 0; of < correct.size(); ++of) {
      accuracies[of].push_back(static_cast<double>(right[of]) / static_cast<double>(drawn));
    }
  }
  std::vector<Interval> intervals;
  for (std::vector<double>& of : accuracies) {
    std::sort(of.begin(), of.end());
    intervals.push_back({QuantileOf(of, 0.025), QuantileOf(of, 0.975)});
  }
  return intervals;
}

}  // namespace ablate::engine
