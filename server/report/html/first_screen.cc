// What a hurried reader sees: a card a setting, the figure that decides, checks and cautions, and
// the command that makes it again.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/headline.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/style.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::ComparisonRow;
using report::Headline;

constexpr size_t kMaxCards = 8;  // of more settings those of which most is known

// The colour that the setting has in every figure; the words say the same.
void Chip(size_t colour, Markup* out) {
  out->Open("svg", {{"class", "chip"}, {"viewBox", "0 0 10 10"}, {"aria-hidden", "true"}});
  out->Open("rect", {{"class", absl::StrCat("c", colour % figure::kHues)},
                     {"width", "10"},
                     {"height", "10"},
                     {"rx", "2"}})
      .Close();
  out->Close();
}

std::string ToneOf(const Headline& headline) {
  return headline.decision.grade >= report::Grade::kEquivalent
             ? std::string(report::OutcomeName(headline.decision.outcome))
             : "open";
}

void Card(const ComparisonRow& row, const Headline& headline, size_t colour, Markup* out) {
  out->Open("li", {{"class", absl::StrCat("card ", ToneOf(headline))}});
  out->Open("p", {{"class", "who"}});
  Chip(colour, out);
  out->Text(report::Quoted(row.label)).Close();
  out->Open("div").Open("p").Element("strong", headline.lead);
  out->Text(headline.rest.empty() ? "" : absl::StrCat(" ", headline.rest)).Close();
  if (!headline.facts.empty()) {
    out->Element("p", {{"class", "facts"}}, absl::StrJoin(headline.facts, " · "));
  }
  out->Close().Close();
}

// Rows that are compared, in the grid's order; of more than fit those first of which most is known.
std::vector<size_t> CardRows(const Comparison& comparison) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < comparison.rows.size(); ++row) {
    if (comparison.rows[row].compared()) rows.push_back(row);
  }
  if (rows.size() <= kMaxCards) return rows;
  const auto known = [&comparison](size_t row) {
    const ComparisonRow& of = comparison.rows[row];
    const double size = of.difference.mean.defined() ? std::abs(of.difference.mean.value) : 0;
    return std::make_pair(static_cast<int>(report::Decide(comparison, of).grade), size);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&known](size_t a, size_t b) { return known(a) > known(b); });
  return rows;
}

absl::string_view GradeText(report::Grade grade) {
  switch (grade) {
    case report::Grade::kEstablished:
      return "established";
    case report::Grade::kProbable:
      return "probable";
    case report::Grade::kEquivalent:
      return "equivalent";
    case report::Grade::kLeans:
      return "only leaning";
    case report::Grade::kInconclusive:
      return "inconclusive";
    case report::Grade::kNoVerdict:
      break;
  }
  return "without a verdict";
}

// "Of 11 settings: 3 established and 8 inconclusive. The 8 clearest; all are in the table below."
std::string CountsText(const Comparison& comparison, const std::vector<size_t>& rows) {
  std::map<report::Grade, size_t> graded;
  for (const size_t row : rows) ++graded[report::Decide(comparison, comparison.rows[row]).grade];
  std::vector<std::string> counts;
  for (auto grade = graded.rbegin(); grade != graded.rend(); ++grade) {
    counts.push_back(absl::StrCat(grade->second, " ", GradeText(grade->first)));
  }
  return absl::StrCat("Of ", rows.size(), " settings: ", report::Enumerated(counts), ". The ",
                      kMaxCards, " clearest; all are in the table below.");
}

void Cards(const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  std::vector<size_t> rows = CardRows(comparison);
  if (rows.size() > kMaxCards) {
    out->Element("p", {{"class", "measured"}}, CountsText(comparison, rows));
    rows.resize(kMaxCards);
  }
  out->Open("ul", {{"class", "cards"}});
  for (const size_t row : rows) {
    const size_t colour = row < experiment.colours.size() ? experiment.colours[row] : row;
    Card(comparison.rows[row], report::HeadlineOf(comparison, row), colour, out);
  }
  out->Close();
  if (const std::string note = report::ProbableNote(comparison); !note.empty()) {
    out->Element("p", {{"class", "facts"}}, absl::StrCat(report::Capitalized(note), "."));
  }
}

// "Held-out loss (nats per token, lower is better) after 1,000 steps, against “pre” = 2.4406 at lr
// .004."
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
  out->Text(absl::StrCat(". In brackets: the 95 % interval over seeds",
                         IsRechosen(comparison)
                             ? ", from the test that judges; bands in figures are Student's"
                             : "",
                         ratio ? "; means are geometric." : "."))
      .Close();
}

void Again(const std::string& command, const Provenance& provenance, Markup* out) {
  out->Open("p", {{"class", "again"}}).Text("Again: ");
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
    const report::Verdict verdict = report::OverallVerdict(comparison);
    out->Element("p", {{"class", absl::StrCat("answer ", report::OutcomeName(verdict.outcome))}},
                 report::Capitalized(verdict.text));
  }
  if (!comparison.exploratory.empty()) {
    out->Element(
        "p", {{"class", "answer exploratory"}},
        absl::StrCat("Exploratory (", comparison.exploratory,
                     "): described, without a verdict. The planned comparison is on the page that "
                     "ablate report writes without options."));
  }
  if (compared) {
    EffectCards(place, comparison, out);
    Cards(experiment, out);
  }
  Checks(place, experiment, out);
  if (!experiment.scope.empty()) {
    out->Element("p", {{"class", "scope"}},
                 absl::StrCat("What this does not show: anything beyond ", experiment.scope));
  }
  Again(command, experiment.provenance, out);
  out->Close();
  if (experiment.decisive.has_value()) {
    OneFigure(experiment.figures[*experiment.decisive], place.prefix, 1, out);
  }
  out->Close().Close();
}

}  // namespace ablate::html
