#include "server/report/compare/verdict.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

constexpr size_t kRowsInFull = 4;  // in an overall verdict; more are counted by outcome

std::string MetricText(const Comparison& comparison) { return comparison.Metric().text; }

// Returns a finding for a list: "“none” is better (lower by 0.043 [0.038, 0.049], p = 0.016)". For
// an exploratory comparison the sentence describes all of them.
std::string BriefText(const Finding& finding) {
  const std::string facts = absl::StrJoin(finding.brief, ", ");
  if (finding.decision.outcome == VerdictOutcome::kExploratory) {
    return absl::StrCat(finding.who, " ", facts);
  }
  return absl::StrCat(finding.who, " ", finding.words.one, finding.words.what, " (", facts, ")");
}

// Returns the name of the baseline that all rows share, or a word for several.
std::string BaselineText(const Comparison& comparison) {
  const auto shared = SharedBaseline(comparison);
  return shared.has_value() ? Quoted(comparison.rows[*shared].label) : "its baseline";
}

Verdict OverallOf(const Comparison& comparison, const std::vector<Finding>& all) {
  Verdict verdict;
  verdict.outcome = all[0].decision.outcome;
  verdict.grade = all[0].decision.grade;
  verdict.equivalent = true;
  std::vector<std::string> rows;
  for (const Finding& one : all) {
    if (one.decision.outcome != verdict.outcome) verdict.outcome = VerdictOutcome::kMixed;
    verdict.grade = std::min(verdict.grade, one.decision.grade);
    verdict.equivalent = verdict.equivalent && one.decision.equivalent;
    if (one.seeds.seeds > verdict.seeds.seeds) verdict.seeds = one.seeds;
    rows.push_back(BriefText(one));
  }
  const bool in_full = all.size() <= kRowsInFull || !comparison.exploratory.empty();
  verdict.text = absl::StrCat(
      MetricText(comparison), " against ", BaselineText(comparison), TunedText(comparison), ": ",
      comparison.exploratory.empty()
          ? ""
          : absl::StrCat("exploratory (", comparison.exploratory, "), without a verdict; "),
      in_full ? Enumerated(rows) : CountsText(all), ".");
  return verdict;
}

Verdict NoVerdict(VerdictOutcome outcome, std::string why) {
  return {outcome, Grade::kNoVerdict, false, std::move(why), {}};
}

}  // namespace

Verdict RowVerdict(const Comparison& comparison, const Finding& finding) {
  const ComparisonRow& baseline = comparison.rows[*comparison.rows[finding.row].baseline];
  const Decision& decision = finding.decision;
  const bool exploratory = decision.outcome == VerdictOutcome::kExploratory;
  std::vector<std::string> parts = {Together({finding.size, finding.evidence}, " ")};
  parts.insert(parts.end(), finding.facts.begin(), finding.facts.end());
  return {decision.outcome, decision.grade, decision.equivalent,
          absl::StrCat(finding.who, " ", finding.words.one, finding.words.what, " ",
                       finding.words.against, " ", Quoted(baseline.label), " in ",
                       MetricText(comparison), TunedText(comparison),
                       exploratory ? absl::StrCat(" (", comparison.exploratory, ")") : "", ": ",
                       absl::StrJoin(parts, "; "), "."),
          finding.seeds};
}

Verdict OverallVerdict(const Comparison& comparison, const std::vector<Finding>& findings) {
  if (comparison.ended < comparison.planned) {
    return NoVerdict(VerdictOutcome::kPreliminary,
                     absl::StrCat(PreliminaryText(comparison),
                                  ": there is no verdict before all of them have ended."));
  }
  if (findings.empty()) {
    const bool alone = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                   [](const ComparisonRow& row) { return row.is_baseline; });
    return NoVerdict(VerdictOutcome::kInconclusive,
                     comparison.rows.size() == 1 ? "Nothing is compared: there is one setting."
                     : alone ? "Nothing is compared: every setting is its own baseline."
                             : "Nothing is compared: there is no baseline.");
  }
  return findings.size() == 1 ? RowVerdict(comparison, findings[0])
                              : OverallOf(comparison, findings);
}

