// Writes a figure as SVG.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/clean.h"
#include "base/decimal.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/render.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr double kUnit = 72;  // per inch
// Layout uses Helvetica's widths, which these fonts share.
constexpr char kFonts[] = "'Liberation Sans', Arial, Helvetica, sans-serif";
// From the middle of a text's height to its base line, as a fraction of its size: between half the
// height of capitals and digits and half that of small letters.
constexpr double kBaseLine = 0.326;

constexpr double kAxisWidth = 0.6, kGridWidth = 0.5, kMarkerWidth = 0.8;
constexpr double kTick = 2.7;  // length

// Far beyond every figure; written for values that are much too large.
constexpr double kFarthest = 1e5;

// Appends a number with two decimals and without superfluous zeros: "12.5", "-3", ".07". NaN, which
// no layer passes on, becomes 0.
void AppendNumber(double value, std::string* out) {
  if (std::isnan(value)) value = 0;
  const int64_t hundredths = std::llround(std::clamp(value, -kFarthest, kFarthest) * 100);
  const int64_t size = std::abs(hundredths);
  if (hundredths < 0) out->push_back('-');
  if (size >= 100 || size == 0) absl::StrAppend(out, size / 100);
  if (size % 100 == 0) return;
  out->push_back('.');
  out->push_back(static_cast<char>('0' + size / 10 % 10));
  if (size % 10 != 0) out->push_back(static_cast<char>('0' + size % 10));
}

std::string Number(double value) {
  std::string text;
  AppendNumber(value, &text);
  return text;
}

// NaN marks numbers without a position in a panel.
bool AllFinite(absl::Span<const double> numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [](double number) { return std::isfinite(number); });
}

// Builds the `d` of a path in the figure's units, like a pen that is up at first.
class Path {
 public:
  // Draws a line from the pen to the point; if the pen is up, only moves there.
  void To(double x, double y) { Add(std::exchange(down_, true) ? 'L' : 'M', {x, y}); }
  void Lift() { down_ = false; }
  void Close() {
    path_.push_back('z');
    Lift();
  }

  void Segment(double x0, double y0, double x1, double y1) {
    Lift();
    To(x0, y0);
    To(x1, y1);
    Lift();
  }

  void Box(double x, double y, double width, double height) {
    Lift();
    To(x, y);
    Add('h', {width});
    Add('v', {height});
    Add('h', {-width});
    Close();
  }

  void Circle(double x, double y, double radius) {
    Lift();
    To(x - radius, y);
    for (const double way : {2 * radius, -2 * radius}) Add('a', {radius, radius, 0, 1, 0, way, 0});
    Close();
  }

  bool empty() const { return path_.empty(); }
  const std::string& text() const { return path_; }

 private:
  void Add(char command, std::initializer_list<double> numbers) {
    path_.push_back(command);
    bool first = true;
    for (const double number : numbers) {
      if (!first) path_.push_back(' ');
      first = false;
      AppendNumber(number, &path_);
    }
  }

  std::string path_;
  bool down_ = false;
};

// Corners of the markers that are polygons, for a radius of 1; y grows downwards.
using Corners = std::vector<std::pair<double, double>>;

const Corners& CornersOf(Marker marker) {
  static const auto* const kCorners = new std::array<Corners, 8>{{
      {},                                        // kCircle
      {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}},      // kSquare
      {{0, -1.33}, {-1.33, .67}, {1.33, .67}},   // kTriangle
      {{0, 1.33}, {1.33, -.67}, {-1.33, -.67}},  // kTriangleDown
      {{-1.33, 0}, {.67, -1.33}, {.67, 1.33}},   // kTriangleLeft
      {{1.33, 0}, {-.67, 1.33}, {-.67, -1.33}},  // kTriangleRight
      {{0, -1.41}, {1.41, 0}, {0, 1.41}, {-1.41, 0}},
      {{-1, -1}, {1, 1}, {-1, 1}, {1, -1}},  // kCross: two strokes
  }};
  return (*kCorners)[static_cast<size_t>(marker)];
}

