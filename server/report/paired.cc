// Paired differences and everything that is said about them.
#include "server/report/paired.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "server/report/bootstrap.h"
#include "server/report/sign_flip.h"
#include "server/report/statistics.h"

namespace ablate::report {
namespace {

// What is too few values for a sample is too few pairs here.
template <typename T>
T OverPairs(T result) {
  if (result.undefined == Undefined::kTooFewRuns) result.undefined = Undefined::kTooFewPairs;
  return result;
}

// `numerator` / `denominator`; undefined as the denominator, then as the numerator.
Number Quotient(const Number& numerator, const Number& denominator) {
  if (!denominator.defined()) return denominator;
  if (!numerator.defined()) return numerator;
  return Defined(numerator.value / denominator.value);
}

}  // namespace

PairedStatistics ComparePairs(absl::Span<const double> setting, absl::Span<const double> baseline,
                              size_t resamples) {
  std::vector<double> differences;
  double magnitude = 0;
  for (size_t i = 0; i < setting.size(); ++i) {
    differences.push_back(setting[i] - baseline[i]);
    magnitude = std::max({magnitude, std::abs(setting[i]), std::abs(baseline[i])});
  }
  PairedStatistics result;
  result.n = differences.size();
  const auto n = static_cast<double>(result.n);
  result.mean = OverPairs(Mean(differences));
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
  const SignFlipResult flips = SignFlipTest(differences);
  result.p_sign_flip = flips.p;
  result.exact = flips.exact;
  result.correlation = OverPairs(Correlation(setting, baseline));
  // Differences that only rounding tells apart have no interval of any kind.
  result.bca =
      NoInterval(result.deviation.defined() ? Undefined::kTooFewPairs : result.deviation.undefined);
  if (result.deviation.defined() && resamples > 0) {
    BootstrapOptions options;
    options.resamples = resamples;
    result.bca = OverPairs(Bootstrap(differences, Mean, options).bca);
  }
  return result;
}

PairedStatistics NoPairs(Undefined reason) {
  PairedStatistics none;
  for (Number* number : {&none.mean, &none.deviation, &none.t, &none.p_t, &none.p_sign_flip,
                         &none.effect, &none.effect_unbiased, &none.correlation}) {
    *number = NoNumber(reason);
  }
  none.interval = NoInterval(reason);
  none.bca = NoInterval(reason);
  return none;
}

}  // namespace ablate::report
