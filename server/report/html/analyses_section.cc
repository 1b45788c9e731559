#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"
#include "server/report/table/headline_table.h"

namespace ablate::html {
namespace {

using report::HeadlineNumbers;

// Returns "16 of 16 analyses were made, in 35 device-seconds." and what is not shown.
std::string StateText(const HeadlineNumbers& analysis, const std::string& experiment) {
  if (analysis.asked == 0) {
    return absl::StrCat(
        "No analysis was requested: ",
        analysis.failure.empty() ? "no run that it applies to converged" : analysis.failure, ".");
  }
  const auto seconds = std::llround(analysis.device_seconds);
  std::string state = absl::StrCat(
      text::Grouped(analysis.done), " of ", text::Grouped(analysis.asked),
      analysis.asked == 1 ? " analysis was made" : " analyses were made",
      seconds == 0 ? "" : absl::StrCat(", in ", text::Grouped(seconds), " device-seconds"), ".");
  if (!analysis.failure.empty()) absl::StrAppend(&state, " First failure: ", analysis.failure);
  if (analysis.left_out > 0) {
    absl::StrAppend(&state, " Not in the table: ", text::Grouped(analysis.left_out),
                    analysis.left_out == 1 ? " number" : " numbers", "; ablate metrics ",
                    experiment, " lists all, as ", analysis.label, "/….");
  }
  return state;
}

// Returns "Undefined: sink_share (no spread), loss in 3 of 4 analyses (too few tokens)."; "" if
// every headline number is defined.
std::string UndefinedText(const HeadlineNumbers& analysis) {
  constexpr size_t kNamed = 6;
  std::vector<std::string> reasons;
  for (const auto& [reason, counts] : analysis.undefined) {
    std::vector<std::string> names;
    for (const auto& [name, count] : counts) {
      names.push_back(count == analysis.done
                          ? name
                          : absl::StrCat(name, " in ", count, " of ", analysis.done, " analyses"));
    }
    reasons.push_back(absl::StrCat(report::Enumerated(names, kNamed), " (", reason, ")"));
  }
  if (reasons.empty()) return "";
  return absl::StrCat("Undefined: ", report::Together(reasons, "; "), ".");
}

// Writes the differences that are significant if all are tested together.
void SignificantTable(const Place& place, const Experiment& experiment, Markup* out) {
  const report::SignificantDifferences found = report::FindSignificant(experiment.analyses);
  if (found.tested == 0) return;
  Subheading(place, "Significant differences", out);
  const std::string count =
      found.significant == 0
          ? "none has"
          : absl::StrCat(found.significant, found.significant == 1 ? " has" : " have");
  out->Element(
      "p",
      absl::StrCat(
          "Of ", report::Counted(found.tested, "difference"), " from a baseline in these tables, ",
          count,
          " p ≤ 0.05 if all are tested together (paired t-test, which assumes normal differences; "
          "Holm). This is exploratory: only report.primary was planned. An experiment with other "
          "seeds whose primary metric is the number can confirm one. ablate compare ",
          experiment.id, " --key LABEL/NUMBER has more on one."));
  if (found.significant == 0) return;
  WriteTable(found.table, "Significant differences",
             found.significant > report::kMaxSignificant
                 ? absl::StrCat("The ", report::kMaxSignificant, " of ", found.significant,
                                " with the smallest p; the others have a star in their table.")
                 : "Smallest p first.",
             out);
}

}  // namespace

void AnalysesSection(const Place& place, const Experiment& experiment, Markup* out) {
  if (experiment.analyses.empty()) return;
  OpenSection(place, "analyses", "Analyses of the models", out);
  const std::string legend = report::NumbersLegend(experiment.analyses);
  if (!legend.empty()) out->Element("p", legend);
  SignificantTable(place, experiment, out);
  for (size_t i = 0; i < experiment.analyses.size(); ++i) {
    const HeadlineNumbers& analysis = experiment.analyses[i];
    const bool named = analysis.label != analysis.kind;
    Subheading(place,
               named ? absl::StrCat(analysis.label, " (", analysis.kind, ")") : analysis.label,
               out);
    if (!analysis.how.empty()) out->Element("p", analysis.how);
    out->Element("p", StateText(analysis, experiment.id));
    for (const std::string& text : {UndefinedText(analysis), report::ConstantsText(analysis)}) {
      if (!text.empty()) out->Element("p", text);
    }
    const std::string label = absl::StrCat("Numbers of ", analysis.label);
    if (!analysis.own.empty()) {
      WriteTable(report::OwnNumbersTable(analysis), label, "Computed without a run.", out);
    }
    if (!analysis.numbers.empty() && !analysis.lines.empty()) {
      report::Table table = report::NumbersTable(analysis);
      table.legend = legend;  // for its LaTeX
      WriteTable(table, label, absl::StrCat(label, "."), out);
    }
    FiguresOf(place, experiment, i, out);
  }
  out->Close();
}

}  // namespace ablate::html
