// Reliability diagrams: accuracy against confidence by bin of confidence, one curve per setting.
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
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/small_multiples.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr absl::string_view kConfidence = "bin_confidence", kTargets = "bin_targets";
constexpr absl::string_view kBesideAccuracy[] = {kConfidence, kTargets};
constexpr ArrayForm kReliabilityForms[] = {
    {"predictions", "bin_accuracy", "bin", "", "calibration_error", true, kBesideAccuracy}};

// Predictions whose confidence is in one bin.
struct ConfidenceBin {
  size_t index = 0;  // from 0
  double targets = 0;
  double confidence = 0, accuracy = 0;  // means over the targets
};

// Returns the bins with targets of one run, in ascending order.
std::vector<ConfidenceBin> BinsOf(const AnalyzedSeed& seed) {
  const std::vector<double>& confidence = seed.beside.at(std::string(kConfidence));
  const std::vector<double>& targets = seed.beside.at(std::string(kTargets));
  std::vector<ConfidenceBin> bins;
  for (size_t i = 0; i < seed.values.size(); ++i) {
    const bool known = std::isfinite(confidence[i]) && std::isfinite(seed.values[i]);
    if (targets[i] > 0 && known) bins.push_back({i, targets[i], confidence[i], seed.values[i]});
  }
  return bins;
}

// Returns the bins of all runs of a setting together: means over all targets of a bin.
std::vector<ConfidenceBin> PooledBins(const AnalyzedSetting& setting) {
  std::vector<ConfidenceBin> sums;
  for (const AnalyzedSeed& seed : setting.seeds) {
    if (sums.size() < seed.values.size()) sums.resize(seed.values.size());
    for (const ConfidenceBin& bin : BinsOf(seed)) {
      sums[bin.index].targets += bin.targets;
      sums[bin.index].confidence += bin.targets * bin.confidence;
      sums[bin.index].accuracy += bin.targets * bin.accuracy;
    }
  }
  std::vector<ConfidenceBin> pooled;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double targets = sums[i].targets;
    if (targets == 0) continue;
    pooled.push_back({i, targets, sums[i].confidence / targets, sums[i].accuracy / targets});
  }
  return pooled;
}

// FAILED_PRECONDITION unless each run has one confidence and one number of targets per bin.
absl::Status CheckBins(const Input& input) {
  for (const AnalyzedSetting& setting : input.analyzed.settings) {
    for (const AnalyzedSeed& seed : setting.seeds) {
      for (const absl::string_view array : kBesideAccuracy) {
        const auto found = seed.beside.find(std::string(array));
        if (found != seed.beside.end() && found->second.size() == seed.values.size()) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            "key: ", array, " of ", text::CleanText(input.key), " doesn't have one value per bin"));
      }
    }
  }
  return absl::OkStatus();
}

ReducedCurve CurveOf(const AnalyzedSetting& setting) {
  ReducedCurve curve;
  curve.converged = setting.seeds.size();
  for (const ConfidenceBin& bin : PooledBins(setting)) {
    curve.x.push_back(bin.confidence);
    curve.mean.push_back(bin.accuracy);
  }
  curve.low = curve.high = std::vector<double>(curve.x.size(), kNone);
  if (setting.seeds.size() < 2 || setting.seeds.size() > kMaxSeedLines) return curve;
  for (const AnalyzedSeed& seed : setting.seeds) {
    ThinLine& line = curve.seeds.emplace_back();
    line.seed = seed.seed;
    for (const ConfidenceBin& bin : BinsOf(seed)) {
      line.x.push_back(bin.confidence);
      line.y.push_back(bin.accuracy);
    }
  }
  return curve;
}

// Returns the input with the settings' curves.
Input Reduced(const Input& input) {
  Input reduced = input;
  for (const AnalyzedSetting& setting : input.analyzed.settings) {
    reduced.settings.push_back({setting.label, setting.style, {CurveOf(setting)}});
  }
  return reduced;
}

// Adds a dot at each bin, whose area is the bin's share of the setting's targets.
void AddShares(const AnalyzedSetting& setting, Color color, Panel* panel) {
  constexpr double kWholeRadius = 9;  // points, of a bin with all targets
  constexpr uint8_t kHalf = 0x70;
  const std::vector<ConfidenceBin> bins = PooledBins(setting);
  double all = 0;
  for (const ConfidenceBin& bin : bins) all += bin.targets;
  for (const ConfidenceBin& bin : bins) {
    Points dot{{bin.confidence}, {bin.accuracy}, {color.rgb, kHalf}};
    dot.radius = kWholeRadius * std::sqrt(bin.targets / all);
    panel->layers.emplace_back(std::move(dot));
  }
}

