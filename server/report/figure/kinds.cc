#include "server/report/figure/kinds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean.h"
#include "base/csv.h"
#include "base/decimal.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/curve_panels.h"

namespace ablate::figure {
namespace {

constexpr const Kind* kKinds[] = {&kLoss,        &kWindows, &kCurves,      &kForest,
                                  &kDifference,  &kAxis,    &kSensitivity, &kSummary,
                                  &kDepth,       &kLevels,  &kLandscape,   &kEigenvalues,
                                  &kReliability, &kMatrix,  &kTrajectory};

}  // namespace

absl::Span<const Kind* const> Kinds() { return kKinds; }

std::vector<const Kind*> KindsInReport(const report::Comparison& comparison) {
  std::vector<const Kind*> kinds;
  std::copy_if(std::begin(kKinds), std::end(kKinds), std::back_inserter(kinds),
               [&comparison](const Kind* kind) { return kind->wanted(comparison); });
  const auto place = [](const Kind* kind) {
    const bool compares = kind->reads == Reads::kComparison || kind->reads == Reads::kPairs;
    return std::make_pair(kind->wide, !compares);
  };
  std::stable_sort(kinds.begin(), kinds.end(),
                   [&place](const Kind* a, const Kind* b) { return place(a) < place(b); });
  return kinds;
}

const Kind* FindKind(absl::string_view name) {
  for (const Kind* kind : kKinds) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

std::optional<Along> AlongOf(const Kind& kind) {
  if (kind.reads == Reads::kBlocks) return Along::kBlocks;
  if (kind.reads == Reads::kLevels) return Along::kLevels;
  return std::nullopt;
}

std::string KindNames() {
  std::string names;
  for (const Kind* const& kind : kKinds) {
    const bool last = &kind + 1 == std::end(kKinds);
    absl::StrAppend(&names, names.empty() ? "" : last ? " or " : ", ", kind->name);
  }
  return names;
}

ReducedSetting ReduceSetting(const Kind& kind, const SettingCurves& curves,
                             const CurveOptions& options) {
  return {curves.label, curves.style, kind.reduce(curves, options)};
}

absl::StatusOr<Drawing> Draw(const Kind& kind, const Input& input) {
  const bool points = std::any_of(input.settings.begin(), input.settings.end(), HasRuns);
  if (kind.reduce != nullptr && !points) {
    const bool paired = kind.reads == Reads::kPairs;
    const bool ended = input.comparison->ended == input.comparison->planned;
    return absl::FailedPreconditionError(absl::StrCat(
        "key: ", paired ? "no seed on which a setting and its baseline converged" : "no run",
        " has points of ", text::CleanText(input.key),
        ended ? "" : " yet. Retry when more runs have ended"));
  }
  if (kind.reads == Reads::kAnalysis && !HasSeeds(input.analyzed)) {
    return absl::FailedPreconditionError(
        absl::StrCat("key: no converged run has an analysis with the label ",
                     text::CleanText(input.key), " yet. Run `ablate analyze`, or retry later"));
  }
  absl::StatusOr<Drawing> drawing = kind.draw(input);
  if (!drawing.ok()) return drawing;
  drawing->figure.name = std::string(kind.name);
  return drawing;
}

std::string AnalyzedTitle(const Input& input, absl::string_view what) {
  return absl::StrCat(input.title, ": ", what, " (", input.key, ") of ",
                      report::Enumerated(NamesOfDrawn(input.analyzed.settings), kMostNamed));
}

std::string SettingsText(const report::Comparison& comparison) {
  if (comparison.row_axes.size() < 2) return "";
  return absl::StrCat(" Settings are combinations of ", report::Enumerated(comparison.row_axes),
                      ".");
}

std::string ChosenText(const report::Comparison& comparison) {
  if (comparison.tuned_axes.empty()) return SettingsText(comparison);
  return absl::StrCat(SettingsText(comparison), " Each setting is shown at its selected ",
                      absl::StrJoin(comparison.tuned_axes, " and "), ".");
}

std::string CsvText(absl::string_view text) { return text::CsvField(text::CleanText(text)); }

std::string CsvNumber(double value) {
  if (!std::isfinite(value)) return "";
  std::string text;
  text::AppendDecimal(value, &text);
  return text;
}

}  // namespace ablate::figure
