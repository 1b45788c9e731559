#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"
#include "server/report/table/comparison_tables.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::Scale;

void MainTable(const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  const std::string chosen =
      comparison.tuned_axes.empty()
          ? ""
          : absl::StrCat(", each setting at the ", absl::StrJoin(comparison.tuned_axes, ", "),
                         " chosen on its other seeds");
  const std::string read = absl::StrCat(report::NameOfMetric(comparison.key).text, ", read ",
                                        experiment.read_at, chosen);
  WriteTable(report::MainTable(comparison), "Main table",
             absl::StrCat(report::Together({read, report::MeansNote(comparison)}, "; "), "."), out);
}

// Writes main effects and interactions of crossed axes, nothing if there are none.
void FactorialTable(const Place& place, const Comparison& comparison, Markup* out) {
  if (comparison.factorial.main.empty()) return;
  Subheading(place, "Crossed axes", out);
  WriteTable(
      report::FactorialTable(comparison), "Main effects and interactions",
      absl::StrCat(
          "What each setting of an axis does on average over the other axes (main effect), and by "
          "how much that changes where a second axis leaves its baseline (interaction, ×), by seed",
          comparison.scale == Scale::kRatio
              ? ": geometric means of ratios, and of ratios of ratios. "
              : ". ",
          comparison.tuned_axes.empty()
              ? "Holm over the main effects, and over the interactions."
              : "Values are tuned, so that a test would have to choose them again: effects are "
                "described and not tested."),
      out);
}

// Writes each setting at each shared combination of tuned values, nothing if nothing is tuned.
void MatchedTable(const Place& place, const Comparison& comparison, Markup* out) {
  const report::Table table = report::MatchedTable(comparison);
  if (table.columns.size() == 1) return;
  const bool ratio = comparison.scale == Scale::kRatio;
  const std::string axes = absl::StrJoin(comparison.tuned_axes, " and ");
  Subheading(place, absl::StrCat("At one shared ", axes), out);
  WriteTable(table, absl::StrCat("Comparison at one shared ", axes),
             absl::StrCat("Paired ", ratio ? "ratio" : "difference",
                          " to the baseline and its 95 % interval where both have the same ", axes,
                          ", one column for each value; of a baseline the ",
                          report::MeanName(comparison.scale), ".",
                          comparison.reference.has_value()
                              ? " The reference is the base spec's own value, or else the "
                                "baseline's usual choice."
                              : ""),
             out);
}

void WindowTable(const Place& place, const Experiment& experiment, Markup* out) {
  if (experiment.windows.windows.empty()) return;
  Subheading(place, "Windows of curves", out);
  WriteTable(report::WindowTable(experiment.comparison, experiment.windows), "Windows of curves",
             "Mean and 95 % interval over the converged runs of each setting; \"4 of 6 runs\" if "
             "the others have no such window. Exploratory: the verdict is about the main table.",
             out);
}

}  // namespace

void ResultsSection(const Place& place, const Experiment& experiment, Markup* out) {
  OpenSection(place, "results", "Results", out);
  MainTable(experiment, out);
  FactorialTable(place, experiment.comparison, out);
  out->Close();
  if (experiment.comparison.matched.empty() && experiment.windows.windows.empty()) return;
  OpenFolded(place, "more-results", "More tables", out);
  MatchedTable(place, experiment.comparison, out);
  WindowTable(place, experiment, out);
  CloseFolded(out);
}

}  // namespace ablate::html