// Returns "pre: 0.012 and post: 0.034": means over seeds of the calibration error.
std::string ErrorsText(const Input& input, size_t most) {
  std::vector<std::string> texts;
  for (const AnalyzedSetting& setting : input.analyzed.settings) {
    if (setting.seeds.empty()) continue;
    double sum = 0;
    for (const AnalyzedSeed& seed : setting.seeds) sum += seed.number;
    const double mean = sum / static_cast<double>(setting.seeds.size());
    texts.push_back(absl::StrCat(report::Listed(setting.label), ": ",
                                 std::isfinite(mean) ? report::Plain(mean, 3) : "undefined"));
  }
  return report::Enumerated(texts, most);
}

std::string ReliabilityFootnote(const Input& drawn) {
  constexpr size_t kNamed = 6;
  const std::string seeds =
      AnyInterval(drawn) ? absl::StrCat(SeedsText(drawn), " weighted by targets") : "one seed";
  return CurvesFootnote(
      drawn,
      {absl::StrCat(StepsText(drawn.analyzed), ", ", seeds), "area of a dot: share of targets",
       absl::StrCat("calibration error of ", ErrorsText(drawn, kNamed))},
      LeftOutOf(drawn.analyzed.settings));
}

std::string ReliabilityCsv(const Input& input) {
  std::string csv = "label,setting,step,seed,bin,confidence,accuracy,targets\n";
  for (const AnalyzedSetting& setting : input.analyzed.settings) {
    const auto add = [&](const std::vector<ConfidenceBin>& bins, auto step, auto seed) {
      for (const ConfidenceBin& bin : bins) {
        AddCsvRow(&csv, input.key, setting.label, step, seed, bin.index, bin.confidence,
                  bin.accuracy, bin.targets);
      }
    };
    add(PooledBins(setting), "", "");
    for (const AnalyzedSeed& seed : setting.seeds) add(BinsOf(seed), seed.step, seed.seed);
  }
  return csv;
}

absl::StatusOr<Drawing> DrawReliability(const Input& input) {
  RETURN_IF_ERROR(CheckBins(input));
  const Input drawn = Reduced(input);
  CurvePanel panel;
  panel.places = PlaceScale::kLinear;
  panel.scale = ValueScale::kLinear;
  panel.diagonal = true;
  ASSIGN_OR_RETURN(auto figure, DrawPanels(drawn, {panel},
                                           {"Confidence", "Accuracy", ReliabilityFootnote(drawn)}));
  // Small multiples have a panel for each setting with runs.
  const bool multiples = InSmallMultiples(drawn);
  size_t panel_of = 0;
  for (const AnalyzedSetting& setting : input.analyzed.settings) {
    if (setting.seeds.empty()) continue;
    const bool black = HasOneBaseline(*input.comparison) && setting.style == 0;
    const Color color = !multiples ? StyleOf(setting.style).line : black ? kInk : kOwn;
    AddShares(setting, color, &figure.panels[multiples ? panel_of++ : 0]);
  }
  figure.title = AnalyzedTitle(input, "reliability of predictions");
  figure.description = absl::StrCat("Calibration error of ", ErrorsText(input, kMostNamed), ".");
  return Drawing{std::move(figure), ReliabilityCsv(input)};
}

std::string ReliabilityCaption(const Input& input) {
  return absl::StrCat(
      "Accuracy of predictions against their mean confidence, by bin of confidence, ",
      StepsText(input.analyzed),
      ". On the dotted diagonal a model is calibrated. Line: all seeds that converged together, so "
      "that each target counts once. The area of a dot is the bin's share of the targets",
      SeedLinesText(Reduced(input)), ". Calibration error, mean over seeds, of ",
      ErrorsText(input, kMostNamed), ". Computed on ", input.analyzed.inputs, ".",
      ChosenText(*input.comparison));
}

}  // namespace

constexpr Kind kReliability = {
    .name = "reliability",
    .title = "Reliability of predictions",
    .key = "predictions",
    .wide = false,
    .folded = false,
    .reads = Reads::kAnalysis,
    .forms = kReliabilityForms,
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = DrawReliability,
    .caption = ReliabilityCaption,
};

}  // namespace ablate::figure
