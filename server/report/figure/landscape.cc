// The loss around trained parameters: along lines as curves, on a plane as a map.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clean.h"
#include "base/status_macros.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analyzed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/loss_planes.h"
#include "server/report/figure/map_panels.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr ArrayForm kLandscapeForms[] = {
    {"loss_landscape", "losses", "direction,alpha", "alphas", "loss", true},
    {"loss_landscape", "losses", "plane,alpha,beta", "alphas", "loss", false}};

bool IsPlane(const Input& input) { return !input.analyzed.form->every_seed; }

// Returns a seed's rise above the loss at its own parameters, averaged over its lines; NaN if the
// loss of one of them, or at the parameters, isn't finite.
ThinLine RiseOf(const AnalyzedSeed& seed) {
  const size_t points = seed.shape[1];
  ThinLine line{seed.seed, false, false, seed.places, std::vector<double>(points, 0)};
  for (size_t i = 0; i < seed.values.size(); ++i) {
    line.y[i % points] += (seed.values[i] - seed.number) / static_cast<double>(seed.shape[0]);
  }
  for (double& value : line.y) value = std::isfinite(value) ? value : kNone;
  return line;
}

struct LandscapeLines {
  std::vector<ReducedSetting> settings;
  size_t holes = 0;       // points with a non-finite loss
  size_t directions = 0;  // largest number of a run
};

LandscapeLines LinesOf(const Input& input) {
  LandscapeLines lines{ReduceLines(input.analyzed, RiseOf, false)};
  for (const AnalyzedSetting& setting : input.analyzed.settings) {
    for (const AnalyzedSeed& seed : setting.seeds) {
      lines.directions = std::max(lines.directions, seed.shape[0]);
      for (const double loss : seed.values) lines.holes += std::isfinite(loss) ? 0 : 1;
    }
  }
  return lines;
}

// Returns the scale of a direction's length: "filter-scaled".
std::string DirectionText(const Input& input) {
  const std::string direction = OptionOf(input.analyzed, "direction");
  return direction.empty() ? "" : absl::StrCat(direction, "-scaled ");
}

std::string LinesFootnote(const Input& drawn, const LandscapeLines& lines) {
  std::vector<std::string> sentences = {
      absl::StrCat(StepsText(drawn.analyzed), ", ", MeanText(drawn, false)),
      absl::StrCat("a seed's curve is the mean over ", lines.directions, " ", DirectionText(drawn),
                   lines.directions == 1 ? "direction" : "directions")};
  if (lines.holes > 0) {
    sentences.push_back(
        absl::StrCat(report::Counted(lines.holes, "point"), " not finite, drawn as a gap"));
  }
  return CurvesFootnote(drawn, std::move(sentences), LeftOutOf(drawn.analyzed.settings));
}

// Returns the power of ten for rises: 0 if their numbers are short without one.
int ExponentOf(const LandscapeLines& lines) {
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
  const LandscapeLines lines = LinesOf(input);
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
  ASSIGN_OR_RETURN(auto figure, DrawPanels(drawn, {panel},
                                           {"Distance α along the direction",
                                            absl::StrCat("Rise of loss (", unit, "nats)"),
                                            LinesFootnote(drawn, lines)}));
  const auto ends = [](const ReducedCurve& curve) {
    const double rise = curve.mean.empty() ? kNone : (curve.mean.front() + curve.mean.back()) / 2;
    return std::isfinite(rise) ? absl::StrCat("by ", report::Plain(rise)) : "";
  };
  figure.description = absl::StrCat("Rise of the loss at the ends of the lines: ",
                                    EachCurve(lines.settings, kMostNamed, ends), ".");
  return Drawing{std::move(figure), LinesCsv(input, "label,setting,step,seed,alpha,rise,low,high\n",
                                             lines.settings, RiseOf)};
}

