// A figure as plain data: panels placed in inches, axes with explicit ranges and ticks, layers,
// texts. Independent of formats.
#ifndef ABLATE_SERVER_REPORT_FIGURE_FIGURE_H_
#define ABLATE_SERVER_REPORT_FIGURE_FIGURE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace ablate::figure {

struct Color {
  uint32_t rgb = 0;
  uint8_t transparency = 0;  // 0 opaque, 255 invisible
};

// Lengths of dash, gap, dash, … in points; empty is solid.
using Dash = std::vector<double>;

enum class Marker {
  kCircle,
  kSquare,
  kTriangle,
  kTriangleDown,
  kTriangleLeft,
  kTriangleRight,
  kDiamond,
  kCross
};

// Layers use the panel's data coordinates and are clipped to its ranges. A NaN breaks lines and
// bands. Widths are in points.

// A value that isn't drawn.
inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Line {
  std::vector<double> x, y;  // of equal lengths
  Color color;
  double width = 1.2;
  Dash dash{};
};

// The area between `low` and `high`.
struct Band {
  std::vector<double> x, low, high;  // of equal lengths
  Color color;
};

struct Points {
  std::vector<double> x, y;  // of equal lengths
  Color color;
  Marker marker = Marker::kCircle;
  bool open = false;
  double radius = 2.1;                // in points; a seed's dot has 1
  std::vector<std::string> titles{};  // tooltip for each point; empty: none
};

// Straight strokes from (x, y) to (x + dx, y + dy): error bars.
struct Strokes {
  std::vector<double> x, y, dx, dy;  // of equal lengths
  Color color;
  double width = 0.9;
};

// A map: cell (column, row) reaches from x[column] to x[column + 1] and from y[row] to y[row + 1].
struct Cells {
  std::vector<double> x, y;   // edges, ascending
  std::vector<Color> colors;  // row by row from y[0]; an invisible one leaves a hole
};

using Layer = std::variant<Line, Band, Points, Strokes, Cells>;

struct Tick {
  double at = 0;
  std::string label;
};

struct Axis {
  double low = 0, high = 1;  // low < high, finite; positive with log
  bool log = false;
  bool line = true;   // drawn, left or bottom
  bool grid = false;  // lines at its ticks
  std::vector<Tick> ticks;
};

// Everything below is in inches from the figure's bottom left corner.

enum class Align { kLeft, kCenter, kRight };

struct Text {
  double x = 0, y = 0;  // y is the middle of its height
  std::string text;     // any text; never parsed as a command or markup
  double size = 7;      // points
  Color color{};
  Align align = Align::kLeft;
  bool bold = false;
  bool upright = false;  // written from bottom to top
};

struct Rule {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  Color color;
  double width = 0.4;
  Dash dash{};
};

struct Panel {
  double left = 0, right = 1, bottom = 0, top = 1;
  Axis x, y;
  std::vector<Rule> rules;  // behind the layers
  std::vector<Layer> layers;
};

struct Figure {
  std::string name;  // prefix of ids in SVG: letters, digits, - and _
  // Alternative text: the kind of figure, and what it shows; the latter may be empty.
  std::string title, description;
  double width = 3.25, height = 2.27;
  std::vector<Panel> panels;
  std::vector<Text> texts;
  std::vector<Rule> rules;  // in front
  // The first panel's curves are over steps; a viewer that reads values out gets its position and
  // axis.
  bool steps = false;
};

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_FIGURE_H_
