#include "server/report/compare/scale.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/report/compare/column_digits.h"

namespace ablate::report {
namespace {

constexpr absl::string_view kTimes = "\u00d7";

// Returns decimals for two significant digits; scientific if wording has no decimals for it.
int RoughDecimals(double value) {
  const int three = DecimalsFor(value);
  return three > 0 ? three - 1 : three;
}

// Formats a number and the ends of its interval by `text`.
template <class Text>
NumberWords WordsOf(double mean, const Interval& interval, Text text) {
  if (!interval.defined()) return {text(mean), ""};
  return {text(mean), absl::StrCat("[", text(interval.low), ", ", text(interval.high), "]")};
}

NumberWords SignedWords(const Number& mean, const Interval& interval, int decimals) {
  if (!mean.defined()) return {absl::StrCat("undefined (", UndefinedName(mean.undefined), ")"), ""};
  return WordsOf(mean.value, interval, [=](double value) { return Signed(value, decimals); });
}

// Formats with one number of decimals, as differences have. If the ends are so far apart that the
// lower one would lose its digits, or so near that it would need too many, each has decimals of its
// own.
NumberWords RatioWords(double ratio, const Interval& interval) {
  constexpr double kFarApart = 10;
  if (!interval.defined()) return {Plain(ratio), ""};
  const int shared = interval.high <= kFarApart * interval.low ? DecimalsFor(ratio, interval) : -1;
  return WordsOf(ratio, interval, [shared](double value) {
    return Plain(value, shared >= 0 ? shared : RoughDecimals(value));
  });
}

// Returns the interval of the negated difference.
Interval Turned(const Interval& interval) {
  return {-interval.high, -interval.low, interval.undefined};
}

// Returns a difference of logarithms as the factor from the smaller one to the larger.
NumberWords FactorOf(double mean, const Interval& interval) {
  const Interval upwards = mean < 0 ? Turned(interval) : interval;
  return RatioWords(std::exp(std::abs(mean)), OffScale(Scale::kRatio, upwards));
}

}  // namespace

double OnScale(Scale scale, double value) {
  if (scale == Scale::kDifference) return value;
  return value > 0 ? std::log(value) : std::numeric_limits<double>::quiet_NaN();
}

Number OffScale(Scale scale, const Number& number) {
  if (scale == Scale::kDifference || !number.defined()) return number;
  return Defined(std::exp(number.value));
}

Interval OffScale(Scale scale, const Interval& interval) {
  if (scale == Scale::kDifference || !interval.defined()) return interval;
  return DefinedInterval(std::exp(interval.low), std::exp(interval.high));
}

Summary OffScale(Scale scale, Summary summary) {
  summary.mean = OffScale(scale, summary.mean);
  summary.interval = OffScale(scale, summary.interval);
  return summary;
}

absl::string_view MeanName(Scale scale) {
  return scale == Scale::kRatio ? "geometric mean" : "mean";
}

NumberWords ShownMean(Scale scale, double mean, const Interval& interval, int decimals) {
  if (scale == Scale::kRatio) return RatioWords(mean, interval);
  return WordsOf(mean, interval, [=](double value) { return Plain(value, decimals); });
}

NumberWords ShownDifference(Scale scale, const Number& mean, const Interval& interval, int column) {
  if (scale == Scale::kDifference) {
    const int decimals = mean.defined() ? DecimalsIn(column, mean, interval) : 0;
    return SignedWords(mean, interval, decimals);
  }
  const Number ratio = OffScale(scale, mean);
  if (!ratio.defined()) return SignedWords(ratio, interval, 0);
  const Interval ends = OffScale(scale, interval);
  NumberWords words = column < 0 ? RatioWords(ratio.value, ends)
                                 : ShownMean(Scale::kDifference, ratio.value, ends,
                                             DecimalsIn(column, ratio, ends));
  return {absl::StrCat(kTimes, words.value), words.interval};
}

NumberWords DirectedDifference(Scale scale, const Number& mean, const Interval& interval) {
  const bool ratio = scale == Scale::kRatio;
  const bool directed = OffScale(scale, mean).defined() && LeavesOutZero(interval);
  if (!directed && ratio) return ShownDifference(scale, mean, interval);
  const int decimals = mean.defined() ? DecimalsFor(mean.value, interval) : 0;
  if (!directed) return SignedWords(mean, interval, decimals);
  const bool higher = ratio ? mean.value > 0 : interval.low > 0;
  const NumberWords size = ratio ? FactorOf(mean.value, interval)
                                 : ShownMean(scale, std::abs(mean.value),
                                             higher ? interval : Turned(interval), decimals);
  return {
      absl::StrCat(higher ? "higher by " : "lower by ", ratio ? "a factor of " : "", size.value),
      size.interval};
}

std::string DirectedSize(Scale scale, double mean, const Interval& interval) {
  const std::string size = scale == Scale::kRatio
                               ? absl::StrCat("a factor of ", FactorOf(mean, interval).value)
                               : Plain(std::abs(mean), DecimalsFor(mean, interval));
  return absl::StrCat(mean > 0 ? "higher" : "lower", " by ", size);
}

std::string ShownRatio(double ratio) { return absl::StrCat(kTimes, Plain(ratio)); }

std::string ShownFactor(double factor) {
  // As many decimals as an interval that starts at 1 would have.
  return Plain(factor, DecimalsFor(factor, DefinedInterval(1, 2 * factor - 1)));
}

}  // namespace ablate::report
