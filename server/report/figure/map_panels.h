// Maps: panels of coloured cells on one colour scale, with a bar. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_MAP_PANELS_H_
#define ABLATE_SERVER_REPORT_FIGURE_MAP_PANELS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// Maps values to colours: one scale for all panels of a figure.
struct ColorScale {
  Axis axis;               // values and ticks; linear or logarithmic
  bool root = false;       // by the square root of the fraction, which separates small ones
  bool diverging = false;  // the middle of the axis, usually 0, is neutral
  std::string title;       // above the bar
};

struct MapPanel {
  std::string label;  // above the panel; above the first of several if they have places
  std::string place;  // the panel's own title, if several panels share a label: "0.3"
  Color color;        // of both
  Axis x, y;
  std::vector<double> x_edges, y_edges;  // edges of the cells, ascending, within the axes
  std::vector<double> values;            // row by row from y_edges[0]; NaN is a hole
  std::vector<Layer> over;               // drawn over the cells
  bool numbers = false;                  // each cell shows its value if there is room
  bool texts = false;                    // labels of x are words, turned if they don't fit
};

struct MapWords {
  std::string x, y, footnote;
  std::string remedy = "Compare fewer settings";  // if there are more than kMaxCells
};

// Returns an axis with a tick in the middle of each cell; `down` puts the first at the top.
Axis CellsAxis(const std::vector<std::string>& names, bool down);

inline constexpr size_t kMaxCells = 60'000;  // in a figure
inline constexpr double kBright = 0.47;      // fraction of the scale above which text on it is dark

// Draws panels of one size in rows and columns, without a title; values beyond the scale have its
// ends' colours. `columns` is the wanted number of panels side by side, or a multiple if that many
// don't fit on a page; 0: a few. INVALID_ARGUMENT if the panels don't fit on a page, or have more
// than kMaxCells cells.
absl::StatusOr<Figure> DrawMaps(const std::vector<MapPanel>& panels, const ColorScale& scale,
                                const MapWords& words, double width, size_t columns = 0);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_MAP_PANELS_H_
