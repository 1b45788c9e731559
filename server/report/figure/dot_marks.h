// Marks of a dot plot's rows: mean, interval, seeds; and arrows for marks so far from the others
// that an axis over all of them would hide the rest.
#ifndef ABLATE_SERVER_REPORT_FIGURE_DOT_MARKS_H_
#define ABLATE_SERVER_REPORT_FIGURE_DOT_MARKS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/figure/axes.h"
#include "server/report/figure/dot_plot.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// Returns the range of a group's axis. With three rows or more it leaves out marks that are more
// than ten times as far from the middle as two thirds of the rows reach with all their marks, and
// all marks of a row whose mean is. The middle is 0 if `zero`, otherwise the median of the means.
Extent ShownMarks(const DotGroup& group, bool zero);

// Number of marks beyond their axes, for a footnote.
struct BeyondAxis {
  size_t means = 0, intervals = 0, seeds = 0;  // `intervals` counts rows whose mean is shown

  void Add(const DotGroup& group, const Axis& axis);
  // Returns "arrows: beyond the axis, 1 mean and 12 seeds"; "" if there are none.
  std::string Text() const;
};

// Position of a row in its panel, whose y axis is in inches.
struct RowPlace {
  double base = 0, height = 0.3;  // inches
};

// Type of a row's numbers, which determines their format; for ratios, marks are logarithms.
enum class DotNumbers { kValues, kDifferences, kRatios };

// Adds mean, interval and seeds. Marks beyond the axis become arrows at the panel's edges, with
// their value if nothing else of the row is there.
void AddRowMarks(const DotRow& row, DotNumbers numbers, const RowPlace& place, Panel* panel,
                 Figure* figure);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_DOT_MARKS_H_
