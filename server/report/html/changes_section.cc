#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

std::string ValueText(const std::string& value) { return value.empty() ? "—" : value; }

void ChangeRows(const report::ComparisonRow& row, const std::vector<FieldChange>& changes,
                Markup* out) {
  out->Open("tbody");
  for (size_t i = 0; i < changes.size(); ++i) {
    out->Open("tr");
    if (i == 0) {
      out->Element("th", {{"scope", "rowgroup"}, {"rowspan", absl::StrCat(changes.size())}},
                   row.label);
    }
    out->Open("td", {{"class", "text"}}).Element("code", changes[i].path).Close();
    out->Element("td", {{"class", "text"}}, ValueText(changes[i].baseline));
    out->Element("td", {{"class", "text"}}, ValueText(changes[i].value));
    out->Close();
  }
  out->Close();
}

void ChangeTable(const Experiment& experiment, Markup* out) {
  OpenScroll("Spec differences", out);
  out->Open("table", {{"class", "texts"}});
  Caption(
      "Fields whose resolved value differs from the baseline's, except tuned fields. A dash: the "
      "field has no effect in that setting.",
      out);
  out->Open("thead");
  HeadRow({"setting", "field", "baseline", "setting's value"}, out);
  out->Close();
  for (size_t row = 0; row < experiment.changes.size(); ++row) {
    if (experiment.changes[row].empty()) continue;
    ChangeRows(experiment.comparison.rows[row], experiment.changes[row], out);
  }
  out->Close().Close();
}

void Warnings(const Place& place, const report::Comparison& comparison, Markup* out) {
  Subheading(place, "Warnings", out);
  if (comparison.warnings.empty() && comparison.ended < comparison.planned) {
    const size_t open = comparison.planned - comparison.ended;
    out->Element("p", absl::StrCat("None so far; ", report::Counted(open, "run"),
                                   open == 1 ? " has" : " have", " not ended."));
    return;
  }
  if (comparison.warnings.empty()) {
    const bool counted =
        std::any_of(comparison.rows.begin(), comparison.rows.end(),
                    [](const report::ComparisonRow& row) { return row.parameters.has_value(); });
    const std::string compared =
        absl::StrCat(counted ? "numbers of parameters are equal, " : "",
                     "each setting changes one thing, every run has a result, there are enough "
                     "pairs");
    out->Element("p",
                 absl::StrCat("None: ", comparison.family > 0 ? compared : "every run has a result",
                              ", and versions, trainers, devices and environments are the "
                              "same."));
    return;
  }
  out->Open("ul", {{"class", "warnings"}});
  for (const report::Warning& warning : comparison.warnings) {
    out->Element("li", absl::StrCat(warning.text, "."));
  }
  out->Close();
}

}  // namespace

void ChangesSection(const Place& place, const Experiment& experiment, Markup* out) {
  OpenFolded(place, "changes", "What the settings change", out);
  bool any = false;
  for (const std::vector<FieldChange>& changes : experiment.changes) any = any || !changes.empty();
  if (any) {
    ChangeTable(experiment, out);
  } else {
    out->Element("p", "No field of the resolved specs differs from the baseline's.");
  }
  Warnings(place, experiment.comparison, out);
  CloseFolded(out);
}

}  // namespace ablate::html
