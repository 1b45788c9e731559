#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/phrases.h"
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
                         " selected by leave-one-seed-out");
  const std::string read = absl::StrCat(comparison.Metric().text, " ", experiment.read_at, chosen);
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
          "Main effect: a setting against its axis's baseline, averaged over the other axes. "
          "Interaction (×): by how much that changes when a second axis leaves its baseline. Both "
          "are paired by ",
          report::UnitName(comparison.unit),
          comparison.scale == Scale::kRatio
              ? ": geometric means of ratios, and of ratios of ratios. "
              : ". ",
          comparison.tuned_axes.empty()
              ? "Holm's adjustment is separate for main effects and for interactions."
              : "Effects are not tested, because a test would have to repeat the selection of the "
                "tuned values."),
      out);
}

// Writes which tuned values were selected, nothing if there is one per axis.
void SelectionTable(const Place& place, const Comparison& comparison, Markup* out) {
  const report::Table table = report::SelectionTable(comparison);
  if (table.columns.size() == 1) return;
  const std::string title =
      absl::StrCat("Selected ", absl::StrJoin(comparison.tuned_axes, " and "));
  Subheading(place, title, out);
  WriteTable(table, title,
             "Number of seeds for which leave-one-seed-out selection took each value. Two seeds' "
             "selections share all other seeds, so they differ less than independent ones.",
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
                          " to the baseline with its 95 % t interval, both at the same ", axes,
                          "; one column per value. The baseline's row has its ",
                          report::MeanName(comparison.scale), ".",
                          comparison.reference.has_value()
                              ? " Reference: the base spec's own value or, if that was not tried, "
                                "the value selected most often for the baseline."
                              : ""),
             out);
}

void WindowTable(const Place& place, const Experiment& experiment, Markup* out) {
  if (experiment.windows.windows.empty()) return;
  Subheading(place, "Curve summaries", out);
  WriteTable(report::WindowTable(experiment.comparison, experiment.windows), "Curve summaries",
             "Mean and 95 % interval over the converged runs of each setting; a cell says \"4 of 6 "
             "runs\" if the other runs lack the window. Exploratory: the verdict is about the main "
             "table.",
             out);
}

}  // namespace

void ResultsSection(const Place& place, const Experiment& experiment, Markup* out) {
  OpenSection(place, "results", "Results", out);
  MainTable(experiment, out);
  SelectionTable(place, experiment.comparison, out);
  FactorialTable(place, experiment.comparison, out);
  out->Close();
  if (experiment.comparison.matched.empty() && experiment.windows.windows.empty()) return;
  OpenFolded(place, "more-results", "More tables", out);
  MatchedTable(place, experiment.comparison, out);
  WindowTable(place, experiment, out);
  CloseFolded(out);
}

}  // namespace ablate::html
