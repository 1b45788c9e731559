// The loss on the plane of a run's checkpoints as a map, with the path of the checkpoints.
#include <algorithm>
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
#include "server/report/figure/kinds.h"
#include "server/report/figure/loss_planes.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr absl::string_view kBeside[] = {"alphas", "way", "way_losses", "explained_shares"};
constexpr ArrayForm kTrajectoryForms[] = {
    {"trajectory", "losses", "alpha,beta", "betas", "loss", false, kBeside}};

const std::vector<double>& Beside(const AnalyzedSeed& seed, const char* name) {
  return seed.beside.at(name);
}

// Data to draw: one seed's arrays of each setting, and the planes that point to them.
struct Ways {
  std::vector<AnalyzedSeed> seeds;
  std::vector<LossPlane> planes;
};

// Mirrors an axis, 0 or 1: its coordinates, the losses along it and the path.
void Mirror(size_t axis, AnalyzedSeed* seed) {
  std::vector<double>& places = axis == 0 ? seed->beside["alphas"] : seed->places;
  std::reverse(places.begin(), places.end());
  for (double& place : places) place = 0 - place;  // 0 stays without a sign
  std::vector<double>& way = seed->beside["way"];
  for (size_t i = axis; i < way.size(); i += 2) way[i] = 0 - way[i];
  const size_t rows = seed->shape[0], columns = seed->shape[1];
  const std::vector<double> losses = seed->values;
  for (size_t a = 0; a < rows; ++a) {
    for (size_t b = 0; b < columns; ++b) {
      seed->values[a * columns + b] =
          axis == 0 ? losses[(rows - 1 - a) * columns + b] : losses[a * columns + columns - 1 - b];
    }
  }
}

// Mirrors axes, whose directions are arbitrary, so that all paths begin on the left and below, and
// shapes can be compared. Draws only arrays whose sizes fit each other.
Ways WaysOf(const Input& input) {
  Ways ways;
  std::vector<const AnalyzedSetting*> settings;
  for (const AnalyzedSetting& setting : input.analyzed.settings) {
    if (setting.seeds.empty()) continue;
    const AnalyzedSeed& seed = setting.seeds[0];
    const std::vector<double>& way = Beside(seed, "way");
    if (Beside(seed, "alphas").size() != seed.shape[0] || way.empty() ||
        Beside(seed, "explained_shares").size() != 2 ||
        way.size() != 2 * Beside(seed, "way_losses").size()) {
      continue;
    }
    settings.push_back(&setting);
    ways.seeds.push_back(seed);
    for (const size_t axis : {0, 1}) {
      if (way[axis] > 0) Mirror(axis, &ways.seeds.back());
    }
  }
  for (size_t i = 0; i < settings.size(); ++i) {
    const AnalyzedSeed& seed = ways.seeds[i];
    ways.planes.push_back({settings[i], &seed, &Beside(seed, "alphas"), &seed.places});
  }
  return ways;
}

// Gives all panels the same axes, because lengths in parameter space can be compared.
void ShareAxes(std::vector<MapPanel>* panels) {
  constexpr size_t kTicks = 4;
  Extent x, y;
  for (const MapPanel& panel : *panels) {
    for (const double edge : {panel.x_edges.front(), panel.x_edges.back()}) x.Add(edge);
    for (const double edge : {panel.y_edges.front(), panel.y_edges.back()}) y.Add(edge);
  }
  for (MapPanel& panel : *panels) {
    panel.x = LinearAxis(x, 0, kTicks);
    panel.y = LinearAxis(y, 0, kTicks);
  }
}

// Adds a line from checkpoint to checkpoint, with a dark edge for visibility on every colour, and a
// diamond at the last.
void AddWay(const LossPlane& plane, MapPanel* panel) {
  const std::vector<double>& way = Beside(*plane.seed, "way");
  Line line;
  for (size_t i = 0; i < way.size(); i += 2) {
    line.x.push_back(way[i]);
    line.y.push_back(way[i + 1]);
  }
  Points dots{line.x, line.y, kWhite, Marker::kCircle, false, 1.1};
  Points last{{line.x.back()}, {line.y.back()}, kWhite, Marker::kDiamond, false, 2.4};
  Line edge = line;
  edge.color = kInk;
  edge.width = 1.7;
  line.color = kWhite;
  line.width = 0.7;
  Points dark_dots = dots, dark_last = last;
  dark_dots.color = dark_last.color = kInk;
  dark_dots.radius += 0.5;
  dark_last.radius += 0.7;
  panel->over.emplace_back(std::move(edge));
  panel->over.emplace_back(std::move(dark_dots));
  panel->over.emplace_back(std::move(line));
  panel->over.emplace_back(std::move(dots));
  panel->over.emplace_back(std::move(dark_last));
  panel->over.emplace_back(std::move(last));
}

