#include "server/report/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

constexpr size_t kRowsInFull = 4;  // of an overall verdict; more are counted by outcome

// What follows "“a” against “b” leans better: ".
std::string LeansText(const Comparison& comparison, const ComparisonRow& row,
                      const Decision& decision) {
  return absl::StrCat(EvidenceText(comparison, row, decision), "; ", PText(row.p.value),
                      " alone, but ", AdjustedText(comparison, row), "; ",
                      PowerText(comparison, row));
}

// What follows "A against B is inconclusive: ".
std::string UndecidedText(const Comparison& comparison, const ComparisonRow& row,
                          const Decision& decision) {
  const std::string evidence = EvidenceText(comparison, row, decision);
  switch (decision.ground) {
    case Ground::kConflict: {
      const bool better_converged = row.pairs.only_row_diverged > row.pairs.only_baseline_diverged;
      return absl::StrCat(
          MeasuredText(comparison, row), " makes it the ", better_converged ? "better" : "worse",
          " one where both converge, but it diverges ", better_converged ? "more" : "less",
          " often; more seeds would not say which of the two counts");
    }
    case Ground::kIdentical:
      return absl::StrCat(MetricText(comparison), " is identical ",
                          OverText(row, BaselineLabel(comparison, row)), TunedText(comparison),
                          "; more seeds would not decide: see whether the setting takes effect");
    case Ground::kNonFinite:
      return absl::StrCat("the differences in ", MetricText(comparison),
                          " are too large to compute with");
    default:
      return Together({Together({evidence, AdjustedText(comparison, row)}, ", "),
                       NotEquivalentText(comparison, row), PowerText(comparison, row)},
                      "; ");
  }
}

// What follows "A against B: ": why there is no verdict, and what is known all the same.
std::string WithheldText(const Comparison& comparison, const ComparisonRow& row) {
  const std::string so_far = SeenText(comparison, row);
  switch (row.withheld) {
    case Withheld::kScoredDifferently:
      return absl::StrCat("no verdict, for they are not scored on the same ",
                          ScoredText(comparison.key), " (", Enumerated(row.scored_differently),
                          "); ", so_far);
    case Withheld::kExploratory:
      return absl::StrCat("exploratory (", comparison.exploratory, "), so no verdict; ", so_far);
    case Withheld::kUnfinished:
      return absl::StrCat("preliminary, ", ProgressText(comparison, row), "; ", so_far, " so far");
    case Withheld::kTooFewPairs:
    case Withheld::kNo:
      break;
  }
  return absl::StrCat("no verdict below ", kLeastPairs, " pairs; ", so_far, "; at least ",
                      Counted(LeastSeedsForSignFlip(comparison.family), "seed"),
                      " are needed to establish anything");
}

// "about 105 seeds": what Verdict says as numbers.
void PutSeeds(const ComparisonRow& row, size_t family, const Decision& decision, Verdict* verdict) {
  const bool open = decision.grade == Grade::kInconclusive || decision.grade == Grade::kLeans;
  const bool foretold = open && decision.ground != Ground::kConflict &&
                        decision.ground != Ground::kIdentical &&
                        decision.ground != Ground::kNonFinite;
  const size_t least = LeastSeedsForSignFlip(family);
  if (decision.outcome == VerdictOutcome::kTooFewPairs) verdict->seeds_to_decide = least;
  if (!foretold) return;
  if (!row.needed.known()) {
    verdict->seeds_to_decide = row.pairs.all < least ? least : 0;
    return;
  }
  const auto count = [](const Number& seeds) {
    return seeds.defined() ? static_cast<size_t>(seeds.value) : 0;
  };
  verdict->seeds_to_decide = count(row.needed.estimate);
  verdict->seeds_low = count(row.needed.low);
  verdict->seeds_high = count(row.needed.high);
}

