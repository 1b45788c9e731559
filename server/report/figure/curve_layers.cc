// How a setting's curves look in a panel: seeds, band, mean, and where a run diverged.
#include "server/report/figure/curve_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/types/span.h"
#include "server/report/statistics.h"

namespace ablate::figure {
namespace {

constexpr double kBreak = std::numeric_limits<double>::quiet_NaN();
constexpr double kSeedWidth = 0.35;

// The last finite point of a line; false if there is none.
bool LastPoint(const std::vector<double>& xs, const std::vector<double>& ys, double* x, double* y) {
  for (size_t i = ys.size(); i-- > 0;) {
    if (!std::isfinite(ys[i])) continue;
    *x = xs[i];
    *y = ys[i];
    return true;
  }
  return false;
}

// Adds the middle of the seeds' values, `tail` of them left out at each end.
void AddQuantiles(const std::vector<const Track*>& tracks, bool diverged, double tail,
                  Extent* extent) {
  std::vector<double> values;
  for (const Track* track : tracks) {
    for (const ThinLine& line : track->seeds) {
      if (line.diverged != diverged) continue;
      std::copy_if(line.y.begin(), line.y.end(), std::back_inserter(values),
                   [](double y) { return std::isfinite(y); });
    }
  }
  if (values.empty()) return;
  std::sort(values.begin(), values.end());
  extent->Add(report::SortedQuantile(values, tail));
  extent->Add(report::SortedQuantile(values, 1 - tail));
}

}  // namespace

void AddSeedLines(const Track& track, Color color, Panel* panel) {
  Line lines;
  lines.color = SeedLineOf(color);
  lines.width = kSeedWidth;
  for (const ThinLine& line : track.seeds) {
    lines.x.insert(lines.x.end(), line.x.begin(), line.x.end());
    lines.y.insert(lines.y.end(), line.y.begin(), line.y.end());
    lines.x.push_back(kBreak);
    lines.y.push_back(kBreak);
  }
  if (!lines.x.empty()) panel->layers.push_back(std::move(lines));
}

void AddBand(const Track& track, Color color, Panel* panel) {
  if (track.x.size() < 2 || track.converged < 2) return;
  panel->layers.push_back(Band{track.x, track.low, track.high, BandOf(color)});
}

void AddMean(const Track& track, Color color, const Dash& dash, double width, Panel* panel) {
  if (track.x.size() == 1) {
    panel->layers.push_back(Points{track.x, track.mean, color});
  } else if (!track.x.empty()) {
    panel->layers.push_back(Line{track.x, track.mean, color, width, dash});
  }
}

void AddDivergences(const Track& track, Color color, Panel* panel) {
  Points crosses;
  crosses.color = color;
  crosses.marker = Marker::kCross;
  crosses.size = 0.4;
  for (const ThinLine& line : track.seeds) {
    double x = 0, y = 0;
    if (!line.diverged || line.cut || !LastPoint(line.x, line.y, &x, &y)) continue;
    crosses.x.push_back(x);
    // What left the panel is marked at its edge: just inside, or gnuplot would leave it out.
    const double inside = 1e-4 * (panel->y.high - panel->y.low);
    crosses.y.push_back(std::clamp(y, panel->y.low + inside, panel->y.high - inside));
  }
  if (!crosses.x.empty()) panel->layers.push_back(std::move(crosses));
}

Extent ValuesOf(const std::vector<const Track*>& tracks) {
  Extent extent;
  for (const Track* track : tracks) {
    for (size_t i = 0; i < track->x.size(); ++i) {
      extent.Add(track->mean[i]);
      extent.Add(track->low[i]);
      extent.Add(track->high[i]);
    }
  }
  AddQuantiles(tracks, false, 0.001, &extent);
  if (extent.empty()) AddQuantiles(tracks, true, 0.05, &extent);
  return extent;
}

bool EndOf(const Track& track, double* x, double* y) {
  if (LastPoint(track.x, track.mean, x, y)) return true;
  // The longest of the others.
  bool found = false;
  for (const ThinLine& line : track.seeds) {
    double end_x = 0, end_y = 0;
    if (!LastPoint(line.x, line.y, &end_x, &end_y) || (found && end_x <= *x)) continue;
    found = true;
    *x = end_x;
    *y = end_y;
  }
  return found;
}

}  // namespace ablate::figure
