#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/warnings.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::ComparisonRow;
using report::Verdict;
using report::WarningKind;

// Rows whose own sentence is shown; of more, the overall sentence counts.
constexpr size_t kMaxSentences = 24;

// A sentence a compared row, where there are several.
void RowSentences(const Place& place, const Comparison& comparison, Markup* out) {
  const auto rows =
      static_cast<size_t>(std::count_if(comparison.rows.begin(), comparison.rows.end(),
                                        [](const ComparisonRow& row) { return row.compared(); }));
  if (rows < 2) return;
  Subheading(place, "Setting by setting", out);
  out->Open("ul", {{"class", "rows"}});
  size_t shown = 0;
  for (size_t row = 0; row < comparison.rows.size() && shown < kMaxSentences; ++row) {
    if (!comparison.rows[row].compared()) continue;
    const Verdict verdict = report::RowVerdict(comparison, row);
    out->Open("li", {{"class", std::string(report::OutcomeName(verdict.outcome))}})
        .Text(verdict.text)
        .Close();
    ++shown;
  }
  if (shown < rows) {
    out->Element("li", absl::StrCat("and ", rows - shown, " more, in the table below."));
  }
  out->Close();
}

absl::string_view BetterText(report::Better better) {
  switch (better) {
    case report::Better::kLower:
      return "lower";
    case report::Better::kHigher:
      return "higher";
    case report::Better::kNeither:
      break;
  }
  return "neither lower nor higher";
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

// How many settings have which grade, in words.
std::string SureText(const Comparison& comparison) {
  size_t fewest = SIZE_MAX, most = 0;
  std::map<report::Grade, size_t> graded;
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.in_family()) continue;
    fewest = std::min(fewest, row.difference.n);
    most = std::max(most, row.difference.n);
    ++graded[report::Decide(comparison, row).grade];
  }
  if (comparison.family == 0) return "";
  // Counts of what is decided would be read as a verdict.
  if (comparison.ended < comparison.planned) return "";
  const std::string pairs =
      fewest == most ? absl::StrCat(most) : absl::StrCat(fewest, " to ", most);
  std::vector<std::string> counts;
  for (auto grade = graded.rbegin(); grade != graded.rend(); ++grade) {
    counts.push_back(absl::StrCat(grade->second, " ", GradeText(grade->first)));
  }
  return absl::StrCat("Each setting is compared with its baseline seed by seed, over ", pairs,
                      most == 1 ? " pair" : " pairs", ": ", report::Enumerated(counts), ".");
}

std::string WarningsText(const Comparison& comparison) {
  std::vector<std::string> names;
  std::set<WarningKind> seen;
  for (const report::Warning& warning : comparison.warnings) {
    if (seen.insert(warning.kind).second) names.emplace_back(report::WarningName(warning.kind));
  }
  return report::Enumerated(names);
}

void WhatWouldChangeIt(const Place& place, const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  Subheading(place, "How sure, and what would change it", out);
  out->Open("ul");
  if (comparison.ended < comparison.planned) {
    out->Element("li", absl::StrCat(report::Counted(comparison.planned - comparison.ended, "run"),
                                    " of the comparison ",
                                    comparison.planned - comparison.ended == 1 ? "has" : "have",
                                    " not ended: every number is what is stored so far."));
  }
  const std::string sure = SureText(comparison);
  if (!sure.empty()) out->Element("li", sure);
  if (comparison.warnings.empty()) {
    out->Element("li", "No warning applies.");
  } else {
    out->Open("li").Text(comparison.warnings.size() == 1 ? "One warning applies: "
                                                         : "Warnings apply: ");
    out->Text(WarningsText(comparison)).Text(" (");
    out->Element("a", {{"href", absl::StrCat("#", place.prefix, "changes")}}, "see below");
    out->Text(").").Close();
  }
  out->Close();
}

}  // namespace

void VerdictSection(const Place& place, const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  const Verdict verdict = report::OverallVerdict(comparison);
  OpenSection(place, "verdict", "Verdict", out);
  out->Element("p", {{"class", absl::StrCat("answer ", report::OutcomeName(verdict.outcome))}},
               verdict.text);
  const std::string note = report::MatchedNote(comparison);
  if (!note.empty()) out->Element("p", note);
  const std::string within = report::WithinNote(comparison);
  if (!within.empty()) out->Element("p", {{"class", "aside"}}, absl::StrCat("Note: ", within, "."));
  out->Element("p", {{"class", "aside"}},
               absl::StrCat("About ", comparison.key, ", read ", experiment.read_at, "; ",
                            BetterText(comparison.better),
                            " is better. A minus sign means lower than the baseline."));
  RowSentences(place, comparison, out);
  WhatWouldChangeIt(place, experiment, out);
  out->Close();
}

}  // namespace ablate::html
