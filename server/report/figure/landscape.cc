// The loss around trained parameters: along lines as curves, on a plane as a map.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analysed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/contours.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/map_panels.h"
#include "server/report/figure/small_multiples.h"
#include "server/report/figure/style.h"
#include "text/clean.h"

namespace ablate::figure {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr char kLossTitle[] = "Loss (nats)";

constexpr ArrayForm kForms[] = {
    {"loss_landscape", "losses", "direction,alpha", "alphas", "loss", true},
    {"loss_landscape", "losses", "plane,alpha,beta", "alphas", "loss", false}};

bool IsPlane(const Input& input) { return !input.analysed.form->every_seed; }

// A seed's rise above the loss at its own parameters, as the mean over its lines; NaN where the
// loss of one of them is not finite, or that at the parameters.
std::vector<double> RiseOf(const AnalysedSeed& seed, size_t* holes) {
  const size_t points = seed.shape[1];
  std::vector<double> rise(points, 0);
  for (size_t i = 0; i < seed.values.size(); ++i) {
    *holes += std::isfinite(seed.values[i]) ? 0 : 1;
    rise[i % points] += (seed.values[i] - seed.number) / static_cast<double>(seed.shape[0]);
  }
  for (double& value : rise) value = std::isfinite(value) ? value : kNone;
  return rise;
}

struct Lines {
  std::vector<ReducedSetting> settings;
  size_t holes = 0;       // points whose loss is not finite
  size_t directions = 0;  // of a run, the most
};

Lines LinesOf(const Input& input) {
  Lines lines;
  for (const AnalysedSetting& setting : input.analysed.settings) {
    ReducedCurve curve;
    curve.converged = setting.seeds.size();
    std::map<double, std::vector<double>> by_place;
    for (const AnalysedSeed& seed : setting.seeds) {
      const std::vector<double> rise = RiseOf(seed, &lines.holes);
      lines.directions = std::max(lines.directions, seed.shape[0]);
      for (size_t i = 0; i < rise.size(); ++i) by_place[seed.places[i]].push_back(rise[i]);
      if (setting.seeds.size() > kMaxSeedLines) continue;
      curve.seeds.push_back({seed.seed, false, false, seed.places, rise});
    }
    for (const auto& [place, values] : by_place) AddMean(place, values, false, &curve);
    lines.settings.push_back({setting.label, setting.style, {std::move(curve)}});
  }
  return lines;
}

// "filter-scaled"; how a direction's length is to be read.
std::string DirectionText(const Input& input) {
  const std::string direction = OptionOf(input.analysed, "direction");
  return direction.empty() ? "" : absl::StrCat(direction, "-scaled ");
}

std::string LinesFootnote(const Input& drawn, const Lines& lines) {
  std::vector<std::string> parts = {StepsText(drawn.analysed), SeedsText(drawn)};
  if (AnyInterval(drawn)) parts.emplace_back("band: its 95 % interval");
  std::vector<std::string> sentences = {
      absl::StrJoin(parts, ", "),
      absl::StrCat("a seed's curve is the mean over ", lines.directions, " ", DirectionText(drawn),
                   lines.directions == 1 ? "direction" : "directions")};
  if (lines.holes > 0) {
    sentences.push_back(absl::StrCat(report::Counted(lines.holes, "point"),
                                     " not finite, where a mean is interrupted"));
  }
  return AnalysedFootnote(drawn, std::move(sentences));
}

// Means without a seed, seeds' curves without an interval.
std::string LinesCsv(const Input& input, const Lines& lines) {
  std::string csv = "label,setting,step,seed,alpha,rise,low,high\n";
  const std::string label = CsvText(input.key);
  for (size_t s = 0; s < lines.settings.size(); ++s) {
    const AnalysedSetting& setting = input.analysed.settings[s];
    const std::string name = CsvText(setting.label);
    AddMeanRows(label, name, lines.settings[s].panels[0], &csv);
    for (const AnalysedSeed& seed : setting.seeds) {
      size_t holes = 0;
      const std::vector<double> rise = RiseOf(seed, &holes);
      for (size_t i = 0; i < rise.size(); ++i) {
        AddCsvRow({label, name, absl::StrCat(seed.step), absl::StrCat(seed.seed),
                   CsvNumber(seed.places[i]), CsvNumber(rise[i]), "", ""},
                  &csv);
      }
    }
  }
  return csv;
}

// The power of ten in which rises are written: 0 where their numbers are short without one.
int ExponentOf(const Lines& lines) {
  Extent extent;
  for (const ReducedSetting& setting : lines.settings) {
    for (const double mean : setting.panels[0].mean) extent.Add(std::abs(mean));
  }
  constexpr double kLeast = 0.01, kMost = 1000;
  if (extent.empty() || extent.high() == 0) return 0;
  if (extent.high() >= kLeast && extent.high() < kMost) return 0;
  return static_cast<int>(std::floor(std::log10(extent.high())));
}

ReducedCurve Scaled(ReducedCurve curve, int exponent) {
  const auto scale = [exponent](std::vector<double>* values) {
    for (double& value : *values) value /= std::pow(10, exponent);
  };
  if (exponent == 0) return curve;
  for (std::vector<double>* values : {&curve.mean, &curve.low, &curve.high}) scale(values);
  for (ThinLine& line : curve.seeds) scale(&line.y);
  return curve;
}

absl::StatusOr<Drawing> DrawLines(const Input& input) {
  const Lines lines = LinesOf(input);
  Input drawn = input;
  const int exponent = ExponentOf(lines);
  for (const ReducedSetting& setting : lines.settings) {
    drawn.settings.push_back({setting.label,
                              setting.style,
                              {Scaled(Thinned(setting.panels[0], kMaxSeedPoints), exponent)}});
  }
  const std::string unit = exponent == 0 ? "" : absl::StrCat(PowerOfTen(exponent), " ");
  CurvePanel panel;
  panel.scale = ValueScale::kLinear;
  panel.places = PlaceScale::kLinear;
  auto figure =
      DrawPanels(drawn, {panel},
                 {"Distance α along the direction", absl::StrCat("Rise of loss (", unit, "nats)"),
                  LinesFootnote(drawn, lines)});
  if (!figure.ok()) return figure.status();
  return Drawing{*std::move(figure), LinesCsv(input, lines)};
}

// The first plane of a run: what is drawn of it.
struct Plane {
  const AnalysedSetting* setting = nullptr;
  const AnalysedSeed* seed = nullptr;
  size_t side = 0;  // points along each axis