void AddMarker(Marker marker, double x, double y, double radius, Path* path) {
  if (marker == Marker::kCircle) return path->Circle(x, y, radius);
  const Corners& corners = CornersOf(marker);
  for (size_t i = 0; i < corners.size(); ++i) {
    if (marker == Marker::kCross && i % 2 == 0) path->Lift();
    path->To(x + radius * corners[i].first, y + radius * corners[i].second);
  }
  if (marker != Marker::kCross) path->Close();
}

// Returns ` fill="#0072B2" fill-opacity=".25"`; for a stroke in the same way.
std::string Paint(absl::string_view what, Color color) {
  std::string paint = absl::StrFormat(" %s=\"#%06X\"", what, color.rgb);
  if (color.transparency > 0) {
    absl::StrAppend(&paint, " ", what, "-opacity=\"", Number(1 - color.transparency / 255.0), "\"");
  }
  return paint;
}

std::string Stroke(Color color, double width, const Dash& dash = {}) {
  std::string stroke =
      absl::StrCat(Paint("stroke", color), " stroke-width=\"", Number(width), "\"");
  if (dash.empty()) return stroke;
  const auto append = [](std::string* out, double length) { AppendNumber(length, out); };
  return absl::StrCat(stroke, " stroke-dasharray=\"", absl::StrJoin(dash, " ", append), "\"");
}

// Writes one figure, back to front.
class Writer {
 public:
  explicit Writer(const Figure& figure) : figure_(figure) {}

  std::string Write() {
    Open();
    for (size_t i = 0; i < figure_.panels.size(); ++i) WritePanel(figure_.panels[i], i);
    for (const Rule& rule : figure_.rules) WriteRule(rule);
    for (const Text& text : figure_.texts) WriteText(text);
    out_.append("</svg>\n");
    return std::move(out_);
  }

 private:
  double X(double inches) const { return inches * kUnit; }
  double Y(double inches) const { return (figure_.height - inches) * kUnit; }

  void Open() {
    const std::string& name = figure_.name;
    const bool described = !figure_.description.empty();
    absl::StrAppendFormat(
        &out_,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.6gin\" height=\"%.6gin\" viewBox=\"0 "
        "0 %s %s\" role=\"img\" aria-labelledby=\"%s-title\"%s\n"
        " font-family=\"%s\" fill=\"none\" stroke-linejoin=\"round\" xml:space=\"preserve\"%s>\n",
        figure_.width, figure_.height, Number(X(figure_.width)), Number(Y(0)), name,
        described ? absl::StrCat(" aria-describedby=\"", name, "-desc\"") : "", kFonts,
        StepsText());
    WriteWords("title", figure_.title);
    if (described) WriteWords("desc", figure_.description);
    absl::StrAppend(&out_, "<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n");
  }

  // Returns ` data-steps="37.4 234 0 1000"`: the left and right ends of the first panel, and of its
  // axis.
  std::string StepsText() const {
    if (!figure_.steps || figure_.panels.empty()) return "";
    const Panel& panel = figure_.panels[0];
    // Steps are data, not positions: they keep all of their digits.
    return absl::StrCat(" data-steps=\"", Number(X(panel.left)), " ", Number(X(panel.right)), " ",
                        text::ShortestDecimal(panel.x.low), " ",
                        text::ShortestDecimal(panel.x.high), "\"");
  }

  void WriteWords(absl::string_view tag, const std::string& words) {
    absl::StrAppend(&out_, "<", tag, " id=\"", figure_.name, "-", tag, "\">", Escaped(words), "</",
                    tag, ">\n");
  }

  static std::string Escaped(const std::string& text) {
    return text::EscapeMarkup(text::CleanText(text));
  }

  void WritePath(const Path& path, const std::string& attributes) {
    if (path.empty()) return;
    absl::StrAppend(&out_, "<path", attributes, " d=\"", path.text(), "\"/>\n");
  }

  void WritePanel(const Panel& panel, size_t index) {
    const std::string clip = absl::StrCat(figure_.name, "-panel", index);
    // A line along the edge keeps its width.
    constexpr double kOver = 0.6;
    absl::StrAppend(&out_, "<clipPath id=\"", clip, "\"><rect x=\"", Number(X(panel.left) - kOver),
                    "\" y=\"", Number(Y(panel.top) - kOver), "\" width=\"",
                    Number(X(panel.right - panel.left) + 2 * kOver), "\" height=\"",
                    Number(X(panel.top - panel.bottom) + 2 * kOver), "\"/></clipPath>\n");
    WriteGrid(panel);
    for (const Rule& rule : panel.rules) WriteRule(rule);
    const std::string clipped = absl::StrCat(" clip-path=\"url(#", clip, ")\"");
    for (const Layer& layer : panel.layers) {
      std::visit([&](const auto& one) { WriteLayer(panel, one, clipped); }, layer);
    }
    WriteAxes(panel);
  }

