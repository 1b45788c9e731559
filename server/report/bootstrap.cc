// Resampling, the jackknife and the corrected levels of BCa.
#include "server/report/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "server/report/compensated_sum.h"
#include "server/report/random_stream.h"

namespace ablate::report {
namespace {

using Values = absl::Span<const double>;

BootstrapResult Nothing(Undefined reason) {
  return {NoInterval(reason), NoInterval(reason), NoNumber(reason), NoNumber(reason)};
}

// z0: the normal quantile of the share of resamples below the estimate.
Number Bias(Values ascending, double estimate, double tie) {
  const auto below = std::lower_bound(ascending.begin(), ascending.end(), estimate - tie);
  const auto above = std::upper_bound(below, ascending.end(), estimate + tie);
  const auto less = static_cast<double>(below - ascending.begin());
  const auto equal = static_cast<double>(above - below);
  return Defined(NormalQuantile((less + equal / 2) / static_cast<double>(ascending.size())));
}

// Skewness of the statistic over samples that leave one value out.
Number Acceleration(Values sample, Statistic statistic) {
  std::vector<double> estimates;
  for (size_t left_out = 0; left_out < sample.size(); ++left_out) {
    std::vector<double> rest(sample.begin(), sample.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
    const Number estimate = statistic(rest);
    if (!estimate.defined()) return estimate;
    estimates.push_back(estimate.value);
  }
  const Number center = Mean(estimates);
  if (!center.defined()) return center;
  CompensatedSum squares, cubes;
  for (const double estimate : estimates) {
    const double pull = center.value - estimate;
    squares.Add(pull * pull);
    cubes.Add(pull * pull * pull);
  }
  return Defined(cubes.Total() / (6 * std::pow(squares.Total(), 1.5)));
}

Interval BcaInterval(Values ascending, double bias, double acceleration, double confidence) {
  double ends[2];
  for (const int side : {0, 1}) {
    const double z = bias + NormalQuantile(side == 0 ? (1 - confidence) / 2 : (1 + confidence) / 2);
    const double level = NormalProbability(bias + z / (1 - acceleration * z));
    if (!std::isfinite(level)) return NoInterval(Undefined::kNonFinite);
    ends[side] = SortedQuantile(ascending, level);
  }
  return DefinedInterval(std::min(ends[0], ends[1]), std::max(ends[0], ends[1]));
}

// `draw` fills the indices of one resample; called `resamples` times, in order.
BootstrapResult Run(Values sample, size_t resamples,
                    absl::FunctionRef<void(absl::Span<uint32_t>)> draw, Statistic statistic,
                    double confidence) {
  if (sample.size() < 2 || resamples == 0) return Nothing(Undefined::kTooFewPairs);
  const Number deviation = StandardDeviation(sample);
  const Number estimate = statistic(sample);
  if (!deviation.defined()) return Nothing(deviation.undefined);
  if (!estimate.defined()) return Nothing(estimate.undefined);

  std::vector<double> estimates, resample(sample.size());
  std::vector<uint32_t> indices(sample.size());
  double largest = 0;
  for (const double value : sample) largest = std::max(largest, std::abs(value));
  for (size_t b = 0; b < resamples; ++b) {
    draw(absl::MakeSpan(indices));
    for (size_t i = 0; i < indices.size(); ++i) resample[i] = sample[indices[i]];
    const Number value = statistic(resample);
    if (!value.defined()) return Nothing(value.undefined);
    estimates.push_back(value.value);
  }
  std::sort(estimates.begin(), estimates.end());

  BootstrapResult result;
  result.percentile = DefinedInterval(SortedQuantile(estimates, (1 - confidence) / 2),
                                      SortedQuantile(estimates, (1 + confidence) / 2));
  result.bias = Bias(estimates, estimate.value, kTie * largest);
  result.acceleration = Acceleration(sample, statistic);
  for (const Number& part : {result.bias, result.acceleration}) {
    if (!part.defined()) {
      result.bca = NoInterval(part.undefined);
      return result;
    }
  }
  result.bca = BcaInterval(estimates, result.bias.value, result.acceleration.value, confidence);
  return result;
}

}  // namespace

BootstrapResult Bootstrap(Values sample, Statistic statistic, const BootstrapOptions& options) {
  RandomStream random(options.seed);
  const auto n = static_cast<uint32_t>(sample.size());
  const auto draw = [&](absl::Span<uint32_t> indices) {
    for (uint32_t& index : indices) index = random.Below(n);
  };
  return Run(sample, options.resamples, draw, statistic, options.confidence);
}

BootstrapResult BootstrapFromIndices(Values sample, absl::Span<const uint32_t> indices,
                                     Statistic statistic, double confidence) {
  size_t next = 0;
  const auto draw = [&](absl::Span<uint32_t> resample) {
    for (uint32_t& index : resample) index = indices[next++];
  };
  const size_t resamples = sample.empty() ? 0 : indices.size() / sample.size();
  return Run(sample, resamples, draw, statistic, confidence);
}

}  // namespace ablate::report
