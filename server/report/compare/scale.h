// How values of a metric are compared: by their differences, or by their ratios, which are
// differences of logarithms; and what a difference is in words. Pure functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_SCALE_H_
#define ABLATE_SERVER_REPORT_COMPARE_SCALE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

enum class Scale { kDifference, kRatio };

// A value as it is subtracted: itself, or its natural logarithm; NaN where that does not exist.
double OnScale(Scale scale, double value);

// Back into the metric's unit, or from a difference of logarithms to a ratio. kNonFinite where that
// is too large. A mean of logarithms becomes the geometric mean; a deviation stays that of the
// logarithms.
Number OffScale(Scale scale, const Number& number);
Interval OffScale(Scale scale, const Interval& interval);
Summary OffScale(Scale scale, Summary summary);

// "mean", "geometric mean".
absl::string_view MeanName(Scale scale);

// "2.437 [2.42, 2.45]", or without an interval the mean alone: a mean that exists, in the metric's
// unit, with so many decimals; a geometric one always has digits of its own.
std::string ShownMean(Scale scale, double mean, const Interval& interval, int decimals);

// What follows takes differences on the scale.

// "+.031 [+.024, +.038]", "×1.42 [1.31, 1.55]"; the mean alone where there is no interval,
// "undefined (REASON)" where there is no mean; in a column with its decimals, by DecimalsIn, unless
// these are -1.
std::string ShownDifference(Scale scale, const Number& mean, const Interval& interval,
                            int column = -1);

// "higher by .031 [.024, .038]", "lower by a factor of 2.1 [1.8, 2.4]" where the interval leaves
// out 0; else as ShownDifference.
std::string DirectedDifference(Scale scale, const Number& mean, const Interval& interval);

// "higher by .031", "lower by a factor of 2.1", with the digits that the interval deserves.
std::string DirectedSize(Scale scale, double mean, const Interval& interval);

// "×1.42", with three significant digits.
std::string ShownRatio(double ratio);

// A factor above 1 with the digits that tell it from 1: "1.08", "1.0034".
std::string ShownFactor(double factor);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_SCALE_H_
