#include "server/report/compare/paired.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"

namespace ablate::report {
namespace {

using Sizes = absl::Span<const double>;  // absolute differences, largest first

// Returns the 2^k sums ±x0 ± … ± x(k-1); bit i of the index is set if x(i) counts as positive.
std::vector<double> SumsOfAllSigns(Sizes sizes) {
  std::vector<double> sums{0.0};
  for (const double size : sizes) {
    const size_t half = sums.size();
    sums.resize(2 * half);
    for (size_t i = 0; i < half; ++i) {
      sums[half + i] = sums[i] + size;
      sums[i] -= size;
    }
  }
  return sums;
}

// Returns the fraction of all patterns with |sum| >= threshold > 0. Sums come in pairs of opposite
// sign, so the first difference keeps its sign; the others are two halves of about √(2^n) sums
// each, one of them sorted.
double ExactShare(Sizes sizes, double threshold) {
  const Sizes rest = sizes.subspan(1);
  const size_t middle = rest.size() / 2;
  std::vector<double> sorted = SumsOfAllSigns(rest.subspan(0, middle));
  std::sort(sorted.begin(), sorted.end());
  const std::vector<double> others = SumsOfAllSigns(rest.subspan(middle));
  size_t count = 0;
  for (const double other : others) {
    const double fixed = sizes[0] + other;
    const auto high = std::lower_bound(sorted.begin(), sorted.end(), threshold - fixed);
    const auto low = std::upper_bound(sorted.begin(), sorted.end(), -threshold - fixed);
    count += static_cast<size_t>((sorted.end() - high) + (low - sorted.begin()));
  }
  return static_cast<double>(count) / static_cast<double>(sorted.size() * others.size());
}

// With more pairs fewer patterns are drawn, and no resamples, because each takes a while.
constexpr size_t kManyPairs = 10'000;

// Returns (c+1)/(B+1), where c of B drawn patterns reach the threshold.
double DrawnShare(Sizes sizes, double threshold) {
  const size_t draws = sizes.size() > kManyPairs ? 10'000 : 100'000;
  constexpr size_t kSigns = 8;
  std::vector<std::vector<double>> tables;
  for (size_t first = 0; first < sizes.size(); first += kSigns) {
    tables.push_back(SumsOfAllSigns(sizes.subspan(first, kSigns)));
  }
  RandomStream random(kResamplingSeed);
  size_t count = 0;
  for (size_t draw = 0; draw < draws; ++draw) {
    double sum = 0;
    uint64_t signs = 0;
    for (size_t i = 0; i < tables.size(); ++i) {
      signs = i % kSigns == 0 ? random.Next() : signs >> kSigns;
      sum += tables[i][signs & (tables[i].size() - 1)];
    }
    count += std::abs(sum) >= threshold;
  }
  return static_cast<double>(count + 1) / static_cast<double>(draws + 1);
}

}  // namespace

SignFlipResult SignFlipTest(absl::Span<const double> differences, size_t exact_up_to) {
  SignFlipResult result;
  result.exact = differences.size() <= exact_up_to;
  if (differences.size() < 2) {
    result.p = NoNumber(Undefined::kTooFewPairs);
    return result;
  }
  CompensatedSum sum;
  std::vector<double> sizes;
  for (const double difference : differences) {
    sum.Add(difference);
    sizes.push_back(std::abs(difference));
  }
  // Every difference finite, and no sum of them too large.
  const double observed = std::abs(sum.Total());
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  CompensatedSum largest_sum;
  for (const double size : sizes) largest_sum.Add(size);
  if (!std::isfinite(largest_sum.Total())) {
    result.p = NoNumber(Undefined::kNonFinite);
    return result;
  }
  const auto zeros = std::find(sizes.begin(), sizes.end(), 0.0);
  if (zeros != sizes.begin() && *(zeros - 1) >= sizes[0] * (1 - kTie)) {
    // McNemar's exact test.
    const auto more = static_cast<size_t>(std::count_if(differences.begin(), differences.end(),
                                                        [](double value) { return value > 0; }));
    const auto nonzero = static_cast<size_t>(zeros - sizes.begin());
    return {SignTest(more, nonzero - more), /*exact=*/true};
  }
  const double threshold = observed - kTie * std::max(observed, sizes[0]);
  if (threshold <= 0) {
    result.p = Defined(1);  // every sum is at least 0
  } else {
    result.p = Defined(result.exact ? ExactShare(sizes, threshold) : DrawnShare(sizes, threshold));
  }
  return result;
}

namespace {

using Values = absl::Span<const double>;

BootstrapResult Nothing(Undefined reason) {
  return {NoInterval(reason), NoNumber(reason), NoNumber(reason)};
}

// Returns z0: the normal quantile of the fraction of resamples below the estimate.
Number Bias(Values ascending, double estimate, double tie) {
  const auto below = std::lower_bound(ascending.begin(), ascending.end(), estimate - tie);
  const auto above = std::upper_bound(below, ascending.end(), estimate + tie);
  const auto less = static_cast<double>(below - ascending.begin());
  const auto equal = static_cast<double>(above - below);
  return Defined(NormalQuantile((less + equal / 2) / static_cast<double>(ascending.size())));
}

// Returns the skewness of the mean over samples that leave one value out. The mean without a value
// is apart from the mean by its distance, divided by n − 1 for each value alike.
Number Acceleration(Values sample) {
  const Number mean = Mean(sample);
  if (!mean.defined()) return mean;
  CompensatedSum squares, cubes;
  for (const double value : sample) {
    const double pull = value - mean.value;
    squares.Add(pull * pull);
    cubes.Add(pull * pull * pull);
  }
  return Defined(cubes.Total() / (6 * std::pow(squares.Total(), 1.5)));
}

Interval BcaInterval(Values ascending, double bias, double acceleration) {
  double ends[2];
  for (const int side : {0, 1}) {
    const double z =
        bias + NormalQuantile(side == 0 ? (1 - kConfidence) / 2 : (1 + kConfidence) / 2);
    const double level = NormalProbability(bias + z / (1 - acceleration * z));
    if (!std::isfinite(level)) return NoInterval(Undefined::kNonFinite);
    ends[side] = SortedQuantile(ascending, level);
  }
  return DefinedInterval(std::min(ends[0], ends[1]), std::max(ends[0], ends[1]));
}

// Runs the bootstrap. `draw` fills the indices of one resample; it is called `resamples` times, in
// order.
BootstrapResult Run(Values sample, size_t resamples,
                    absl::FunctionRef<void(absl::Span<uint32_t>)> draw) {
  if (sample.size() < 2 || resamples == 0) return Nothing(Undefined::kTooFewPairs);
  const Number deviation = StandardDeviation(sample);
  const Number estimate = Mean(sample);
  if (!deviation.defined()) return Nothing(deviation.undefined);
  if (!estimate.defined()) return Nothing(estimate.undefined);

  std::vector<double> estimates, resample(sample.size());
  std::vector<uint32_t> indices(sample.size());
  double largest = 0;
  for (const double value : sample) largest = std::max(largest, std::abs(value));
  for (size_t b = 0; b < resamples; ++b) {
    draw(absl::MakeSpan(indices));
    for (size_t i = 0; i < indices.size(); ++i) resample[i] = sample[indices[i]];
    const Number value = Mean(resample);
    if (!value.defined()) return Nothing(value.undefined);
    estimates.push_back(value.value);
  }
  std::sort(estimates.begin(), estimates.end());

  BootstrapResult result;
  result.bias = Bias(estimates, estimate.value, kTie * largest);
  result.acceleration = Acceleration(sample);
  for (const Number& part : {result.bias, result.acceleration}) {
    if (!part.defined()) {
      result.interval = NoInterval(part.undefined);
      return result;
    }
  }
  result.interval = BcaInterval(estimates, result.bias.value, result.acceleration.value);
  return result;
}

}  // namespace

BootstrapResult Bootstrap(Values sample, size_t resamples) {
  RandomStream random(kResamplingSeed);
  const auto n = static_cast<uint32_t>(sample.size());
  const auto draw = [&](absl::Span<uint32_t> indices) {
    for (uint32_t& index : indices) index = random.Below(n);
  };
  return Run(sample, resamples, draw);
}

BootstrapResult BootstrapFromIndices(Values sample, absl::Span<const uint32_t> indices) {
  size_t next = 0;
  const auto draw = [&](absl::Span<uint32_t> resample) {
    for (uint32_t& index : resample) index = indices[next++];
  };
  return Run(sample, sample.empty() ? 0 : indices.size() / sample.size(), draw);
}

namespace {

// Converts kTooFewRuns to kTooFewPairs: here a sample's values are pairs.
template <typename T>
T OverPairs(T result) {
  if (result.undefined == Undefined::kTooFewRuns) result.undefined = Undefined::kTooFewPairs;
  return result;
}

}  // namespace

PairedStatistics ComparePairs(absl::Span<const double> setting, absl::Span<const double> baseline,
                              size_t resamples, Signs signs) {
  std::vector<double> differences;
  double magnitude = 0;
  for (size_t i = 0; i < setting.size(); ++i) {
    differences.push_back(DifferenceOf(setting[i], baseline[i]));
    magnitude = std::max({magnitude, std::abs(setting[i]), std::abs(baseline[i])});
  }
  PairedStatistics result;
  result.n = differences.size();
  const auto n = static_cast<double>(result.n);
  result.mean = OverPairs(Mean(differences));
  // Opposite differences leave rounding.
  result.mean.value = WithoutRounding(result.mean.value, magnitude);
  result.deviation = OverPairs(StandardDeviation(differences, magnitude));
  result.interval = MeanInterval(result.mean, result.deviation, result.n);
  result.effect = Quotient(result.mean, result.deviation);
  result.t = result.effect;
  result.p_t = result.effect;
  result.effect_unbiased = result.effect;
  if (result.effect.defined()) {
    result.t = Defined(result.effect.value * std::sqrt(n));
    result.p_t = Defined(StudentTwoSidedP(result.t.value, n - 1));
    result.effect_unbiased = result.n < 3 ? NoNumber(Undefined::kTooFewPairs)
                                          : Defined(result.effect.value * HedgesFactor(n - 1));
  }
  SignFlipResult flips{NoNumber(Undefined::kNotRecorded)};
  if (signs == Signs::kFlip) flips = SignFlipTest(differences);
  result.p_sign_flip = flips.p;
  result.exact = flips.exact;
  result.skewness = OverPairs(Skewness(differences, result.deviation));
  result.correlation = OverPairs(Correlation(setting, baseline));
  // Differences that differ by rounding only have no interval of any kind.
  result.bca =
      NoInterval(result.deviation.defined() ? Undefined::kTooFewPairs : result.deviation.undefined);
  if (result.n > kManyPairs) {
    result.bca = NoInterval(Undefined::kBeyondLimit);
  } else if (result.deviation.defined() && resamples > 0) {
    result.bca = OverPairs(Bootstrap(differences, resamples).interval);
  }
  return result;
}

Number EquivalenceTest(const PairedStatistics& pairs, double margin) {
  if (!pairs.deviation.defined()) return NoNumber(pairs.deviation.undefined);
  const double error = pairs.deviation.value / std::sqrt(static_cast<double>(pairs.n));
  const double t = (margin - std::abs(pairs.mean.value)) / error;
  const double beyond = StudentTwoSidedP(t, static_cast<double>(pairs.n - 1)) / 2;
  return Defined(t > 0 ? beyond : 1 - beyond);
}

PairedStatistics NoPairs(Undefined reason) {
  PairedStatistics none;
  for (Number* number : {&none.mean, &none.deviation, &none.t, &none.p_t, &none.p_sign_flip,
                         &none.effect, &none.effect_unbiased, &none.skewness, &none.correlation}) {
    *number = NoNumber(reason);
  }
  none.interval = NoInterval(reason);
  none.bca = NoInterval(reason);
  return none;
}

}  // namespace ablate::report
