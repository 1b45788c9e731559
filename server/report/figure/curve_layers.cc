#include "server/report/figure/curve_layers.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace ablate::figure {
namespace {

constexpr double kBreak = std::numeric_limits<double>::quiet_NaN();
// Points.
constexpr double kSeedWidth = 0.35;  // of a line
constexpr double kBarWidth = 1.2;

// Finds the last finite point of a line; returns false if there is none.
bool LastPoint(const std::vector<double>& xs, const std::vector<double>& ys, double* x, double* y) {
  for (size_t i = ys.size(); i-- > 0;) {
    if (!std::isfinite(ys[i])) continue;
    *x = xs[i];
    *y = ys[i];
    return true;
  }
  return false;
}

// Finds the last finite point of a seed whose line shows a divergence.
bool DivergedAt(const ThinLine& line, double* x, double* y) {
  return line.diverged && !line.cut && LastPoint(line.x, line.y, x, y);
}

}  // namespace

void AddSeedLines(const ReducedCurve& curve, Color color, Panel* panel) {
  Line lines;
  lines.color = SeedLineOf(color);
  lines.width = kSeedWidth;
  for (const ThinLine& line : curve.seeds) {
    lines.x.insert(lines.x.end(), line.x.begin(), line.x.end());
    lines.y.insert(lines.y.end(), line.y.begin(), line.y.end());
    lines.x.push_back(kBreak);
    lines.y.push_back(kBreak);
  }
  if (!lines.x.empty()) panel->layers.push_back(std::move(lines));
}

void AddBand(const ReducedCurve& curve, Color color, Panel* panel) {
  if (curve.x.empty() || curve.converged < 2) return;
  if (curve.x.size() == 1) {
    if (!std::isfinite(curve.low[0])) return;
    panel->layers.push_back(
        Strokes{curve.x, curve.low, {0}, {curve.high[0] - curve.low[0]}, color, kBarWidth});
    return;
  }
  panel->layers.push_back(Band{curve.x, curve.low, curve.high, BandOf(color)});
}

void AddMeanLine(const ReducedCurve& curve, Color color, const Dash& dash, double width,
                 Panel* panel) {
  if (curve.x.size() == 1) {
    panel->layers.push_back(Points{curve.x, curve.mean, color});
  } else if (!curve.x.empty()) {
    panel->layers.push_back(Line{curve.x, curve.mean, color, width, dash});
  }
}

void AddEndMarker(const ReducedCurve& curve, const Style& style, Panel* panel) {
  constexpr double kRadius = 1.6;  // points
  double x = 0, y = 0;
  if (!LastPoint(curve.x, curve.mean, &x, &y)) return;
  panel->layers.push_back(Points{{x}, {y}, style.line, style.marker, false, kRadius});
}

void AddDivergences(const ReducedCurve& curve, Color color, Panel* panel) {
  constexpr double kRadius = 1.5;  // points
  Points crosses, above, below;
  for (Points* points : {&crosses, &above, &below}) {
    points->color = color;
    points->radius = kRadius;
  }
  crosses.marker = Marker::kCross;
  above.marker = Marker::kTriangle;
  below.marker = Marker::kTriangleDown;
  for (const ThinLine& line : curve.seeds) {
    double x = 0, y = 0;
    if (!DivergedAt(line, &x, &y)) continue;
    Points& points = y > panel->y.high ? above : y < panel->y.low ? below : crosses;
    points.x.push_back(x);
    points.y.push_back(y > panel->y.high ? panel->y.high : y < panel->y.low ? panel->y.low : y);
  }
  for (Points* points : {&crosses, &above, &below}) {
    if (!points->x.empty()) panel->layers.push_back(std::move(*points));
  }
}

void FindDivergences(const ReducedCurve& curve, const Panel& panel, DivergenceMarks* marks) {
  for (const ThinLine& line : curve.seeds) {
    double x = 0, y = 0;
    if (!DivergedAt(line, &x, &y) || x < panel.x.low || x > panel.x.high) continue;
    (y > panel.y.high ? marks->above : y < panel.y.low ? marks->below : marks->crosses) = true;
  }
}

bool EndOf(const ReducedCurve& curve, double* x, double* y) {
  if (LastPoint(curve.x, curve.mean, x, y)) return true;
  bool found = false;
  for (const ThinLine& line : curve.seeds) {
    double end_x = 0, end_y = 0;
    if (!LastPoint(line.x, line.y, &end_x, &end_y) || (found && end_x <= *x)) continue;
    found = true;
    *x = end_x;
    *y = end_y;
  }
  return found;
}

}  // namespace ablate::figure
