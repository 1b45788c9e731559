// Converts values to the scale on which they are compared: differences, or ratios, which are
// differences of logarithms. Puts differences into words. Pure functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_SCALE_H_
#define ABLATE_SERVER_REPORT_COMPARE_SCALE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"

namespace ablate::report {

enum class Scale { kDifference, kRatio };

// Returns a value as it is subtracted: itself, or its natural logarithm; NaN if that doesn't exist.
double OnScale(Scale scale, double value);

// Converts back to the metric's unit, or a difference of logarithms to a ratio. kNonFinite if that
// is too large. A mean of logarithms becomes the geometric mean; a deviation stays that of the
// logarithms.
Number OffScale(Scale scale, const Number& number);
Interval OffScale(Scale scale, const Interval& interval);
Summary OffScale(Scale scale, Summary summary);

// Returns "mean" or "geometric mean".
absl::string_view MeanName(Scale scale);

// Returns "2.437 [2.42, 2.45]", or the mean alone without an interval: a defined mean, in the
// metric's unit, with so many decimals; a geometric one always has decimals of its own.
NumberWords ShownMean(Scale scale, double mean, const Interval& interval, int decimals);

// The following functions take differences on the scale.

// Returns "+0.031 [+0.024, +0.038]", "×1.42 [1.31, 1.55]"; the mean alone without an interval,
// "undefined (REASON)" without a mean. In a column it has the column's decimals, by DecimalsIn,
// unless these are -1.
NumberWords ShownDifference(Scale scale, const Number& mean, const Interval& interval,
                            int column = -1);

// Returns "higher by 0.031 [0.024, 0.038]", "lower by a factor of 2.1 [1.8, 2.4]" if the interval
// excludes 0; otherwise as ShownDifference.
NumberWords DirectedDifference(Scale scale, const Number& mean, const Interval& interval);

// Returns "higher by 0.031", "lower by a factor of 2.1", with the digits that the interval
// justifies.
std::string DirectedSize(Scale scale, double mean, const Interval& interval);

// Returns "×1.42", with three significant digits.
std::string ShownRatio(double ratio);

// Returns a factor above 1 with enough digits to differ from 1: "1.08", "1.0034".
std::string ShownFactor(double factor);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_SCALE_H_
