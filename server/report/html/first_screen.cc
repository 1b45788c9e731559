// Writes the first screen: a card per setting, the deciding figure, checks and cautions, and the
// command that makes it again.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::ComparisonRow;

// Writes "Held-out loss (nats per token, lower is better) after 1,000 steps, against “pre” = 2.4406
// at lr 0.004."
void Measured(const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  out->Open("p", {{"class", "measured"}});
  out->Text(absl::StrCat(report::MeasuredIn(comparison), " ", experiment.read_at));
  if (const auto shared = report::SharedBaseline(comparison); shared.has_value()) {
    const ComparisonRow& baseline = comparison.rows[*shared];
    out->Text(", against ").Element("strong", report::Quoted(baseline.label));
    if (baseline.own.mean.defined()) {
      // As in the table.
      out->Text(absl::StrCat(" = ", MeanCell(baseline.own.mean, baseline.own.interval,
                                             report::MeanDecimals(comparison), comparison.scale)
                                        .text));
    }
    if (const std::string chosen = report::ChosenText(baseline, comparison.tuned_axes);
        !chosen.empty()) {
      out->Text(absl::StrCat(" at ", chosen));
    }
  } else {
    out->Text(", each against the baseline of its own group");
  }
  const bool ratio = comparison.scale == report::Scale::kRatio;
  const std::string note = report::UnitNote(comparison);
  out->Text(absl::StrCat(". Brackets: 95 % interval over ", report::UnitName(comparison.unit),
                         "s, by ",
                         IsReselected(comparison) ? "inversion of the permutation test. Bands in "
                                                    "figures: Student's t intervals"
                                                  : "Student's t",
                         ratio ? ". Means are geometric." : ".",
                         note.empty() ? "" : absl::StrCat(" ", report::Capitalized(note), ".")))
      .Close();
}

void Again(const std::string& command, const Provenance& provenance, Markup* out) {
  out->Open("p", {{"class", "again"}}).Text("Reproduce: ");
  out->Element("code", {{"class", "copy"}}, command);
  if (provenance.device_seconds >= .5) {
    out->Text(absl::StrCat(" · ", text::Grouped(std::llround(provenance.device_seconds)),
                           " device-seconds"));
  }
  out->Text(absl::StrCat(" · SHA-256 of the spec ", provenance.spec_sha256.substr(0, 8), "…"))
      .Close();
}

}  // namespace

void FirstScreen(const Place& place, const std::string& command, const Experiment& experiment,
                 Markup* out) {
  const Comparison& comparison = experiment.comparison;
  out->Open("section", {{"id", absl::StrCat(place.prefix, "verdict")}, {"class", "verdict"}});
  Unseen(place, "Verdict", out);
  out->Open("div", {{"class", "first"}}).Open("div", {{"class", "answers"}});
  const bool compared = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                    [](const ComparisonRow& row) { return row.compared(); });
  if (compared) Measured(experiment, out);
  if (!compared || comparison.ended < comparison.planned) {
    const report::Verdict verdict =
        report::OverallVerdict(comparison, report::FindingsOf(comparison));
    out->Element("p", {{"class", absl::StrCat("answer ", report::OutcomeName(verdict.outcome))}},
                 report::Capitalized(verdict.text));
  }
  if (!comparison.exploratory.empty()) {
    out->Element(
        "p", {{"class", "answer exploratory"}},
        absl::StrCat("Exploratory (", comparison.exploratory,
                     "): not tested, so without a verdict. For the planned comparison, run ablate "
                     "report without options."));
  }
  if (compared) {
    EffectCards(place, comparison, out);
    Cards(experiment, out);
  }
  Checks(place, experiment, out);
  if (!experiment.scope.empty()) {
    out->Element("p", {{"class", "scope"}},
                 absl::StrCat("Not shown: anything beyond ", experiment.scope));
  }
  Again(command, experiment.provenance, out);
  out->Close();
  if (experiment.decisive.has_value()) {
    OneFigure(experiment.figures[*experiment.decisive], place.prefix, 1, out);
  }
  out->Close().Close();
}

}  // namespace ablate::html
