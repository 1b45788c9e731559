#include "server/report/compare/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <iterator>
#include <limits>

namespace ablate::report {

namespace {

// Names of a reason: for scripts, and for people if it isn't obvious.
struct Reason {
  Undefined undefined;
  absl::string_view name, words;
};

constexpr Reason kReasons[] = {
    {Undefined::kNo, "", ""},
    {Undefined::kTooFewRuns, "TOO_FEW_RUNS", "too few runs"},
    {Undefined::kTooFewPairs, "TOO_FEW_PAIRS", "too few pairs"},
    {Undefined::kZeroVariance, "ZERO_VARIANCE", "no spread"},
    {Undefined::kNonFinite, "NON_FINITE", "not finite"},
    {Undefined::kAllDiverged, "ALL_DIVERGED", "all diverged"},
    {Undefined::kTestedByWins, "TESTED_BY_WINS", "tested by wins"},
    {Undefined::kNoBaseline, "NO_BASELINE", "no baseline"},
    {Undefined::kIsBaseline, "IS_BASELINE", ""},
    {Undefined::kBeyondLimit, "BEYOND_LIMIT", "beyond the limit"},
    {Undefined::kNotRecorded, "NOT_RECORDED", "not recorded"},
    {Undefined::kScoredDifferently, "SCORED_DIFFERENTLY", "other evaluation data"},
};

const Reason& Find(Undefined undefined) {
  const Reason* reason =
      std::find_if(std::begin(kReasons), std::end(kReasons),
                   [&](const Reason& one) { return one.undefined == undefined; });
  return reason == std::end(kReasons) ? kReasons[0] : *reason;
}

}  // namespace

absl::string_view UndefinedName(Undefined undefined) { return Find(undefined).name; }

absl::string_view ReasonText(Undefined undefined) { return Find(undefined).words; }

absl::string_view PairReasonText(Undefined undefined) {
  return undefined == Undefined::kAllDiverged ? "no pair converged" : ReasonText(undefined);
}

Number Defined(double value) {
  if (!std::isfinite(value)) return NoNumber(Undefined::kNonFinite);
  return {value, Undefined::kNo};
}

Interval DefinedInterval(double low, double high) {
  if (!std::isfinite(low) || !std::isfinite(high)) return NoInterval(Undefined::kNonFinite);
  return {low, high, Undefined::kNo};
}

double WithoutRounding(double value, double magnitude) {
  return std::abs(value) <= kTie * magnitude ? 0 : value;
}

double DifferenceOf(double a, double b) {
  return WithoutRounding(a - b, std::max(std::abs(a), std::abs(b)));
}

Number Quotient(const Number& numerator, const Number& denominator) {
  if (!denominator.defined()) return denominator;
  if (!numerator.defined()) return numerator;
  return Defined(numerator.value / denominator.value);
}

bool LeavesOutZero(const Interval& interval) {
  return interval.defined() && (interval.low > 0 || interval.high < 0);
}

Number NoNumber(Undefined reason) {
  Number none;
  none.undefined = reason;
  return none;
}

Interval NoInterval(Undefined reason) {
  Interval none;
  none.undefined = reason;
  return none;
}

namespace {

// Makes Boost return NaN or infinity, which Defined() detects, instead of exceptions.
using Quiet = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;
using StudentsT = boost::math::students_t_distribution<double, Quiet>;
using Normal = boost::math::normal_distribution<double, Quiet>;
using Binomial = boost::math::binomial_distribution<double, Quiet>;

double LargestMagnitude(absl::Span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// Sums over the deviations of a sample from `center`.
struct Moments {
  double first = 0, second = 0;
};

Moments MomentsAround(absl::Span<const double> values, double center) {
  CompensatedSum first, second;
  for (const double value : values) {
    first.Add(value - center);
    second.Add((value - center) * (value - center));
  }
  return {first.Total(), second.Total()};
}

// Returns true if a mean square deviation is no more than the rounding of numbers as large as
// `magnitude`.
bool IsRounding(double mean_square, double magnitude) {
  const double noise = 4 * std::numeric_limits<double>::epsilon() * magnitude;
  return mean_square <= noise * noise;
}

}  // namespace

Number Mean(absl::Span<const double> values) {
  if (values.empty()) return NoNumber(Undefined::kTooFewRuns);
  CompensatedSum sum;
  for (const double value : values) {
    if (!std::isfinite(value)) return NoNumber(Undefined::kNonFinite);
    sum.Add(value);
  }
  return Defined(sum.Total() / static_cast<double>(values.size()));
}

Number StandardDeviation(absl::Span<const double> values, double magnitude) {
  if (values.size() < 2) return NoNumber(Undefined::kTooFewRuns);
  const Number mean = Mean(values);
  if (!mean.defined()) return mean;
  const auto n = static_cast<double>(values.size());
  // The first moment is the rounding error of the mean: subtracting it makes the second exact to
  // the last digit.
  const Moments moments = MomentsAround(values, mean.value);
  const double square = moments.second - moments.first * moments.first / n;
  if (IsRounding(square / n, std::max(magnitude, LargestMagnitude(values)))) {
    return NoNumber(Undefined::kZeroVariance);
  }
  return Defined(std::sqrt(square / (n - 1)));
}

Interval MeanInterval(const Number& mean, const Number& deviation, size_t n, double confidence) {
  if (!mean.defined()) return NoInterval(mean.undefined);
  if (!deviation.defined()) return NoInterval(deviation.undefined);
  const auto count = static_cast<double>(n);
  const double quantile = StudentQuantile((1 + confidence) / 2, count - 1);
  const double half = quantile * deviation.value / std::sqrt(count);
  const double magnitude = std::max(std::abs(mean.value), half);
  return DefinedInterval(WithoutRounding(mean.value - half, magnitude),
                         WithoutRounding(mean.value + half, magnitude));
}

double SortedQuantile(absl::Span<const double> ascending, double level) {
  const double position = level * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<size_t>(position);
  if (below + 1 >= ascending.size()) return ascending.back();
  const double share = position - static_cast<double>(below);
  return ascending[below] + share * (ascending[below + 1] - ascending[below]);
}

Number Skewness(absl::Span<const double> values, const Number& deviation) {
  if (values.size() < 3) return NoNumber(Undefined::kTooFewRuns);
  if (!deviation.defined()) return deviation;
  const double mean = Mean(values).value;
  CompensatedSum squares, cubes;
  for (const double value : values) {
    const double apart = (value - mean) / deviation.value;
    squares.Add(apart * apart);
    cubes.Add(apart * apart * apart);
  }
  const auto n = static_cast<double>(values.size());
  return Defined(cubes.Total() / n / std::pow(squares.Total() / n, 1.5));
}

Number Correlation(absl::Span<const double> x, absl::Span<const double> y) {
  if (x.size() < 3) return NoNumber(Undefined::kTooFewRuns);
  const Number mean_x = Mean(x), mean_y = Mean(y);
  if (!mean_x.defined()) return mean_x;
  if (!mean_y.defined()) return mean_y;
  const auto n = static_cast<double>(x.size());
  const double square_x = MomentsAround(x, mean_x.value).second;
  const double square_y = MomentsAround(y, mean_y.value).second;
  if (IsRounding(square_x / n, LargestMagnitude(x)) ||
      IsRounding(square_y / n, LargestMagnitude(y))) {
    return NoNumber(Undefined::kZeroVariance);
  }
  CompensatedSum product;
  for (size_t i = 0; i < x.size(); ++i) product.Add((x[i] - mean_x.value) * (y[i] - mean_y.value));
  const double r = product.Total() / (std::sqrt(square_x) * std::sqrt(square_y));
  return Defined(std::isfinite(r) ? std::clamp(r, -1.0, 1.0) : r);
}

double StudentTwoSidedP(double t, double freedom) {
  return 2 * cdf(complement(StudentsT(freedom), std::abs(t)));
}

double StudentQuantile(double level, double freedom) { return quantile(StudentsT(freedom), level); }

double NormalProbability(double z) { return cdf(Normal(), z); }

double NormalQuantile(double level) { return quantile(Normal(), level); }

double HedgesFactor(double freedom) {
  if (freedom <= 1) return 0;
  return 1 / (boost::math::tgamma_delta_ratio((freedom - 1) / 2, 0.5, Quiet()) *
              std::sqrt(freedom / 2));
}

std::vector<Number> HolmAdjust(absl::Span<const Number> p) {
  std::vector<size_t> order;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i].defined()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p[a].value < p[b].value; });
  std::vector<Number> adjusted(p.begin(), p.end());
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto untested = static_cast<double>(p.size() - rank);
    largest = std::max(largest, std::min(1.0, untested * p[order[rank]].value));
    adjusted[order[rank]] = Defined(largest);
  }
  return adjusted;
}

Number SignTest(size_t wins, size_t losses) {
  if (wins + losses == 0) return NoNumber(Undefined::kTooFewPairs);
  const Binomial coin(static_cast<double>(wins + losses), 0.5);
  return Defined(std::min(1.0, 2 * cdf(coin, static_cast<double>(std::min(wins, losses)))));
}

size_t LeastSeedsForSignFlip(size_t family) {
  size_t n = 1;
  auto least = static_cast<double>(family);  // Holm's factor times 2^(1-n)
  while (least > kAlpha) {
    least /= 2;
    ++n;
  }
  return n;
}

Summary Summarize(absl::Span<const double> values) {
  Summary summary;
  summary.n = values.size();
  summary.mean = Mean(values);
  summary.deviation = StandardDeviation(values);
  summary.interval = MeanInterval(summary.mean, summary.deviation, summary.n);
  return summary;
}

}  // namespace ablate::report