  void WriteGrid(const Panel& panel) {
    Path grid;
    if (panel.y.grid) {
      for (const Tick& tick : panel.y.ticks) {
        const double y = PanelY(panel, tick.at);
        grid.Segment(X(panel.left), y, X(panel.right), y);
      }
    }
    if (panel.x.grid) {
      for (const Tick& tick : panel.x.ticks) {
        const double x = PanelX(panel, tick.at);
        grid.Segment(x, Y(panel.bottom), x, Y(panel.top));
      }
    }
    WritePath(grid, Stroke(kGridInk, kGridWidth));
  }

  void WriteAxes(const Panel& panel) {
    Path axes;
    const double left = X(panel.left), bottom = Y(panel.bottom);
    if (panel.y.line) axes.To(left, Y(panel.top));
    if (panel.y.line || panel.x.line) axes.To(left, bottom);
    if (panel.x.line) axes.To(X(panel.right), bottom);
    for (const Tick& tick : panel.x.ticks) {
      const double x = PanelX(panel, tick.at);
      axes.Segment(x, bottom, x, bottom + kTick);
    }
    for (const Tick& tick : panel.y.ticks) {
      const double y = PanelY(panel, tick.at);
      axes.Segment(left, y, left - kTick, y);
    }
    WritePath(axes, Stroke(kAxisInk, kAxisWidth));
    for (const Tick& tick : panel.x.ticks) {
      WriteText({XInches(panel, tick.at), panel.bottom - kXNumbers / kUnit, tick.label, kLabelSize,
                 kInk, Align::kCenter});
    }
    for (const Tick& tick : panel.y.ticks) {
      WriteText({panel.left - kYNumbers / kUnit, YInches(panel, tick.at), tick.label, kLabelSize,
                 kInk, Align::kRight});
    }
  }

  // Return the position of a value; NaN if it has none, such as 0 on a logarithmic axis.
  double PanelX(const Panel& panel, double value) const { return X(XInches(panel, value)); }
  double PanelY(const Panel& panel, double value) const { return Y(YInches(panel, value)); }

  void WriteLayer(const Panel& panel, const Line& line, const std::string& clipped) {
    Path path;
    for (size_t i = 0; i < line.x.size(); ++i) {
      const double x = PanelX(panel, line.x[i]), y = PanelY(panel, line.y[i]);
      AllFinite({x, y}) ? path.To(x, y) : path.Lift();
    }
    WritePath(path, absl::StrCat(Stroke(line.color, line.width, line.dash), clipped));
  }

  void WriteLayer(const Panel& panel, const Band& band, const std::string& clipped) {
    Path path;
    std::vector<std::array<double, 3>> stretch;  // x, low, high
    const auto finish = [&] {
      if (stretch.size() > 1) {
        for (const auto& [x, low, high] : stretch) path.To(x, low);
        for (size_t i = stretch.size(); i-- > 0;) path.To(stretch[i][0], stretch[i][2]);
        path.Close();
      }
      stretch.clear();
    };
    for (size_t i = 0; i < band.x.size(); ++i) {
      const std::array<double, 3> at = {PanelX(panel, band.x[i]), PanelY(panel, band.low[i]),
                                        PanelY(panel, band.high[i])};
      AllFinite(at) ? stretch.push_back(at) : finish();
    }
    finish();
    WritePath(path, absl::StrCat(Paint("fill", band.color), clipped));
  }