Verdict VerdictOf(const Comparison& comparison, const ComparisonRow& row,
                  const Decision& decision) {
  const std::string baseline = BaselineLabel(comparison, row);
  const absl::string_view name =
      decision.toward == 0 ? "" : DirectionName(decision.toward, comparison.better);
  Verdict verdict;
  verdict.outcome = decision.outcome;
  verdict.grade = decision.grade;
  verdict.equivalent = decision.equivalent;
  switch (decision.grade) {
    case Grade::kNoVerdict:
      verdict.text = absl::StrCat(Quoted(row.label), " against ", baseline, ": ",
                                  WithheldText(comparison, row), ".");
      break;
    case Grade::kInconclusive:
      verdict.text =
          absl::StrCat(Quoted(row.label), " against ", baseline,
                       " is inconclusive: ", UndecidedText(comparison, row, decision), ".");
      break;
    case Grade::kEquivalent:
      verdict.text = absl::StrCat(Quoted(row.label), " is equivalent to ", baseline, ": ",
                                  EvidenceText(comparison, row, decision), "; ",
                                  EquivalentText(comparison, row), ".");
      break;
    case Grade::kLeans:
      verdict.text = absl::StrCat(Quoted(row.label), " against ", baseline, " leans ", name, ": ",
                                  LeansText(comparison, row, decision), ".");
      break;
    case Grade::kProbable:
    case Grade::kEstablished: {
      const bool established = decision.grade == Grade::kEstablished;
      verdict.text = absl::StrCat(
          Quoted(row.label), " is ", established ? "" : "probably ", name, " than ", baseline, ": ",
          EvidenceText(comparison, row, decision), "; ",
          established ? EstablishedText(comparison, row) : ProbableText(comparison, row),
          decision.equivalent ? absl::StrCat("; ", EquivalentText(comparison, row)) : "", ".");
      break;
    }
  }
  PutSeeds(row, comparison.family, decision, &verdict);
  return verdict;
}

// "better", "probably better", "leans better", "inconclusive", "without a verdict".
std::string StandingText(const Decision& decision, Better better) {
  switch (decision.grade) {
    case Grade::kEstablished:
      return std::string(DirectionName(decision.toward, better));
    case Grade::kProbable:
      return absl::StrCat("probably ", DirectionName(decision.toward, better));
    case Grade::kLeans:
      return absl::StrCat("leaning ", DirectionName(decision.toward, better));
    case Grade::kEquivalent:
      return "equivalent";
    case Grade::kInconclusive:
      return "inconclusive";
    case Grade::kNoVerdict:
      break;
  }
  return "without a verdict";
}

absl::string_view WhyWithheld(Withheld withheld) {
  switch (withheld) {
    case Withheld::kScoredDifferently:
      return "scored on other data";
    case Withheld::kUnfinished:
      return "runs have not ended";
    case Withheld::kExploratory:
      return "exploratory";
    case Withheld::kTooFewPairs:
      return "too few pairs";
    case Withheld::kNo:
      break;
  }
  return "";
}

// A row in a list: "“none” is better (lower by .043 [.038, .049], p = .016)".
std::string ShortText(const Comparison& comparison, const ComparisonRow& row,
                      const Decision& decision) {
  // The sentence says it of all of them.
  if (row.withheld == Withheld::kExploratory && row.difference.mean.defined()) {
    return absl::StrCat(Quoted(row.label), " ", DifferenceText(comparison, row));
  }
  std::vector<std::string> facts;
  if (decision.grade == Grade::kNoVerdict) facts.emplace_back(WhyWithheld(row.withheld));
  if (row.withheld == Withheld::kScoredDifferently) {
    return absl::StrCat(Quoted(row.label), " is without a verdict (", facts[0], ")");
  }
  if (decision.ground == Ground::kIdentical) {
    facts.emplace_back("identical values");
  } else if (row.difference.mean.defined()) {
    facts.push_back(DifferenceText(comparison, row));
  }
  if (row.pairs.all == 0) facts.push_back("no pairs");
  if (row.pairs.converged < row.pairs.all) {
    facts.push_back(
        absl::StrCat(row.pairs.converged, " of ", Counted(row.pairs.all, "pair"), " converged"));
  }
  const bool tested = decision.grade > Grade::kInconclusive && row.p_holm.defined();
  const bool by_other = decision.grade == Grade::kProbable || decision.grade == Grade::kEquivalent;
  if (tested && !by_other) facts.push_back(PText(row.p_holm.value));
  if (decision.grade == Grade::kProbable) {
    facts.push_back(absl::StrCat("by the t-test, ", PText(row.p_t_holm.value)));
  }
  if (decision.equivalent) facts.push_back(EquivalentText(comparison, row));
  Verdict verdict;
  PutSeeds(row, comparison.family, decision, &verdict);
  if (verdict.seeds_to_decide > 0) {
    const bool about = verdict.seeds_low > 0 && row.chosen.empty();
    facts.push_back(absl::StrCat(about ? "about " : "at least ",
                                 Counted(RoundedSeeds(verdict.seeds_to_decide), "seed"),
                                 " needed"));
  }
  return absl::StrCat(Quoted(row.label), " is ", StandingText(decision, comparison.better), " (",
                      absl::StrJoin(facts, ", "), ")");
}

