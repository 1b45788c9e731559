// Checks that passed, and cautions.
#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/warnings.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::ComparisonRow;
using report::WarningKind;

constexpr size_t kMaxCautionLength = 170;  // characters; longer ones are shown by their subject

bool Has(const Comparison& comparison, WarningKind kind) {
  return std::any_of(comparison.warnings.begin(), comparison.warnings.end(),
                     [kind](const report::Warning& warning) { return warning.kind == kind; });
}

size_t DivergedRuns(const Comparison& comparison) {
  return std::accumulate(comparison.rows.begin(), comparison.rows.end(), size_t{0},
                         [](size_t sum, const ComparisonRow& row) { return sum + row.diverged; });
}

// Returns true if all runs have ended, and none is missing.
bool IsWhole(const Comparison& comparison) {
  return comparison.ended == comparison.planned && !Has(comparison, WarningKind::kMissingCells) &&
         !Has(comparison, WarningKind::kFailedCells);
}

// Returns the checks that passed.
std::vector<std::string> PassedChecks(const Comparison& comparison) {
  std::vector<std::string> passed;
  const bool whole = IsWhole(comparison);
  if (whole && DivergedRuns(comparison) == 0) {
    const std::string others = report::DivergedNote(comparison);
    passed.push_back(absl::StrCat("Every run finished; ", !others.empty() ? others
                                                          : comparison.tuned_axes.empty()
                                                              ? "none diverged"
                                                              : "no selected run diverged"));
  }
  const bool ordered = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                   [](const ComparisonRow& row) { return !row.chosen.empty(); });
  if (whole && ordered && comparison.edges_known && !Has(comparison, WarningKind::kGridEdge)) {
    passed.push_back(absl::StrCat("No selected ", absl::StrJoin(comparison.tuned_axes, " or "),
                                  " at the edge of its grid"));
  }
  const bool counted =
      std::all_of(comparison.rows.begin(), comparison.rows.end(),
                  [](const ComparisonRow& row) { return row.parameters.has_value(); });
  if (counted && !Has(comparison, WarningKind::kUnequalParameters)) {
    passed.emplace_back(report::SharedBaseline(comparison).has_value()
                            ? "Equal numbers of parameters"
                            : "Each setting has as many parameters as its baseline");
  }
  if (whole && !Has(comparison, WarningKind::kMixedProvenance)) {
    passed.emplace_back("One version, trainer, device and environment");
  }
  return passed;
}

// Returns "5 of 30 runs diverged: each loses to a converged partner and is left out of the means",
// by sequence "… has no pairs and …"; with tuning, of the selected runs.
std::string DivergedText(const Comparison& comparison) {
  size_t runs = 0;
  for (const ComparisonRow& row : comparison.rows) runs += row.n;
  const size_t diverged = DivergedRuns(comparison);
  if (diverged == 0) return "";
  return absl::StrCat(
      diverged, " of ", report::Counted(runs, "run"), " diverged: ", diverged == 1 ? "it" : "each",
      comparison.unit != report::Unit::kSeed ? " has no pairs" : " loses to a converged partner",
      " and is left out of the means");
}

// Returns "16 of 144 analyses are done: their results are preliminary".
std::string OpenAnalysesText(const Experiment& experiment) {
  size_t asked = 0, done = 0;
  bool failed = false;
  for (const report::HeadlineNumbers& table : experiment.analyses) {
    asked += table.asked;
    done += table.done;
    failed = failed || !table.failure.empty();
  }
  if (done == asked || failed) return "";
  return absl::StrCat(done, " of ", asked, " analyses are done: their results are preliminary");
}

// Opens a line of the list. The style draws its mark, which screen readers ignore.
Markup& Check(Literal kind, const std::string& text, Markup* out) {
  out->Open("li", {{"class", kind.text()}});
  out->Element("span", {{"class", "unseen"}}, absl::StrCat(report::Capitalized(kind.text()), ": "));
  return out->Text(report::Capitalized(text));
}

}  // namespace

void Checks(const Place& place, const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  out->Open("ul", {{"class", "checks"}});
  for (const std::string& passed : PassedChecks(comparison)) Check("passed", passed, out).Close();
  std::set<WarningKind> subjects;
  for (const report::Warning& warning : comparison.warnings) {
    // It is about the cost of runs, not a caution about the answer.
    if (warning.kind == WarningKind::kContendedThroughput) continue;
    const absl::string_view subject = report::WarningName(warning.kind);
    const bool brief = text::CountCharacters(warning.text) <= kMaxCautionLength;
    if (!brief && !subjects.insert(warning.kind).second) continue;
    Check("caution", brief ? warning.text : std::string(subject), out).Text(" ");
    out->Element("a",
                 {{"href", absl::StrCat("#", place.prefix, "changes")},
                  {"aria-label", absl::StrCat("details: ", subject)}},
                 "details");
    out->Close();
  }
  const std::string& why = experiment.why_cancelled;
  if (!why.empty()) Check("caution", absl::StrCat("cancelled: ", why), out).Close();
  std::vector<std::string> others = {report::WithinNote(comparison), DivergedText(comparison),
                                     OpenAnalysesText(experiment)};
  for (const Figure& figure : experiment.figures) {
    others.insert(others.end(), figure.cautions.begin(), figure.cautions.end());
  }
  for (const std::string& text : others) {
    if (!text.empty()) Check("caution", text, out).Close();
  }
  out->Close();
}

}  // namespace ablate::html
