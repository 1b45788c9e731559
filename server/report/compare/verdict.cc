#include "server/report/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "text/decimal.h"

namespace ablate::report {
namespace {

constexpr size_t kRowsInFull = 4;  // of an overall verdict; more are counted by outcome

const std::string& BaselineLabel(const Comparison& comparison, const ComparisonRow& row) {
  return comparison.rows[*row.baseline].label;
}

std::string DifferenceText(const ComparisonRow& row) {
  return SignedWithInterval(row.difference.mean, row.difference.interval);
}

// "post diverged on 3 of 12 seeds, pre on 0".
std::string DivergedText(const ComparisonRow& row, const std::string& baseline) {
  const Pairs& pairs = row.pairs;
  const size_t both =
      pairs.all - pairs.converged - pairs.only_row_diverged - pairs.only_baseline_diverged;
  return absl::StrCat(row.label, " diverged on ", pairs.only_row_diverged + both, " of ",
                      Counted(pairs.all, "seed"), ", ", baseline, " on ",
                      pairs.only_baseline_diverged + both);
}

// "over 12 seeds", or which of them could be subtracted.
std::string OverText(const ComparisonRow& row, const std::string& baseline) {
  if (row.pairs.converged == row.pairs.all) {
    return absl::StrCat("over ", Counted(row.pairs.all, "seed"));
  }
  return absl::StrCat("over the ", row.pairs.converged, " of ", Counted(row.pairs.all, "seed"),
                      " on which both converged (", DivergedText(row, baseline), ")");
}

// ", each at its own best lr", or whose choice that was.
std::string TunedText(const Comparison& comparison) {
  if (comparison.tuned_axes.empty()) return "";
  const std::string axes = absl::StrJoin(comparison.tuned_axes, " and ");
  if (comparison.choice_key.empty()) return absl::StrCat(", each at its own best ", axes);
  return absl::StrCat(", each at the ", axes, " that is best by ", comparison.choice_key);
}

std::string FamilyText(size_t family) {
  return family > 1 ? absl::StrCat(" with Holm over ", family, " rows") : "";
}

// "eval/loss +.031 [+.024, +.038] over 12 seeds, each at its own best lr".
std::string MeasuredText(const Comparison& comparison, const ComparisonRow& row) {
  return absl::StrCat(comparison.key, " ", DifferenceText(row), " ",
                      OverText(row, BaselineLabel(comparison, row)), TunedText(comparison));
}

// The same, or where there is no difference who diverged.
std::string SeenText(const Comparison& comparison, const ComparisonRow& row) {
  if (row.pairs.all == 0) return "no seed has a result of both";
  if (row.difference.mean.defined()) return MeasuredText(comparison, row);
  return absl::StrCat(DivergedText(row, BaselineLabel(comparison, row)), TunedText(comparison));
}

// What the row's test was made on.
std::string EvidenceText(const Comparison& comparison, const ComparisonRow& row,
                         const Decision& decision) {
  const std::string seen = SeenText(comparison, row);
  if (row.by_wins) {
    return absl::StrCat(seen, "; ", row.label, " won ", row.pairs.wins, " and lost ",
                        row.pairs.losses);
  }
  if (decision.ground != Ground::kConstant) return seen;
  return absl::StrCat(seen, ", the same on every seed, so without an interval");
}

// "p = .016 with Holm over 2 rows, the least that 8 pairs allow".
std::string EstablishedText(const Comparison& comparison, const ComparisonRow& row) {
  const double pairs = static_cast<double>(row.by_wins ? row.pairs.all : row.difference.n);
  const bool least = row.p.value <= std::pow(2.0, 1 - pairs) * (1 + kTie);
  return absl::StrCat(PText(row.p_holm.value), FamilyText(comparison.family),
                      least ? absl::StrCat(", the least that ",
                                           Counted(static_cast<size_t>(pairs), "pair"), " allow")
                            : "");
}

// A number as it was written, like those beside it: ".01".
std::string Shortest(double value) {
  const std::string text = text::ShortestDecimal(value);
  return absl::StartsWith(text, "0.") ? text.substr(1) : text;
}

// "smaller than .01 either way (p = .003 with Holm over 2 rows)".
std::string EquivalentText(const Comparison& comparison, const ComparisonRow& row) {
  return absl::StrCat("smaller than ", Shortest(*comparison.margin), " either way (",
                      PText(row.p_equivalence.value), FamilyText(comparison.family), ")");
}

std::string ProbableText(const Comparison& comparison, const ComparisonRow& row) {
  return absl::StrCat(Counted(row.difference.n, "pair"),
                      " cannot reach p < .05 in a sign-flip test", FamilyText(comparison.family),
                      ", so this rests on roughly normal differences (t-test, ",
                      PText(row.p_t_holm.value), "); ", LeastSeedsForSignFlip(comparison.family),
                      " seeds would let the sign-flip test decide");
}

// To two digits: no more of it is known.
size_t Rounded(size_t seeds) {
  size_t unit = 1;
  while (seeds / unit >= 100) unit *= 10;
  return (seeds + unit / 2) / unit * unit;
}

std::string SeedsText(const Number& seeds) {
  if (!seeds.defined()) return absl::StrCat("more than ", text::Grouped(kMaxSeeds));
  return text::Grouped(static_cast<int64_t>(Rounded(static_cast<size_t>(seeds.value))));
}

// What more seeds would do for a row that is not decided: "the least difference that 12 seeds would
// find with 80 % power is .009; the one seen takes about 105 seeds (40 to 1,000)". A test that
// chooses tuned values again has less power than that of the differences, which is what is known.
std::string PowerText(const ComparisonRow& row, size_t family) {
  const size_t least = LeastSeedsForSignFlip(family);
  if (!row.needed.known()) {
    if (row.pairs.all >= least) return "how many seeds would decide cannot be foretold";
    return absl::StrCat("at least ", Counted(least, "seed"), " are needed");
  }
  const std::string detectable =
      row.least_detectable.defined()
          ? absl::StrCat("the least difference that ", Counted(row.difference.n, "seed"),
                         " would find with 80 % power is ",
                         Plain(row.least_detectable.value, DecimalsFor(row.least_detectable.value)))
          : absl::StrCat(Counted(row.difference.n, "pair"),
                         " cannot reach p < .05 in a sign-flip test", FamilyText(family));
  const std::string low = SeedsText(row.needed.low), high = SeedsText(row.needed.high);
  if (!row.needed.estimate.defined()) {
    return absl::StrCat(detectable, "; the one seen takes more than ", text::Grouped(kMaxSeeds),
                        " seeds", row.needed.low.defined() ? absl::StrCat(", at best ", low) : "");
  }
  return absl::StrCat(detectable, "; the one seen takes about ", SeedsText(row.needed.estimate),
                      row.chosen.empty() ? "" : " or more", " seeds (", low, " to ", high, ")");
}

// What follows "A against B leans better: ".
std::string LeansText(const Comparison& comparison, const ComparisonRow& row,
                      const Decision& decision) {
  return absl::StrCat(EvidenceText(comparison, row, decision), "; ", PText(row.p.value),
                      " alone, but ", PText(row.p_holm.value), FamilyText(comparison.family), "; ",
                      PowerText(row, comparison.family));
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
      return absl::StrCat(comparison.key, " is identical ",
                          OverText(row, BaselineLabel(comparison, row)), TunedText(comparison),
                          "; more seeds would not decide: see whether the setting takes effect");
    case Ground::kNonFinite:
      return absl::StrCat("the differences in ", comparison.key, " are too large to compute with");
    default:
      return absl::StrCat(evidence, row.p.defined() ? absl::StrCat(", ", PText(row.p.value)) : "",
                          "; ", PowerText(row, comparison.family));
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
    case Withheld::kUnfinished: {
      const ComparisonRow& baseline = comparison.rows[*row.baseline];
      const size_t planned = row.cells + baseline.cells;
      return absl::StrCat("preliminary, ",
                          OfRuns(planned - row.unfinished - baseline.unfinished, planned), "; ",
                          so_far, " so far");
    }
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
  const std::string& baseline = BaselineLabel(comparison, row);
  const absl::string_view name =
      decision.toward == 0 ? "" : DirectionName(decision.toward, comparison.better);
  Verdict verdict;
  verdict.outcome = decision.outcome;
  verdict.grade = decision.grade;
  verdict.equivalent = decision.equivalent;
  switch (decision.grade) {
    case Grade::kNoVerdict:
      verdict.text =
          absl::StrCat(row.label, " against ", baseline, ": ", WithheldText(comparison, row), ".");
      break;
    case Grade::kInconclusive:
      verdict.text =
          absl::StrCat(row.label, " against ", baseline,
                       " is inconclusive: ", UndecidedText(comparison, row, decision), ".");
      break;
    case Grade::kEquivalent:
      verdict.text = absl::StrCat(row.label, " is equivalent to ", baseline, ": ",
                                  EvidenceText(comparison, row, decision), "; ",
                                  EquivalentText(comparison, row), ".");
      break;
    case Grade::kLeans:
      verdict.text = absl::StrCat(row.label, " against ", baseline, " leans ", name, ": ",
                                  LeansText(comparison, row, decision), ".");
      break;
    case Grade::kProbable:
    case Grade::kEstablished: {
      const bool established = decision.grade == Grade::kEstablished;
      verdict.text = absl::StrCat(
          row.label, " is ", established ? "" : "probably ", name, " than ", baseline, ": ",
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

// A row in a list: "none is better (−.043 [−.049, −.038], p = .016)".
std::string ShortText(const Comparison& comparison, const ComparisonRow& row,
                      const Decision& decision) {
  // The sentence says it of all of them.
  if (row.withheld == Withheld::kExploratory && row.difference.mean.defined()) {
    return absl::StrCat(row.label, " ", DifferenceText(row));
  }
  std::vector<std::string> facts;
  if (decision.grade == Grade::kNoVerdict) facts.emplace_back(WhyWithheld(row.withheld));
  if (row.withheld == Withheld::kScoredDifferently) {
    return absl::StrCat(row.label, " is without a verdict (", facts[0], ")");
  }
  if (row.difference.mean.defined()) facts.push_back(DifferenceText(row));
  if (row.pairs.all == 0) facts.push_back("no pairs");
  if (row.pairs.converged < row.pairs.all) {
    facts.push_back(
        absl::StrCat(row.pairs.converged, " of ", Counted(row.pairs.all, "pair"), " converged"));
  }
  if (decision.ground == Ground::kIdentical) facts = {"identical values"};
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
                                 Counted(Rounded(verdict.seeds_to_decide), "seed"), " needed"));
  }
  return absl::StrCat(row.label, " is ", StandingText(decision, comparison.better), " (",
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
    const int toward = one.decision.grade > Grade::kInconclusive ? one.decision.toward : 0;
    labels[{-static_cast<int>(one.decision.grade), -toward,
            absl::StrCat(StandingText(one.decision, comparison.better), withheld ? ", " : "",
                         WhyWithheld(one.row->withheld))}]
        .push_back(one.row->label);
  }
  std::vector<std::string> counts;
  for (const auto& [standing, rows] : labels) {
    counts.push_back(absl::StrCat(rows.size(), rows.size() == 1 ? " is " : " are ",
                                  std::get<2>(standing), " (", Enumerated(rows, kRowsInFull), ")"));
  }
  return Enumerated(counts);
}

// The baseline that all rows share, or what to call several.
std::string SharedBaseline(const Comparison& comparison, const std::vector<Decided>& all) {
  std::set<size_t> baselines;
  for (const Decided& one : all) baselines.insert(*one.row->baseline);
  return baselines.size() == 1 ? comparison.rows[*baselines.begin()].label : "its baseline";
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
      comparison.key, " against ", SharedBaseline(comparison, all), TunedText(comparison), ": ",
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
    return none(VerdictOutcome::kInconclusive, comparison.rows.size() == 1
                                                   ? "Nothing is compared: there is one setting."
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

std::string MatchedNote(const Comparison& comparison) {
  if (!comparison.reference.has_value()) return "";
  const MatchedBlock& block = comparison.matched[*comparison.reference];
  const std::string tuned = absl::StrJoin(comparison.tuned_axes, " and ");
  std::vector<std::string> differences, remarks;
  for (const ComparisonRow& matched : block.rows) {
    if (!matched.in_family() || !matched.difference.mean.defined()) continue;
    differences.push_back(absl::StrCat(matched.label, " ", DifferenceText(matched)));
    const Interval& there = matched.difference.interval;
    if (!there.defined() || (there.low <= 0 && there.high >= 0)) continue;
    for (const ComparisonRow& row : comparison.rows) {
      if (row.labels != matched.labels || !row.difference.interval.defined()) continue;
      if (row.withheld != Withheld::kNo) continue;
      const double share = row.difference.mean.value / matched.difference.mean.value;
      const Interval& here = row.difference.interval;
      if (share < 0 && (here.low > 0 || here.high < 0)) {
        remarks.push_back(
            absl::StrCat("the sign of ", row.label, "'s difference depends on ", tuned));
      } else if (std::abs(share) < 0.5) {
        remarks.push_back(
            absl::StrCat("most of ", row.label, "'s difference there is its ", tuned));
      }
    }
  }
  if (differences.empty()) return "";
  return absl::StrCat("At one ", tuned, " (", absl::StrJoin(block.labels, ", "),
                      "): ", Enumerated(differences), remarks.empty() ? "" : "; ",
                      Enumerated(remarks), ".");
}

}  // namespace ablate::report
