// Maps: panels of coloured cells on one scale of colours, which stands beside them as a bar. Pure
// functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_MAP_PANELS_H_
#define ABLATE_SERVER_REPORT_FIGURE_MAP_PANELS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// Which colour a value has: one scale for all panels of a figure.
struct ColorScale {
  Axis axis;          // values and ticks; linear or logarithmic
  bool root = false;  // by the square root of the share, which shows the small ones
  std::string title;  // above the bar
};

struct MapPanel {
  std::string label;
  Color color;  // of the label
  Axis x, y;
  std::vector<double> x_edges, y_edges;  // of the cells, ascending, within the axes
  std::vector<double> values;            // row by row from y_edges[0]; NaN is a hole
  std::vector<Layer> over;               // in front of the cells
  bool numbers = false;                  // each cell has its value in it, where there is room
};

struct MapWords {
  std::string x, y, footnote;
};

inline constexpr size_t kMaxCells = 60'000;  // of a figure
inline constexpr double kBright = 0.47;      // the share of the scale from which ink on it is dark

// Panels of one size in rows and columns; values beyond the scale have its ends' colours.
// INVALID_ARGUMENT if they do not fit on a page, or have more than kMaxCells cells. Without a
// title.
absl::StatusOr<Figure> DrawMaps(const std::vector<MapPanel>& panels, const ColorScale& scale,
                                const MapWords& words, double width);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_MAP_PANELS_H_