  // At the a-th place along the first axis and the b-th along the second.
  double At(size_t a, size_t b) const { return seed->values[a * side + b]; }
};

std::vector<Plane> PlanesOf(const Input& input) {
  std::vector<Plane> planes;
  for (const AnalysedSetting& setting : input.analysed.settings) {
    if (setting.seeds.empty()) continue;
    const AnalysedSeed& seed = setting.seeds[0];
    // Both axes have the same places.
    if (seed.shape[1] == seed.shape[2]) planes.push_back({&setting, &seed, seed.shape[2]});
  }
  return planes;
}

// Edges half way between places; the outermost as far out as in.
std::vector<double> EdgesOf(const std::vector<double>& places) {
  const size_t n = places.size();
  if (n == 1) return {places[0] - 0.5, places[0] + 0.5};
  std::vector<double> edges = {places[0] - (places[1] - places[0]) / 2};
  for (size_t i = 0; i + 1 < n; ++i) edges.push_back((places[i] + places[i + 1]) / 2);
  edges.push_back(places[n - 1] + (places[n - 1] - places[n - 2]) / 2);
  return edges;
}

Axis EdgesAxis(const std::vector<double>& edges, size_t ticks) {
  Extent extent;
  extent.Add(edges.front());
  extent.Add(edges.back());
  return LinearAxis(extent, 0, ticks);
}

MapPanel PanelOf(const Plane& plane, size_t* holes) {
  MapPanel panel;
  panel.label = plane.setting->label;
  panel.color = StyleOf(plane.setting->style).text;
  panel.x_edges = panel.y_edges = EdgesOf(plane.seed->places);
  panel.x = panel.y = EdgesAxis(panel.x_edges, 4);
  Points crosses;
  crosses.color = kSecondary;
  crosses.marker = Marker::kCross;
  crosses.radius = 1;
  for (size_t b = 0; b < plane.side; ++b) {
    for (size_t a = 0; a < plane.side; ++a) {
      const double loss = plane.At(a, b);
      panel.values.push_back(std::isfinite(loss) ? loss : kNone);
      if (std::isfinite(loss)) continue;
      ++*holes;
      crosses.x.push_back(plane.seed->places[a]);
      crosses.y.push_back(plane.seed->places[b]);
    }
  }
  if (!crosses.x.empty()) panel.over.push_back(std::move(crosses));
  // Where the parameters are.
  const double arm = (panel.x.high - panel.x.low) * 0.02;
  panel.over.push_back(Strokes{{-arm, 0}, {0, -arm}, {2 * arm, 0}, {0, 2 * arm}, kWhite, 0.8});
  return panel;
}

ColorScale LossScale(const std::vector<Plane>& planes) {
  Extent extent;
  for (const Plane& plane : planes) {
    for (size_t i = 0; i < plane.side * plane.side; ++i) extent.Add(plane.seed->values[i]);
  }
  ColorScale scale;
  // Losses grow exponentially away from the parameters: on a linear scale a few corners have all
  // the colours.
  constexpr double kLogSpan = 3;
  const bool log = extent.low() > 0 && extent.high() / extent.low() >= kLogSpan;
  scale.axis = log ? LogAxis(extent, 0, 6) : LinearAxis(extent, 0, 6);
  scale.title = kLossTitle;
  return scale;
}

constexpr int kContours = 9;  // they divide the scale into as many parts and one

// Lines of equal loss, the same losses in every panel, behind what is over the cells already.
void AddContours(const Plane& plane, const ColorScale& scale, MapPanel* panel) {
  const Axis& axis = scale.axis;
  const ValueGrid grid{plane.seed->places, plane.seed->places, panel->values};
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

std::string PlanesFootnote(const Input& input, size_t holes) {
  std::vector<std::string> sentences = {
      absl::StrCat(StepsText(input.analysed),
                   ", each setting's lowest analysed seed that converged"),
      absl::StrCat("the first plane of two ", DirectionText(input),
                   "directions, + at its parameters"),
      absl::StrCat("lines of equal loss divide the scale into ", kContours + 1, " equal parts")};
  if (holes > 0) {
    sentences.push_back(absl::StrCat("white with ×: ", holes, " not finite"));
  }
  for (std::string& text : LeftOutTexts(LeftOutOf(input.analysed), "drawn")) {
    sentences.push_back(std::move(text));
  }
  return absl::StrJoin(sentences, "; ");
}

absl::StatusOr<Drawing> DrawPlanes(const Input& input) {
  const std::vector<Plane> planes = PlanesOf(input);
  if (planes.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("key: the planes of ", text::CleanText(input.key), " are not square"));
  }
  std::vector<MapPanel> panels;
  size_t holes = 0;
  std::string csv = "label,setting,step,seed,alpha,beta,loss\n";
  const ColorScale scale = LossScale(planes);
  for (const Plane& plane : planes) {
    panels.push_back(PanelOf(plane, &holes));
    AddContours(plane, scale, &panels.back());
    for (size_t a = 0; a < plane.side; ++a) {
      for (size_t b = 0; b < plane.side; ++b) {
        AddCsvRow(
            {CsvText(input.key), CsvText(plane.setting->label), absl::StrCat(plane.seed->step),
             absl::StrCat(plane.seed->seed), CsvNumber(plane.seed->places[a]),
             CsvNumber(plane.seed->places[b]), CsvNumber(plane.At(a, b))},
            &csv);
      }
    }
  }
  auto figure = DrawMaps(panels, scale, {"Distance α", "Distance β", PlanesFootnote(input, holes)},
                         input.width);
  if (!figure.ok()) return figure.status();
  return Drawing{*std::move(figure), std::move(csv)};
}

absl::StatusOr<Drawing> DrawLandscape(const Input& input) {
  absl::StatusOr<Drawing> drawing = IsPlane(input) ? DrawPlanes(input) : DrawLines(input);
  if (drawing.ok()) drawing->figure.title = AnalysedTitle(input, "loss landscape");
  return drawing;
}

std::string LandscapeCaption(const Input& input) {
  const std::string read =
      absl::StrCat("; computed on ", input.analysed.inputs, ".", ChosenText(*input.comparison));
  const std::string directions =
      absl::StrCat("random directions, scaled by ", OptionOf(input.analysed, "direction"));
  if (IsPlane(input)) {
    return absl::StrCat("The loss on a plane of two ", directions,
                        ", around the trained parameters: of each setting the first plane of its "
                        "lowest analysed seed that "
                        "converged, ",
                        StepsText(input.analysed), ", all on one scale of colours", read);
  }
  return absl::StrCat(
      "How far the loss rises above that of the trained parameters along ", directions, ", ",
      StepsText(input.analysed),
      ": a run's curve is the mean over its directions, the line the mean over the seeds that "
      "converged, the band its 95 % interval; thin lines are single runs",
      read);
}

// The rise at the ends of the lines; on planes the range of the loss.
std::string LandscapeDescription(const Input& input) {
  std::vector<std::string> settings;
  const auto text = [](double value) { return report::Plain(value, report::DecimalsFor(value)); };
  if (IsPlane(input)) {
    for (const Plane& plane : PlanesOf(input)) {
      Extent extent;
      for (size_t i = 0; i < plane.side * plane.side; ++i) extent.Add(plane.seed->values[i]);
      settings.push_back(extent.empty()
                             ? absl::StrCat(plane.setting->label, " without a finite loss")
                             : absl::StrCat(plane.setting->label, " from ", text(extent.low()),
                                            " to ", text(extent.high())));
    }
    return absl::StrCat("Losses on a plane: ", report::Enumerated(settings, 12), ".");
  }
  for (const ReducedSetting& setting : LinesOf(input).settings) {
    const std::vector<double>& mean = setting.panels[0].mean;
    const double ends = mean.empty() ? kNone : (mean.front() + mean.back()) / 2;
    settings.push_back(std::isfinite(ends) ? absl::StrCat(setting.label, " by ", text(ends))
                                           : absl::StrCat(setting.label, " without a mean"));
  }
  return absl::StrCat(
      "Rise of the loss at the ends of the lines: ", report::Enumerated(settings, 12), ".");
}

}  // namespace

constexpr Kind kLandscape = {
    .name = "landscape",
    .title = "Loss landscape",
    .help =
        "an analysis loss_landscape: on lines the rise of the loss above the trained parameters', "
        "its mean over directions and seeds with a band; on planes the loss as maps, one a setting",
    .key = "loss_landscape",
    .wide = false,
    .reads = Reads::kAnalysis,
    .forms = kForms,
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = DrawLandscape,
    .caption = LandscapeCaption,
    .description = LandscapeDescription,
};

}  // namespace ablate::figure
