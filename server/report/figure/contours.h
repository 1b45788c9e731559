// Lines of equal value over a grid of points, by marching squares. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CONTOURS_H_
#define ABLATE_SERVER_REPORT_FIGURE_CONTOURS_H_

#include <vector>

#include "server/report/figure/figure.h"

namespace ablate::figure {

// Values at places (x[column], y[row]), ascending, row by row: x.size() · y.size() of them.
struct ValueGrid {
  std::vector<double> x, y, values;
};

// Where the values are `level`, taken to change evenly between neighbours, as strokes without a
// colour. A square with a corner that is not finite has none: what is around a hole is not known.
// Of a saddle the mean of its corners says which two of them are joined.
Strokes ContourAt(const ValueGrid& grid, double level);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CONTOURS_H_