// Returns the first plane of each run.
std::vector<LossPlane> PlanesOf(const Input& input) {
  std::vector<LossPlane> planes;
  for (const AnalyzedSetting& setting : input.analyzed.settings) {
    if (setting.seeds.empty()) continue;
    const AnalyzedSeed& seed = setting.seeds[0];
    // Both axes have the same coordinates.
    if (seed.shape[1] == seed.shape[2]) {
      planes.push_back({&setting, &seed, &seed.places, &seed.places});
    }
  }
  return planes;
}

// Returns a plus at the trained parameters.
Strokes PlusInTheMiddle(const MapPanel& panel) {
  const double arm = (panel.x.high - panel.x.low) * 0.02;
  return {{-arm, 0}, {0, -arm}, {2 * arm, 0}, {0, 2 * arm}, kWhite, 0.8};
}

std::string PlanesFootnote(const Input& input, size_t holes) {
  std::vector<std::string> sentences = {
      absl::StrCat(StepsText(input.analyzed),
                   ", each setting's lowest analyzed seed that converged"),
      absl::StrCat("the first plane of two ", DirectionText(input),
                   "directions, + at the trained parameters")};
  for (std::string& text : PlaneSentences(holes)) sentences.push_back(std::move(text));
  return FootnoteOf(std::move(sentences), LeftOutOf(input.analyzed.settings), "drawn");
}

absl::StatusOr<Drawing> DrawPlanes(const Input& input) {
  const std::vector<LossPlane> planes = PlanesOf(input);
  if (planes.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("key: the planes of ", text::CleanText(input.key), " are not square"));
  }
  std::vector<MapPanel> panels;
  size_t holes = 0;
  std::string csv = "label,setting,step,seed,alpha,beta,loss\n";
  const ColorScale scale = LossScale(planes);
  for (const LossPlane& plane : planes) {
    panels.push_back(PanelOf(plane, scale, &holes));
    panels.back().over.emplace_back(PlusInTheMiddle(panels.back()));
    for (size_t a = 0; a < plane.x->size(); ++a) {
      for (size_t b = 0; b < plane.y->size(); ++b) {
        AddCsvRow(&csv, input.key, plane.setting->label, plane.seed->step, plane.seed->seed,
                  (*plane.x)[a], (*plane.y)[b], plane.At(a, b));
      }
    }
  }
  ASSIGN_OR_RETURN(auto figure, DrawMaps(panels, scale,
                                         {"Distance α", "Distance β", PlanesFootnote(input, holes)},
                                         input.width));
  figure.description = absl::StrCat("Losses on a plane: ", RangesText(planes), ".");
  return Drawing{std::move(figure), std::move(csv)};
}

absl::StatusOr<Drawing> DrawLandscape(const Input& input) {
  absl::StatusOr<Drawing> drawing = IsPlane(input) ? DrawPlanes(input) : DrawLines(input);
  if (drawing.ok()) drawing->figure.title = AnalyzedTitle(input, "loss landscape");
  return drawing;
}

std::string LandscapeCaption(const Input& input) {
  const std::string read =
      absl::StrCat(" Computed on ", input.analyzed.inputs, ".", ChosenText(*input.comparison));
  const std::string directions = absl::StrCat("random ", DirectionText(input), "directions");
  if (IsPlane(input)) {
    return absl::StrCat("Loss on a plane of two ", directions,
                        " around the trained parameters: the first plane of each setting's lowest "
                        "analyzed seed that converged, ",
                        StepsText(input.analyzed), ", all on one colour scale.", read);
  }
  return absl::StrCat(
      "Rise of the loss above its value at the trained parameters along ", directions, ", ",
      StepsText(input.analyzed),
      ". A run's curve is the mean over its directions. Line: mean over the seeds that converged. "
      "Band: its 95 % t interval. Thin lines: single runs.",
      read);
}

}  // namespace

constexpr Kind kLandscape = {
    .name = "landscape",
    .title = "Loss landscape",
    .key = "loss_landscape",
    .wide = false,
    .folded = false,
    .reads = Reads::kAnalysis,
    .forms = kLandscapeForms,
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = DrawLandscape,
    .caption = LandscapeCaption,
};

}  // namespace ablate::figure
