#include "server/report/compare/column_digits.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

constexpr int kMaxColumnDecimals = 6;

// Returns true if a nonzero bound of the interval (without one, the mean) would print as 0, or the
// interval as a point.
bool Hides(double mean, const Interval& interval, int decimals) {
  const auto hidden = [decimals](double value) {
    return value != 0 && PrintsAsZero(value, decimals);
  };
  if (!interval.defined()) return hidden(mean);
  return hidden(interval.low) || hidden(interval.high) ||
         (interval.low < interval.high &&
          Plain(interval.low, decimals) == Plain(interval.high, decimals));
}

}  // namespace

int ColumnDecimals(const std::vector<ColumnNumber>& column) {
  constexpr int kMore = 2;
  std::optional<int> least, most;
  for (const auto& [mean, interval] : column) {
    if (!interval.defined()) continue;
    const int decimals = DecimalsFor(mean.value, interval);
    if (decimals < 0) continue;
    least = std::min(least.value_or(decimals), decimals);
    most = std::max(most.value_or(decimals), decimals);
  }
  return most.has_value() ? std::min({*most, *least + kMore, kMaxColumnDecimals}) : -1;
}

int ColumnDecimals(Scale scale, const std::vector<ColumnNumber>& column) {
  constexpr double kFarApart = 10;
  if (scale == Scale::kDifference) return ColumnDecimals(column);
  double least = std::numeric_limits<double>::infinity(), most = 0;
  std::vector<ColumnNumber> ratios;
  for (const auto& [mean, interval] : column) {
    const ColumnNumber& ratio =
        ratios.emplace_back(ColumnNumber{OffScale(scale, mean), OffScale(scale, interval)});
    if (!ratio.mean.defined()) continue;
    least = std::min(least, ratio.mean.value);
    most = std::max(most, ratio.mean.value);
  }
  return most > kFarApart * least ? -1 : ColumnDecimals(ratios);
}

int MeanDecimals(const Comparison& comparison) {
  int decimals = -1;
  if (comparison.scale == Scale::kRatio) return decimals;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.mean.defined()) {
      decimals = std::max(decimals, DecimalsFor(row.mean.value, row.interval));
    }
    if (row.difference.interval.defined()) {
      decimals =
          std::max(decimals, DecimalsFor(row.difference.mean.value, row.difference.interval));
    }
  }
  return std::min(decimals, kMaxColumnDecimals);
}

int DifferenceDecimals(const Comparison& comparison) {
  std::vector<ColumnNumber> column;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.compared()) column.push_back({row.difference.mean, row.difference.interval});
  }
  return ColumnDecimals(comparison.scale, column);
}

int EffectDecimals(Scale scale, const Factorial& factorial) {
  std::vector<ColumnNumber> column;
  for (const std::vector<Effect>* effects : {&factorial.main, &factorial.interactions}) {
    for (const Effect& effect : *effects) {
      column.push_back({effect.difference.mean, effect.difference.interval});
    }
  }
  return ColumnDecimals(scale, column);
}

int DecimalsIn(int column, const Number& mean, const Interval& interval) {
  const bool own = column < 0 || Hides(mean.value, interval, column);
  if (!own) return column;
  const int decimals = DecimalsFor(mean.value, interval);
  return decimals > kMaxColumnDecimals ? -1 : decimals;
}

}  // namespace ablate::report
