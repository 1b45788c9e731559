// The marks of a dot plot's rows: mean, interval, seeds; and arrows in the place of those that lie
// so far from the others that an axis of them all would show nothing else.
#ifndef ABLATE_SERVER_REPORT_FIGURE_DOT_MARKS_H_
#define ABLATE_SERVER_REPORT_FIGURE_DOT_MARKS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/figure/axes.h"
#include "server/report/figure/dot_plot.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// What a group's axis shows. Of three rows or more it leaves out what lies more than ten times as
// far from the middle as two thirds of the rows reach with all their marks, and all of a row whose
// mean does. The middle is 0 where `zero`, else the median of the means.
Extent ShownMarks(const DotGroup& group, bool zero);

// How many marks lie beyond their axes, for a footnote.
struct BeyondAxis {
  size_t means = 0, intervals = 0, seeds = 0;  // `intervals` of rows whose mean is shown

  void Add(const DotGroup& group, const Axis& axis);
  // "arrows: beyond the axis, 1 mean and 12 seeds"; "" where there are none.
  std::string Text() const;
};

// Where a row stands on its panel, whose y axis is in inches.
struct RowPlace {
  double base = 0, height = 0.3;  // inches
};

// What a row's numbers are, which says how they are written; of ratios marks are the logarithms.
enum class DotNumbers { kValues, kDifferences, kRatios };

// Mean, interval and seeds, what is beyond the axis as arrows at the panel's edges with the value
// beside them where nothing else of the row stands.
void AddRowMarks(const DotRow& row, DotNumbers numbers, const RowPlace& place, Panel* panel,
                 Figure* figure);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_DOT_MARKS_H_
