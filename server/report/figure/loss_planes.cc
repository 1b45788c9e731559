#include "server/report/figure/loss_planes.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/contours.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr int kContours = 9;  // they divide the scale into one more part

// Returns edges half way between coordinates; the outermost are as far out as in.
std::vector<double> EdgesOf(const std::vector<double>& places) {
  const size_t n = places.size();
  if (n == 1) return {places[0] - 0.5, places[0] + 0.5};
  std::vector<double> edges = {places[0] - (places[1] - places[0]) / 2};
  for (size_t i = 0; i + 1 < n; ++i) edges.push_back((places[i] + places[i + 1]) / 2);
  edges.push_back(places[n - 1] + (places[n - 1] - places[n - 2]) / 2);
  return edges;
}

Axis EdgesAxis(const std::vector<double>& edges) {
  constexpr size_t kTicks = 4;
  Extent extent;
  extent.Add(edges.front());
  extent.Add(edges.back());
  return LinearAxis(extent, 0, kTicks);
}

Extent ExtentOf(absl::Span<const LossPlane> planes) {
  Extent extent;
  for (const LossPlane& plane : planes) {
    for (size_t i = 0; i < plane.x->size() * plane.y->size(); ++i) {
      extent.Add(plane.seed->values[i]);
    }
  }
  return extent;
}

// Adds contours below everything else over the cells.
void AddContours(const LossPlane& plane, const ColorScale& scale, MapPanel* panel) {
  const Axis& axis = scale.axis;
  const ValueGrid grid{*plane.x, *plane.y, panel->values};
  std::vector<Layer> contours;
  for (int i = 1; i <= kContours; ++i) {
    const double share = static_cast<double>(i) / (kContours + 1);
    Strokes contour = ContourAt(grid, axis.log ? axis.low * std::pow(axis.high / axis.low, share)
                                               : axis.low + share * (axis.high - axis.low));
    contour.color = share > kBright ? kInk : kWhite;
    contour.width = 0.35;
    if (!contour.x.empty()) contours.emplace_back(std::move(contour));
  }
  panel->over.insert(panel->over.begin(), contours.begin(), contours.end());
}

}  // namespace

ColorScale LossScale(const std::vector<LossPlane>& planes) {
  const Extent extent = ExtentOf(planes);
  ColorScale scale;
  // Losses grow exponentially away from the parameters: on a linear scale a few corners would take
  // all the colours.
  constexpr double kLogSpan = 3;
  const bool log = extent.low() > 0 && extent.high() / extent.low() >= kLogSpan;
  scale.axis = log ? LogAxis(extent, 0, 6) : LinearAxis(extent, 0, 6);
  scale.title = "Loss (nats)";
  return scale;
}

MapPanel PanelOf(const LossPlane& plane, const ColorScale& scale, size_t* holes) {
  MapPanel panel;
  panel.label = plane.setting->label;
  panel.color = StyleOf(plane.setting->style).text;
  panel.x_edges = EdgesOf(*plane.x);
  panel.y_edges = EdgesOf(*plane.y);
  panel.x = EdgesAxis(panel.x_edges);
  panel.y = EdgesAxis(panel.y_edges);
  Points crosses;
  crosses.color = kSecondary;
  crosses.marker = Marker::kCross;
  crosses.radius = 1;
  for (size_t b = 0; b < plane.y->size(); ++b) {
    for (size_t a = 0; a < plane.x->size(); ++a) {
      const double loss = plane.At(a, b);
      panel.values.push_back(std::isfinite(loss) ? loss : kNone);
      if (std::isfinite(loss)) continue;
      ++*holes;
      crosses.x.push_back((*plane.x)[a]);
      crosses.y.push_back((*plane.y)[b]);
    }
  }
  if (!crosses.x.empty()) panel.over.push_back(std::move(crosses));
  AddContours(plane, scale, &panel);
  return panel;
}

std::vector<std::string> PlaneSentences(size_t holes) {
  std::vector<std::string> sentences = {
      absl::StrCat("contours divide the colour scale into ", kContours + 1, " equal parts")};
  if (holes > 0) sentences.push_back(absl::StrCat("white with ×: ", holes, " not finite"));
  return sentences;
}

std::string RangesText(const std::vector<LossPlane>& planes) {
  std::vector<std::string> settings;
  for (const LossPlane& plane : planes) {
    const Extent extent = ExtentOf({&plane, 1});
    settings.push_back(
        extent.empty()
            ? absl::StrCat(report::Listed(plane.setting->label), " without a finite loss")
            : absl::StrCat(report::Listed(plane.setting->label), " from ",
                           report::Plain(extent.low()), " to ", report::Plain(extent.high())));
  }
  return report::Enumerated(settings, kMostNamed);
}

}  // namespace ablate::figure
