// What a hurried reader sees: a card a setting, the figure that decides, what was checked and what
// to beware of, and the command that makes it again.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/headline.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/warnings.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/style.h"
#include "server/report/html/sections.h"
#include "text/clean.h"
#include "text/decimal.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::ComparisonRow;
using report::Headline;
using report::WarningKind;

constexpr size_t kMaxCards = 8;            // of more settings those of which most is known
constexpr size_t kMaxCautionLength = 170;  // characters; of longer ones the subject

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

std::string Sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] += 'A' - 'a';
  return text;
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

// "Of 11 settings 3 are established and 8 inconclusive; these are the clearest".
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

void Cards(const Place& place, const Experiment& experiment, Markup* out) {
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
    out->Element("p", {{"class", "facts"}}, absl::StrCat(Sentence(note), "."));
  }
  if (comparison.factorial.main.empty()) return;
  out->Open("p", {{"class", "facts"}});
  out->Text("What each axis does on average, and whether that depends on another one: ");
  out->Element("a", {{"href", absl::StrCat("#", place.prefix, "results")}},
               "main effects and interactions");
  out->Close();
}

// "Held-out loss (nats per token, lower is better) after 1,000 steps, against “pre” = 2.4406 at lr
// .004."
void Measured(const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  std::set<size_t> baselines;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.compared()) baselines.insert(*row.baseline);
  }
  out->Open("p", {{"class", "measured"}});
  out->Text(absl::StrCat(report::MeasuredIn(comparison), " ", experiment.read_at));
  if (baselines.size() == 1) {
    const ComparisonRow& baseline = comparison.rows[*baselines.begin()];
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
  out->Text(
         absl::StrCat(". Brackets: 95 % interval over seeds",
                      IsRechosen(comparison) ? " by the test; bands in figures are Student's" : "",
                      ratio ? "; means are geometric." : "."))
      .Close();
}

bool Has(const Comparison& comparison, WarningKind kind) {
  return std::any_of(comparison.warnings.begin(), comparison.warnings.end(),
                     [kind](const report::Warning& warning) { return warning.kind == kind; });
}

// Runs at shared tuned values that diverged, whether or not they are chosen by any row.
size_t DivergedInAll(const Comparison& comparison) {
  size_t diverged = 0;
  for (const report::MatchedBlock& block : comparison.matched) {
    for (const ComparisonRow& row : block.rows) diverged += row.diverged;
  }
  return diverged;
}

// What was looked at and found in order.
std::vector<std::string> PassedChecks(const Comparison& comparison) {
  std::vector<std::string> passed;
  const auto diverged =
      std::accumulate(comparison.rows.begin(), comparison.rows.end(), size_t{0},
                      [](size_t sum, const ComparisonRow& row) { return sum + row.diverged; });
  const bool whole = comparison.ended == comparison.planned &&
                     !Has(comparison, WarningKind::kMissingCells) &&
                     !Has(comparison, WarningKind::kFailedCells);
  if (whole) {
    const size_t others = DivergedInAll(comparison);
    passed.push_back(absl::StrCat(
        "Every run finished", diverged > 0 ? ""
                              : others > 0 ? absl::StrCat("; no chosen run diverged, but ", others,
                                                          " at other values did")
                              : comparison.tuned_axes.empty() ? ", none diverged"
                                                              : "; no chosen run diverged"));
  }
  const bool ordered = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                   [](const ComparisonRow& row) { return !row.chosen.empty(); });
  if (ordered && comparison.edges_known && !Has(comparison, WarningKind::kGridEdge)) {
    passed.push_back(absl::StrCat("No chosen ", absl::StrJoin(comparison.tuned_axes, " or "),
                                  " at the edge of its grid"));
  }
  const bool counted =
      std::all_of(comparison.rows.begin(), comparison.rows.end(),
                  [](const ComparisonRow& row) { return row.parameters.has_value(); });
  if (counted && !Has(comparison, WarningKind::kUnequalParameters)) {
    passed.emplace_back("Equal numbers of parameters");
  }
  if (whole && !Has(comparison, WarningKind::kMixedProvenance)) {
    passed.emplace_back("One version, trainer, device and environment");
  }
  return passed;
}

// Opens a line of the list. Its mark is drawn by the style, which says nothing to those who listen.
Markup& Check(Literal kind, const std::string& text, Markup* out) {
  out->Open("li", {{"class", kind.text()}});
  out->Element("span", {{"class", "unseen"}}, absl::StrCat(Sentence(kind.text()), ": "));
  return out->Text(Sentence(text));
}

void Checks(const Place& place, const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  out->Open("ul", {{"class", "checks"}});
  for (const std::string& passed : PassedChecks(comparison)) Check("passed", passed, out).Close();
  std::set<WarningKind> subjects;
  for (const report::Warning& warning : comparison.warnings) {
    // That is about what runs cost, and no caution about the answer.
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
  std::vector<std::string> others = {report::WithinNote(comparison)};
  others.insert(others.end(), experiment.cautions.begin(), experiment.cautions.end());
  for (const Figure& figure : experiment.figures) {
    others.insert(others.end(), figure.cautions.begin(), figure.cautions.end());
  }
  for (const std::string& text : others) {
    if (!text.empty()) Check("caution", text, out).Close();
  }
  out->Close();
}

void Again(const Experiment& experiment, Markup* out) {
  const Provenance& provenance = experiment.provenance;
  out->Open("p", {{"class", "again"}}).Text("Again: ");
  out->Element("code", {{"class", "copy"}}, provenance.submit_command);
  if (!experiment.comparison.exploratory.empty()) {
    out->Text(", then ").Element("code", {{"class", "copy"}}, provenance.report_command);
  }
  if (provenance.device_seconds >= .5) {
    out->Text(absl::StrCat(" · ", text::Grouped(std::llround(provenance.device_seconds)),
                           " device-seconds"));
  }
  out->Text(absl::StrCat(" · spec ", provenance.spec_sha256.substr(0, 8))).Close();
}

}  // namespace

void FirstScreen(const Place& place, const Experiment& experiment, Markup* out) {
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
                 Sentence(verdict.text));
  }
  if (!comparison.exploratory.empty()) {
    out->Element(
        "p", {{"class", "answer exploratory"}},
        absl::StrCat("Exploratory (", comparison.exploratory, "): described, without a verdict."));
  }
  if (compared) Cards(place, experiment, out);
  Checks(place, experiment, out);
  if (!experiment.scope.empty()) {
    out->Element("p", {{"class", "scope"}},
                 absl::StrCat("What this does not show: anything beyond ", experiment.scope));
  }
  Again(experiment, out);
  out->Close();
  if (experiment.decisive.has_value()) {
    OneFigure(experiment.figures[*experiment.decisive], place.prefix, 1, out);
  }
  out->Close().Close();
}

}  // namespace ablate::html