  // Markers aren't clipped at the panel's edge, but left out beyond it.
  void WriteLayer(const Panel& panel, const Points& points, const std::string&) {
    Path path;
    constexpr double kRounding = 0.01;
    const bool stroked = points.open || points.marker == Marker::kCross;
    const std::string fill = points.open ? Paint("fill", kWhite) : "";
    const std::string paint = stroked ? absl::StrCat(fill, Stroke(points.color, kMarkerWidth))
                                      : Paint("fill", points.color);
    for (size_t i = 0; i < points.x.size(); ++i) {
      const double x = PanelX(panel, points.x[i]), y = PanelY(panel, points.y[i]);
      const bool inside = x >= X(panel.left) - kRounding && x <= X(panel.right) + kRounding &&
                          y >= Y(panel.top) - kRounding && y <= Y(panel.bottom) + kRounding;
      if (!inside) continue;
      if (i >= points.titles.size()) {
        AddMarker(points.marker, x, y, points.radius, &path);
        continue;
      }
      Path titled;
      AddMarker(points.marker, x, y, points.radius, &titled);
      absl::StrAppend(&out_, "<path", paint, " d=\"", titled.text(), "\"><title>",
                      Escaped(points.titles[i]), "</title></path>\n");
    }
    WritePath(path, paint);
  }

  void WriteLayer(const Panel& panel, const Strokes& strokes, const std::string& clipped) {
    Path path;
    for (size_t i = 0; i < strokes.x.size(); ++i) {
      const std::array<double, 4> ends = {PanelX(panel, strokes.x[i]), PanelY(panel, strokes.y[i]),
                                          PanelX(panel, strokes.x[i] + strokes.dx[i]),
                                          PanelY(panel, strokes.y[i] + strokes.dy[i])};
      if (AllFinite(ends)) path.Segment(ends[0], ends[1], ends[2], ends[3]);
    }
    WritePath(path, absl::StrCat(Stroke(strokes.color, strokes.width), clipped));
  }

  // Neighbours of one colour become one box, and all of a colour one path.
  void WriteLayer(const Panel& panel, const Cells& cells, const std::string& clipped) {
    // Overlap of boxes; otherwise viewers that smooth edges show white seams.
    constexpr double kUnder = 0.3;
    const size_t columns = cells.x.size() - 1;
    std::map<uint32_t, Path> paths;
    for (size_t row = 0; row + 1 < cells.y.size(); ++row) {
      const double top = PanelY(panel, cells.y[row + 1]), bottom = PanelY(panel, cells.y[row]);
      for (size_t first = 0, end = 0; first < columns; first = end) {
        const Color color = cells.colors[row * columns + first];
        for (end = first + 1; end < columns; ++end) {
          const Color next = cells.colors[row * columns + end];
          if (next.rgb != color.rgb || next.transparency != color.transparency) break;
        }
        if (color.transparency == kInvisible.transparency) continue;
        const double left = PanelX(panel, cells.x[first]), right = PanelX(panel, cells.x[end]);
        paths[color.rgb].Box(left, top, right - left + kUnder, bottom - top + kUnder);
      }
    }
    for (const auto& [rgb, path] : paths) {
      WritePath(path,
                absl::StrCat(Paint("fill", {rgb}), " shape-rendering=\"crispEdges\"", clipped));
    }
  }

  void WriteRule(const Rule& rule) {
    Path path;
    path.Segment(X(rule.x0), Y(rule.y0), X(rule.x1), Y(rule.y1));
    WritePath(path, Stroke(rule.color, rule.width, rule.dash));
  }

  void WriteText(const Text& text) {
    if (text.text.empty()) return;
    static constexpr std::array<absl::string_view, 3> kAnchors = {"", " text-anchor=\"middle\"",
                                                                  " text-anchor=\"end\""};
    const double x = X(text.x), y = Y(text.y), down = kBaseLine * text.size;
    const std::string place =
        text.upright ? absl::StrCat(" transform=\"translate(", Number(x), " ", Number(y),
                                    ") rotate(-90)\" y=\"", Number(down), "\"")
                     : absl::StrCat(" x=\"", Number(x), "\" y=\"", Number(y + down), "\"");
    absl::StrAppend(&out_, "<text", place, " font-size=\"", Number(text.size), "\"",
                    text.bold ? " font-weight=\"bold\"" : "",
                    kAnchors[static_cast<size_t>(text.align)], Paint("fill", text.color), ">",
                    Escaped(text.text), "</text>\n");
  }

  const Figure& figure_;
  std::string out_;
};

}  // namespace

std::string Svg(const Figure& figure) { return Writer(figure).Write(); }

}  // namespace ablate::figure