struct Decided {
  const ComparisonRow* row;
  Decision decision;
};

// "3 are better (a, b and c), 1 is worse (d) and 16 are inconclusive (e, f, g and 13 more)", what
// speaks for most first. None of them is unfinished.
std::string CountsText(const Comparison& comparison, const std::vector<Decided>& all) {
  using Standing = std::tuple<int, int, std::string>;  // of ascending doubt
  std::map<Standing, std::vector<std::string>> labels;
  for (const Decided& one : all) {
    const bool withheld = one.decision.grade == Grade::kNoVerdict;
    const int toward = SaysWhichWay(one.decision.grade) ? one.decision.toward : 0;
    labels[{-static_cast<int>(one.decision.grade), -toward,
            absl::StrCat(StandingText(one.decision, comparison.better), withheld ? ", " : "",
                         WhyWithheld(one.row->withheld))}]
        .push_back(Quoted(one.row->label));
  }
  std::vector<std::string> counts;
  for (const auto& [standing, rows] : labels) {
    counts.push_back(absl::StrCat(rows.size(), rows.size() == 1 ? " is " : " are ",
                                  std::get<2>(standing), " (", Enumerated(rows, kRowsInFull), ")"));
  }
  return Enumerated(counts);
}

// The baseline that all rows share, or what to call several.
std::string BaselineText(const Comparison& comparison) {
  const auto shared = SharedBaseline(comparison);
  return shared.has_value() ? Quoted(comparison.rows[*shared].label) : "its baseline";
}

Verdict OverallOf(const Comparison& comparison, const std::vector<Decided>& all) {
  Verdict verdict;
  verdict.outcome = all[0].decision.outcome;
  verdict.grade = all[0].decision.grade;
  verdict.equivalent = true;
  std::vector<std::string> rows;
  for (const Decided& one : all) {
    if (one.decision.outcome != verdict.outcome) verdict.outcome = VerdictOutcome::kMixed;
    verdict.grade = std::min(verdict.grade, one.decision.grade);
    verdict.equivalent = verdict.equivalent && one.decision.equivalent;
    Verdict own;
    PutSeeds(*one.row, comparison.family, one.decision, &own);
    if (own.seeds_to_decide > verdict.seeds_to_decide) {
      verdict.seeds_to_decide = own.seeds_to_decide;
      verdict.seeds_low = own.seeds_low;
      verdict.seeds_high = own.seeds_high;
    }
    rows.push_back(ShortText(comparison, *one.row, one.decision));
  }
  const bool in_full = all.size() <= kRowsInFull || !comparison.exploratory.empty();
  verdict.text = absl::StrCat(
      MetricText(comparison), " against ", BaselineText(comparison), TunedText(comparison), ": ",
      comparison.exploratory.empty()
          ? ""
          : absl::StrCat("exploratory (", comparison.exploratory, "), without a verdict; "),
      in_full ? Enumerated(rows) : CountsText(comparison, all), ".");
  return verdict;
}

}  // namespace

