// The eigenvalues of representations: how evenly they share the variance, a curve a setting.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analysed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/small_multiples.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// What is left below that is the rounding of the representation, as in the direction that a norm
// takes away: 0 in exact arithmetic, with nothing to be seen on a logarithmic axis.
constexpr double kLeastShare = 1e-10;

constexpr ArrayForm kForms[] = {{"spectrum", "singular_values", "direction", "", "", true}};

// λ = σ² by their sum, descending; NaN for what is not drawn.
std::vector<double> SharesOf(const AnalysedSeed& seed) {
  const double largest = *std::max_element(seed.values.begin(), seed.values.end());
  report::CompensatedSum sum;
  // By the largest first: squares of singular values may overflow.
  for (const double value : seed.values) sum.Add((value / largest) * (value / largest));
  std::vector<double> shares;
  for (const double value : seed.values) {
    const double share = (value / largest) * (value / largest) / sum.Total();
    shares.push_back(share >= kLeastShare ? share : kNone);
  }
  return shares;
}

struct Spectra {
  std::vector<ReducedSetting> settings;
  size_t small = 0;  // shares that are not drawn
};

Spectra SpectraOf(const Input& input) {
  Spectra spectra;
  for (const AnalysedSetting& setting : input.analysed.settings) {
    ReducedCurve curve;
    curve.converged = setting.seeds.size();
    std::map<size_t, std::vector<double>> by_index;
    for (const AnalysedSeed& seed : setting.seeds) {
      ThinLine line;
      line.seed = seed.seed;
      line.y = SharesOf(seed);
      for (size_t i = 0; i < line.y.size(); ++i) {
        line.x.push_back(static_cast<double>(i + 1));
        by_index[i].push_back(line.y[i]);
        spectra.small += std::isnan(line.y[i]) ? 1 : 0;
      }
      if (setting.seeds.size() <= kMaxSeedLines) curve.seeds.push_back(std::move(line));
    }
    for (const auto& [index, shares] : by_index) {
      AddMean(static_cast<double>(index + 1), shares, true, &curve);
    }
    spectra.settings.push_back({setting.label, setting.style, {std::move(curve)}});
  }
  return spectra;
}

std::string SpectraFootnote(const Input& drawn, const Spectra& spectra) {
  std::vector<std::string> statements = {
      absl::StrCat(StepsText(drawn.analysed), ", ", MeanText(drawn, true))};
  if (spectra.small > 0) {
    statements.push_back(absl::StrCat(report::Counted(spectra.small, "share"), " below ",
                                      ShortNumber(kLeastShare), " not drawn"));
  }
  return CurvesFootnote(drawn, std::move(statements), LeftOutOf(drawn.analysed));
}

// Means without a seed, seeds' shares without an interval.
std::string SpectraCsv(const Input& input, const Spectra& spectra) {
  std::string csv = "label,setting,step,seed,index,share,low,high\n";
  const std::string label = CsvText(input.key);
  for (size_t s = 0; s < spectra.settings.size(); ++s) {
    const AnalysedSetting& setting = input.analysed.settings[s];
    const std::string name = CsvText(setting.label);
    AddMeanRows(label, name, spectra.settings[s].panels[0], &csv);
    for (const AnalysedSeed& seed : setting.seeds) {
      const std::vector<double> shares = SharesOf(seed);
      for (size_t i = 0; i < shares.size(); ++i) {
        AddCsvRow({label, name, absl::StrCat(seed.step), absl::StrCat(seed.seed),
                   absl::StrCat(i + 1), CsvNumber(shares[i]), "", ""},
                  &csv);
      }
    }
  }
  return csv;
}

absl::StatusOr<Drawing> DrawSpectra(const Input& input) {
  const Spectra spectra = SpectraOf(input);
  Input drawn = input;
  for (const ReducedSetting& setting : spectra.settings) {
    drawn.settings.push_back(
        {setting.label, setting.style, {Thinned(setting.panels[0], kMaxSeedPoints)}});
  }
  CurvePanel panel;
  panel.scale = ValueScale::kLogarithmic;
  panel.places = PlaceScale::kLogarithmic;
  auto figure =
      DrawPanels(drawn, {panel},
                 {"Index of eigenvalue", "Share of variance", SpectraFootnote(drawn, spectra)});
  if (!figure.ok()) return figure.status();
  figure->title = AnalysedTitle(input, "eigenvalues");
  return Drawing{*std::move(figure), SpectraCsv(input, spectra)};
}

std::string SpectraCaption(const Input& input) {
  const std::string site = OptionOf(input.analysed, "site");
  return absl::StrCat(
      "Eigenvalues of the covariance of tokens at ",
      site.empty() ? "the last block's output" : site, ", by their sum, in descending order, ",
      StepsText(input.analysed),
      ". The line is the geometric mean over the seeds that converged, the band its "
      "95 % interval (a t interval of the logarithms); thin lines are single runs; "
      "computed on ",
      input.analysed.inputs, ".", ChosenText(*input.comparison));
}

// The share that the first direction has.
std::string SpectraDescription(const Input& input) {
  std::vector<std::string> settings;
  for (const ReducedSetting& setting : SpectraOf(input).settings) {
    const std::vector<double>& mean = setting.panels[0].mean;
    const double first = mean.empty() ? kNone : mean[0];
    settings.push_back(std::isfinite(first)
                           ? absl::StrCat(setting.label, " ", report::Plain(first, 3))
                           : absl::StrCat(setting.label, " without a mean"));
  }
  return absl::StrCat("Share of the first direction: ", report::Enumerated(settings, 12), ".");
}

}  // namespace

constexpr Kind kEigenvalues = {
    .name = "eigenvalues",
    .title = "Eigenvalues",
    .help =
        "an analysis spectrum: eigenvalues by their sum in descending order, mean over seeds, its "
        "interval as a band, the seeds as thin lines",
    .key = "spectrum",
    .wide = false,
    .folded = false,
    .reads = Reads::kAnalysis,
    .forms = kForms,
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = DrawSpectra,
    .caption = SpectraCaption,
    .description = SpectraDescription,
};

}  // namespace ablate::figure