std::string CountsText(const std::vector<Finding>& findings) {
  using Doubt = std::tuple<int, int, absl::string_view>;
  std::map<Doubt, std::vector<const Finding*>> alike;
  for (const Finding& finding : findings) {
    const Decision& decision = finding.decision;
    const int toward = SaysWhichWay(decision.grade) ? decision.toward : 0;
    alike[{-static_cast<int>(decision.grade), -toward, finding.words.what}].push_back(&finding);
  }
  std::vector<std::string> counts;
  for (const auto& [doubt, of] : alike) {
    const Words& words = of[0]->words;
    std::vector<std::string> who;
    for (const Finding* finding : of) who.push_back(finding->who);
    counts.push_back(absl::StrCat(of.size(), " ", of.size() == 1 ? words.one : words.many,
                                  words.what, " (", Enumerated(who, kRowsInFull), ")"));
  }
  return Enumerated(counts);
}

std::string PreliminaryText(const Comparison& comparison) {
  if (comparison.ended == comparison.planned) return "";
  return absl::StrCat("preliminary, ", OfRuns(comparison.ended, comparison.planned));
}

std::string WithinNote(const Comparison& comparison) {
  if (comparison.within_axes.empty()) return "";
  return absl::StrCat("settings of ", Enumerated(comparison.within_axes),
                      " are evaluated on different ", ScoredText(comparison.key),
                      ", so each row is compared with the baseline of its own ",
                      absl::StrJoin(comparison.within_axes, " and "));
}

std::string DivergedNote(const Comparison& comparison) {
  size_t diverged = 0;
  for (const MatchedBlock& block : comparison.matched) {
    for (const ComparisonRow& row : block.rows) diverged += row.diverged;
  }
  const bool chosen = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                  [](const ComparisonRow& row) { return row.diverged > 0; });
  if (diverged == 0 || chosen) return "";
  return absl::StrCat("no selected run diverged; ", Counted(diverged, "run"), " at other ",
                      absl::StrJoin(comparison.tuned_axes, " and "), " values did");
}

std::string MeansNote(const Comparison& comparison) {
  const bool differ = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                  [&comparison](const ComparisonRow& row) {
                                    return row.compared() && row.difference.mean.defined() &&
                                           row.difference.n < comparison.rows[*row.baseline].own.n;
                                  });
  if (!differ) return "";
  return absl::StrCat(
      "a setting's mean is over its paired seeds, the baseline's over all its seeds, so their ",
      comparison.scale == Scale::kRatio ? "quotient need not equal the ratio"
                                        : "difference need not equal \u0394");
}

std::string SharedPlace(const Comparison& comparison) {
  const std::vector<std::string>& labels = comparison.matched[*comparison.reference].labels;
  std::vector<std::string> values;
  for (size_t i = 0; i < labels.size(); ++i) {
    values.push_back(absl::StrCat(comparison.tuned_axes[i], " ", labels[i]));
  }
  return absl::StrCat("all at ", absl::StrJoin(values, ", "), ": ");
}

std::string SharedDifference(const Comparison& comparison, const Finding& finding) {
  if (!comparison.reference.has_value()) return "";
  const std::vector<ComparisonRow>& rows = comparison.matched[*comparison.reference].rows;
  const auto there = std::find_if(rows.begin(), rows.end(), [&](const ComparisonRow& row) {
    return row.labels == comparison.rows[finding.row].labels;
  });
  if (there == rows.end()) return "";
  if (finding.shared.empty()) {
    const bool all = there->in_family() && there->n > 0 && there->diverged == there->n;
    return all ? absl::StrCat("diverged on ", there->n, " of ", Counted(there->cells, "seed")) : "";
  }
  if (there->pairs.converged >= there->cells) return finding.shared;
  return absl::StrCat(finding.shared, " (over ", there->pairs.converged, " of ",
                      Counted(there->cells, "seed"), ")");
}

std::string MatchedNote(const Comparison& comparison, const std::vector<Finding>& findings) {
  std::vector<std::string> differences;
  for (const Finding& finding : findings) {
    const std::string difference = SharedDifference(comparison, finding);
    if (!difference.empty()) differences.push_back(absl::StrCat(finding.who, " ", difference));
  }
  if (differences.empty()) return "";
  return absl::StrCat(Capitalized(SharedPlace(comparison)), Enumerated(differences), ".");
}

}  // namespace ablate::report