// Returns "pre 82 + 11 %, post 75 + 14 %".
std::string SharesText(const std::vector<LossPlane>& planes) {
  std::vector<std::string> settings;
  for (const LossPlane& plane : planes) {
    const std::vector<double>& shares = Beside(*plane.seed, "explained_shares");
    settings.push_back(absl::StrCat(report::Listed(plane.setting->label), " ",
                                    report::Plain(100 * shares[0], 0), " + ",
                                    report::Plain(100 * shares[1], 0), " %"));
  }
  constexpr size_t kNamed = 6;
  return report::Enumerated(settings, kNamed);
}

std::string Footnote(const Input& input, const std::vector<LossPlane>& planes, size_t holes) {
  std::vector<std::string> sentences = {
      absl::StrCat("checkpoints, the last ", StepsText(input.analyzed),
                   ", each setting's lowest analyzed seed that converged"),
      "first two principal components, oriented so that training begins on the left and below, ◆: "
      "last checkpoint",
      absl::StrCat("explained shares of squared distances: ", SharesText(planes))};
  for (std::string& text : PlaneSentences(holes)) sentences.push_back(std::move(text));
  return FootnoteOf(std::move(sentences), LeftOutOf(input.analyzed.settings), "drawn");
}

// Adds points of the plane without a checkpoint, and checkpoints by their number from the first.
void AddRows(const Input& input, const LossPlane& plane, std::string* csv) {
  const auto add = [&](auto checkpoint, double alpha, double beta, double loss) {
    AddCsvRow(csv, input.key, plane.setting->label, plane.seed->step, plane.seed->seed, checkpoint,
              alpha, beta, loss);
  };
  const std::vector<double>& way = Beside(*plane.seed, "way");
  const std::vector<double>& losses = Beside(*plane.seed, "way_losses");
  for (size_t k = 0; k < losses.size(); ++k) add(k, way[2 * k], way[2 * k + 1], losses[k]);
  for (size_t a = 0; a < plane.x->size(); ++a) {
    for (size_t b = 0; b < plane.y->size(); ++b) {
      add("", (*plane.x)[a], (*plane.y)[b], plane.At(a, b));
    }
  }
}

absl::StatusOr<Drawing> DrawTrajectory(const Input& input) {
  const Ways ways = WaysOf(input);
  const std::vector<LossPlane>& planes = ways.planes;
  if (planes.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("key: the arrays of ", text::CleanText(input.key),
                     " have sizes that don't match. Run the analysis again"));
  }
  std::vector<MapPanel> panels;
  size_t holes = 0;
  std::string csv = "label,setting,step,seed,checkpoint,alpha,beta,loss\n";
  const ColorScale scale = LossScale(planes);
  for (const LossPlane& plane : planes) {
    panels.push_back(PanelOf(plane, scale, &holes));
    AddWay(plane, &panels.back());
    AddRows(input, plane, &csv);
  }
  ShareAxes(&panels);
  ASSIGN_OR_RETURN(
      auto figure,
      DrawMaps(panels, scale, {"First axis", "Second axis", Footnote(input, planes, holes)},
               input.width));
  figure.title = AnalyzedTitle(input, "training trajectory");
  figure.description =
      absl::StrCat("Losses on the plane of the checkpoints: ", RangesText(planes),
                   ". Explained shares of squared distances: ", SharesText(planes), ".");
  return Drawing{std::move(figure), std::move(csv)};
}

std::string TrajectoryCaption(const Input& input) {
  return absl::StrCat(
      "Loss on the plane that fits a run's checkpoints best, and the checkpoints projected onto "
      "it. The plane contains the last checkpoint; its axes are the first two principal components "
      "of the other checkpoints' differences from it, in parameter distance, oriented so that "
      "training begins on the left and below. Each setting's lowest analyzed seed that converged, "
      "the last checkpoint ",
      StepsText(input.analyzed),
      ", all on one colour scale. The plane shows little of the loss off the trajectory: even for "
      "a random walk, the axes explain 81 and 9 % of the squared distances. Computed on ",
      input.analyzed.inputs, ".", ChosenText(*input.comparison));
}

}  // namespace

constexpr Kind kTrajectory = {
    .name = "trajectory",
    .title = "Training trajectory",
    .key = "trajectory",
    .wide = false,
    .folded = false,
    .reads = Reads::kAnalysis,
    .forms = kTrajectoryForms,
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = DrawTrajectory,
    .caption = TrajectoryCaption,
};

}  // namespace ablate::figure