Verdict RowVerdict(const Comparison& comparison, size_t row) {
  const ComparisonRow& compared = comparison.rows[row];
  return VerdictOf(comparison, compared, Decide(comparison, compared));
}

Verdict OverallVerdict(const Comparison& comparison) {
  const auto none = [](VerdictOutcome outcome, std::string why) {
    Verdict verdict;
    verdict.outcome = outcome;
    verdict.grade = Grade::kNoVerdict;
    verdict.text = std::move(why);
    return verdict;
  };
  std::vector<Decided> all;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.compared()) all.push_back({&row, Decide(comparison, row)});
  }
  if (comparison.ended < comparison.planned) {
    return none(VerdictOutcome::kPreliminary,
                absl::StrCat(PreliminaryText(comparison),
                             ": there is no verdict before all of them have ended."));
  }
  if (all.empty()) {
    const bool alone = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                   [](const ComparisonRow& row) { return row.is_baseline; });
    return none(VerdictOutcome::kInconclusive,
                comparison.rows.size() == 1 ? "Nothing is compared: there is one setting."
                : alone ? "Nothing is compared: every setting is its own baseline."
                        : "Nothing is compared: there is no baseline.");
  }
  if (all.size() == 1) return VerdictOf(comparison, *all[0].row, all[0].decision);
  return OverallOf(comparison, all);
}

std::string PreliminaryText(const Comparison& comparison) {
  if (comparison.ended == comparison.planned) return "";
  return absl::StrCat("preliminary, ", OfRuns(comparison.ended, comparison.planned));
}

std::string WithinNote(const Comparison& comparison) {
  if (comparison.within_axes.empty()) return "";
  return absl::StrCat("settings of ", Enumerated(comparison.within_axes),
                      " are scored on different ", ScoredText(comparison.key),
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
  return absl::StrCat(Counted(diverged, "run"), " at values that are not chosen diverged");
}

std::string MeansNote(const Comparison& comparison) {
  const bool differ = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                  [&comparison](const ComparisonRow& row) {
                                    return row.compared() && row.difference.mean.defined() &&
                                           row.difference.n < comparison.rows[*row.baseline].own.n;
                                  });
  if (!differ) return "";
  return absl::StrCat(
      "a setting's mean is over the seeds of its pairs, a baseline's over all of "
      "its own, so they need not ",
      comparison.scale == Scale::kRatio ? "divide to the ratio" : "subtract to \u0394");
}

std::string MatchedNote(const Comparison& comparison) {
  if (!comparison.reference.has_value()) return "";
  const MatchedBlock& block = comparison.matched[*comparison.reference];
  const std::string tuned = absl::StrJoin(comparison.tuned_axes, " and ");
  std::vector<std::string> differences, remarks;
  for (const ComparisonRow& matched : block.rows) {
    if (!matched.in_family() || !matched.difference.mean.defined()) continue;
    differences.push_back(
        absl::StrCat(Quoted(matched.label), " ", MatchedText(comparison.scale, matched)));
    if (!LeavesOutZero(matched.difference.interval)) continue;
    for (const ComparisonRow& row : comparison.rows) {
      if (row.labels != matched.labels || !row.difference.interval.defined()) continue;
      if (row.withheld != Withheld::kNo) continue;
      const double share = row.difference.mean.value / matched.difference.mean.value;
      if (share < 0 && LeavesOutZero(row.difference.interval)) {
        remarks.push_back(
            absl::StrCat("the sign of ", Quoted(row.label), "'s difference depends on ", tuned));
      } else if (std::abs(share) < 0.5) {
        remarks.push_back(
            absl::StrCat("most of ", Quoted(row.label), "'s difference there is its ", tuned));
      }
    }
  }
  if (differences.empty()) return "";
  return absl::StrCat("At one ", tuned, " (", ShownValues(block.labels),
                      "): ", Enumerated(differences), remarks.empty() ? "" : "; ",
                      Enumerated(remarks), ".");
}

}  // namespace ablate::report
