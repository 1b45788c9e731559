// Contour lines over a grid of points, by marching squares. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CONTOURS_H_
#define ABLATE_SERVER_REPORT_FIGURE_CONTOURS_H_

#include <vector>

#include "server/report/figure/figure.h"

namespace ablate::figure {

// Values at coordinates (x[column], y[row]), ascending, row by row: x.size() · y.size() of them.
struct ValueGrid {
  std::vector<double> x, y, values;
};

// Returns the contour at `level`, with linear interpolation between neighbours, as strokes without
// a colour. A square with a non-finite corner has none, because the surroundings of a hole are
// unknown. At a saddle, the mean of the corners decides which two are joined.
Strokes ContourAt(const ValueGrid& grid, double level);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CONTOURS_H_
