#include "server/report/compare/scale.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

constexpr absl::string_view kTimes = "\u00d7";

// Returns decimals for two significant digits; scientific if wording has no decimals for it.
int RoughDecimals(double value) {
  const int three = DecimalsFor(value);
  return three > 0 ? three - 1 : three;
}

// A positive number and the ends of its interval as texts.
struct RatioTexts {
  std::string mean, low, high;
};

// Formats with one number of decimals, as differences have. If the ends are so far apart that the
// lower one would lose its digits, or so near that it would need too many, each has decimals of its
// own.
RatioTexts TextsOf(double ratio, const Interval& interval) {
  constexpr double kFarApart = 10;
  if (!interval.defined()) return {Plain(ratio), "", ""};
  const int shared = interval.high <= kFarApart * interval.low ? DecimalsFor(ratio, interval) : -1;
  const auto text = [shared](double value) {
    return Plain(value, shared >= 0 ? shared : RoughDecimals(value));
  };
  return {text(ratio), text(interval.low), text(interval.high)};
}

std::string WithInterval(const RatioTexts& texts) {
  if (texts.low.empty()) return texts.mean;
  return absl::StrCat(texts.mean, " [", texts.low, ", ", texts.high, "]");
}

// Returns the interval of the negated difference.
Interval Turned(const Interval& interval) {
  return {-interval.high, -interval.low, interval.undefined};
}

// Returns a difference of logarithms as the factor from the smaller one to the larger.
RatioTexts FactorOf(double mean, const Interval& interval) {
  const Interval upwards = mean < 0 ? Turned(interval) : interval;
  return TextsOf(std::exp(std::abs(mean)), OffScale(Scale::kRatio, upwards));
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

std::string ShownMean(Scale scale, double mean, const Interval& interval, int decimals) {
  if (scale == Scale::kRatio) return WithInterval(TextsOf(mean, interval));
  const std::string text = Plain(mean, decimals);
  if (!interval.defined()) return text;
  return WithInterval({text, Plain(interval.low, decimals), Plain(interval.high, decimals)});
}

std::string ShownDifference(Scale scale, const Number& mean, const Interval& interval, int column) {
  if (scale == Scale::kDifference) {
    const int decimals = mean.defined() ? DecimalsIn(column, mean, interval) : 0;
    return SignedWithInterval(mean, interval, decimals);
  }
  const Number ratio = OffScale(scale, mean);
  if (!ratio.defined()) return SignedWithInterval(ratio, interval);
  const Interval ends = OffScale(scale, interval);
  if (column < 0) return absl::StrCat(kTimes, WithInterval(TextsOf(ratio.value, ends)));
  return absl::StrCat(
      kTimes, ShownMean(Scale::kDifference, ratio.value, ends, DecimalsIn(column, ratio, ends)));
}

std::string DirectedDifference(Scale scale, const Number& mean, const Interval& interval) {
  if (scale == Scale::kDifference) return DirectedWithInterval(mean, interval);
  const bool directed = OffScale(scale, mean).defined() && LeavesOutZero(interval);
  if (!directed) return ShownDifference(scale, mean, interval);
  return absl::StrCat(mean.value > 0 ? "higher" : "lower", " by a factor of ",
                      WithInterval(FactorOf(mean.value, interval)));
}

std::string DirectedSize(Scale scale, double mean, const Interval& interval) {
  const std::string size = scale == Scale::kRatio
                               ? absl::StrCat("a factor of ", FactorOf(mean, interval).mean)
                               : Plain(std::abs(mean), DecimalsFor(mean, interval));
  return absl::StrCat(mean > 0 ? "higher" : "lower", " by ", size);
}

std::string ShownRatio(double ratio) { return absl::StrCat(kTimes, Plain(ratio)); }

std::string ShownFactor(double factor) {
  // As many decimals as an interval that starts at 1 would have.
  return Plain(factor, DecimalsFor(factor, DefinedInterval(1, 2 * factor - 1)));
}

}  // namespace ablate::report
