// Chooses the number of decimals in a column of numbers: one rule for terminal, page and LaTeX.
// Pure functions.
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

// Returns the decimals that the most precise number needs, but at most two more than the least
// precise. -1 if none has an interval.
int ColumnDecimals(const std::vector<ColumnNumber>& column);
// Returns the same for differences on a scale. For ratios, -1 if some are more than ten times as
// large as others; then each has decimals of its own.
int ColumnDecimals(Scale scale, const std::vector<ColumnNumber>& column);

// Returns the decimals of the rows' means: as many as their most precise difference needs, at most
// six. -1 for ratios, because such means span decades and have decimals of their own.
int MeanDecimals(const Comparison& comparison);

// Return the decimals of the columns of the rows' differences, and of the effects of crossed axes.
int DifferenceDecimals(const Comparison& comparison);
int EffectDecimals(Scale scale, const Factorial& factorial);

// Returns the column's decimals; or, if a nonzero number would print as 0 or an interval as a
// point, the number's own; -1 for scientific notation.
int DecimalsIn(int column, const Number& mean, const Interval& interval);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_COLUMN_DIGITS_H_
