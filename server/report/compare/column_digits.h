// How many decimals the numbers of a column have: one rule for terminal, page and LaTeX. Pure
// functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_COLUMN_DIGITS_H_
#define ABLATE_SERVER_REPORT_COMPARE_COLUMN_DIGITS_H_

#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

// A number of a column with its interval.
struct ColumnNumber {
  Number mean;
  Interval interval;
};

// What the most precise one takes, but at most two more than the least precise. -1 where none has
// an interval.
int ColumnDecimals(const std::vector<ColumnNumber>& column);
// The same of differences on a scale. Of ratios -1 where some are more than ten times as large as
// others: then each has decimals of its own.
int ColumnDecimals(Scale scale, std::vector<ColumnNumber> column);

// Of the rows' means: what the most precise difference of them takes, at most six. -1 where ratios
// are compared, for then means span decades and have decimals of their own.
int MeanDecimals(const Comparison& comparison);

// Of the columns of the rows' differences, and of the effects of crossed axes.
int DifferenceDecimals(const Comparison& comparison);
int EffectDecimals(Scale scale, const Factorial& factorial);

// Those of a column, or where something that is not 0 would read as 0, or an interval as a point,
// those of the number itself; -1 for scientific notation.
int DecimalsIn(int column, const Number& mean, const Interval& interval);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_COLUMN_DIGITS_H_
