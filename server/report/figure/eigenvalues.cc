// Eigenvalues of representations: how evenly they share the variance, one curve per setting.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analyzed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/kinds.h"

namespace ablate::figure {
namespace {

// Fractions below this are rounding of the representation, as in the direction that a norm removes:
// 0 in exact arithmetic, and invisible on a logarithmic axis.
constexpr double kLeastShare = 1e-10;

constexpr ArrayForm kEigenvalueForms[] = {
    {"spectrum", "singular_values", "direction", "", "", true}};

// Returns λ = σ² divided by their sum, descending; NaN for those that aren't drawn.
ThinLine SharesOf(const AnalyzedSeed& seed) {
  const double largest = *std::max_element(seed.values.begin(), seed.values.end());
  report::CompensatedSum sum;
  // Divided by the largest first, because squares of singular values may overflow.
  for (const double value : seed.values) sum.Add((value / largest) * (value / largest));
  ThinLine line;
  line.seed = seed.seed;
  for (const double value : seed.values) {
    const double share = (value / largest) * (value / largest) / sum.Total();
    line.x.push_back(static_cast<double>(line.x.size() + 1));
    line.y.push_back(share >= kLeastShare ? share : kNone);
  }
  return line;
}

// Returns the number of fractions that aren't drawn.
size_t CountSmall(const Analyzed& analyzed) {
  size_t small = 0;
  for (const AnalyzedSetting& setting : analyzed.settings) {
    for (const AnalyzedSeed& seed : setting.seeds) {
      for (const double share : SharesOf(seed).y) small += std::isnan(share) ? 1 : 0;
    }
  }
  return small;
}

std::string SpectraFootnote(const Input& drawn) {
  std::vector<std::string> statements = {
      absl::StrCat(StepsText(drawn.analyzed), ", ", MeanText(drawn, true))};
  if (const size_t small = CountSmall(drawn.analyzed); small > 0) {
    statements.push_back(absl::StrCat(report::Counted(small, "share"), " below ",
                                      ShortNumber(kLeastShare), " not drawn"));
  }
  return CurvesFootnote(drawn, std::move(statements), LeftOutOf(drawn.analyzed.settings));
}

absl::StatusOr<Drawing> DrawSpectra(const Input& input) {
  const std::vector<ReducedSetting> spectra = ReduceLines(input.analyzed, SharesOf, true);
  Input drawn = input;
  for (const ReducedSetting& setting : spectra) {
    drawn.settings.push_back(
        {setting.label, setting.style, {Thinned(setting.panels[0], kMaxSeedPoints)}});
  }
  CurvePanel panel;
  panel.scale = ValueScale::kLogarithmic;
  panel.places = PlaceScale::kLogarithmic;
  ASSIGN_OR_RETURN(auto figure, DrawPanels(drawn, {panel},
                                           {"Index of eigenvalue", "Share of variance",
                                            SpectraFootnote(drawn)}));
  figure.title = AnalyzedTitle(input, "eigenvalues");
  const auto first = [](const ReducedCurve& curve) {
    const double share = curve.mean.empty() ? kNone : curve.mean[0];
    return std::isfinite(share) ? report::Plain(share, 3) : "";
  };
  figure.description =
      absl::StrCat("Share of the first direction: ", EachCurve(spectra, kMostNamed, first), ".");
  return Drawing{
      std::move(figure),
      LinesCsv(input, "label,setting,step,seed,index,share,low,high\n", spectra, SharesOf)};
}

std::string SpectraCaption(const Input& input) {
  const std::string site = OptionOf(input.analyzed, "site");
  return absl::StrCat(
      "Eigenvalues of the covariance of token representations at ",
      site.empty() ? "the last block's output" : site,
      " as shares of their sum, in descending order, ", StepsText(input.analyzed),
      ". Line: geometric mean over the seeds that converged. Band: its 95 % t interval (of the "
      "logarithms). Thin lines: single runs. Computed on ",
      input.analyzed.inputs, ".", ChosenText(*input.comparison));
}

}  // namespace

constexpr Kind kEigenvalues = {
    .name = "eigenvalues",
    .title = "Eigenvalues",
    .key = "spectrum",
    .wide = false,
    .folded = false,
    .reads = Reads::kAnalysis,
    .forms = kEigenvalueForms,
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = DrawSpectra,
    .caption = SpectraCaption,
};

}  // namespace ablate::figure
