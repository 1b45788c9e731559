#include "server/report/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "text/decimal.h"

namespace ablate::report {
namespace {

// +1 if `difference` (row minus baseline) is the row's gain, -1 if its loss; where neither is
// better, its sign.
int Toward(double difference, Better better) {
  if (difference == 0) return 0;
  return (difference < 0) == (better == Better::kLower) ? 1 : -1;
}

VerdictOutcome OutcomeOf(int toward, Better better) {
  if (toward == 0) return VerdictOutcome::kInconclusive;
  if (better == Better::kNeither) {
    return toward > 0 ? VerdictOutcome::kHigher : VerdictOutcome::kLower;
  }
  return toward > 0 ? VerdictOutcome::kBetter : VerdictOutcome::kWorse;
}

// +1 if the baseline diverged on more of the pairs, -1 if the row did.
int StabilityToward(const Pairs& pairs) {
  if (pairs.only_row_diverged == pairs.only_baseline_diverged) return 0;
  return pairs.only_row_diverged < pairs.only_baseline_diverged ? 1 : -1;
}

bool IsConstant(const PairedStatistics& difference) {
  return difference.n >= 2 && difference.deviation.undefined == Undefined::kZeroVariance;
}

// Whether a constant difference is nothing but the rounding of the values.
bool IsIdentical(const ComparisonRow& row) {
  return std::abs(row.difference.mean.value) <= kTie * std::abs(row.mean.value);
}

// Where both converge: +1, -1, or 0 while it may be either.
int ConvergedToward(const ComparisonRow& row, Better better) {
  const PairedStatistics& difference = row.difference;
  const bool leaves_out_zero = difference.interval.defined() &&
                               (difference.interval.low > 0 || difference.interval.high < 0);
  const bool constant = IsConstant(difference) && !IsIdentical(row) &&
                        difference.p_sign_flip.defined() && difference.p_sign_flip.value <= kAlpha;
  return leaves_out_zero || constant ? Toward(difference.mean.value, better) : 0;
}

// Where some diverged: +1 or -1 if the wins over all pairs and the divergences say the same.
int WinsToward(const Pairs& pairs) {
  const int stability = StabilityToward(pairs);
  const Number p = SignTest(pairs.wins, pairs.losses);
  if (stability == 0 || !p.defined() || p.value > kAlpha) return 0;
  return (pairs.wins > pairs.losses) == (stability > 0) ? stability : 0;
}

// The seeds that it takes for `pairs` pairs to converge, at the rate so far.
size_t SeedsFor(double pairs, const Pairs& counts) {
  return static_cast<size_t>(
      std::ceil(pairs * static_cast<double>(counts.all) / static_cast<double>(counts.converged)));
}

Decision Undecided(const ComparisonRow& row, size_t family) {
  const size_t least = LeastSeedsForSignFlip(family);
  // With as many pairs and no decision, what more of them would do is not known.
  const size_t at_least = row.pairs.all < least ? least : 0;
  if (row.difference.n < 2) {
    return {VerdictOutcome::kInconclusive, Ground::kTooFewPairs, 0, at_least};
  }
  if (IsConstant(row.difference)) {
    if (IsIdentical(row)) return {VerdictOutcome::kInconclusive, Ground::kIdentical, 0, 0};
    return {VerdictOutcome::kInconclusive, Ground::kTooFewConstant, 0, at_least};
  }
  if (!row.difference.interval.defined()) {
    return {VerdictOutcome::kInconclusive, Ground::kNonFinite, 0, 0};
  }
  Decision open{VerdictOutcome::kInconclusive, Ground::kOpen, 0, 0};
  const Number needed = SeedsToDecide(row.difference.effect);
  if (needed.defined()) {
    open.seeds_to_decide = std::max(SeedsFor(needed.value, row.pairs), row.pairs.all + 1);
  }
  return open;
}

}  // namespace

Decision Decide(const ComparisonRow& row, Better better, size_t family) {
  if (row.withheld != Withheld::kNo) {
    return {row.withheld == Withheld::kUnfinished ? VerdictOutcome::kPreliminary
                                                  : VerdictOutcome::kScoredDifferently,
            Ground::kWithheld, 0, 0};
  }
  if (row.pairs.all == 0) {
    return {VerdictOutcome::kInconclusive, Ground::kNoPairs, 0, LeastSeedsForSignFlip(family)};
  }
  const int converged = ConvergedToward(row, better);
  if (converged != 0) {
    if (better != Better::kNeither && StabilityToward(row.pairs) == -converged) {
      return {VerdictOutcome::kInconclusive, Ground::kConflict, converged, 0};
    }
    const Ground ground = IsConstant(row.difference) ? Ground::kConstant : Ground::kInterval;
    return {OutcomeOf(converged, better), ground, converged, 0};
  }
  // Diverging is worse, but neither higher nor lower.
  const int wins = better == Better::kNeither ? 0 : WinsToward(row.pairs);
  if (wins != 0) return {OutcomeOf(wins, better), Ground::kDivergence, wins, 0};
  return Undecided(row, family);
}

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

std::string TunedText(const Comparison& comparison) {
  if (comparison.tuned_axes.empty()) return "";
  return absl::StrCat(", each at its own best ", absl::StrJoin(comparison.tuned_axes, " and "));
}

std::string FamilyText(size_t family) {
  return family > 1 ? absl::StrCat(" with Holm over ", family, " rows") : "";
}

// What speaks against reading too much into an interval that leaves out 0.
std::string CautionText(const Comparison& comparison, const ComparisonRow& row) {
  const size_t least = LeastSeedsForSignFlip(comparison.family);
  if (row.difference.n < least) {
    return absl::StrCat("; ", Counted(row.difference.n, "pair"),
                        " cannot reach p < .05 in a sign-flip test", FamilyText(comparison.family),
                        ", ", least, " could");
  }
  if (!row.p_holm.defined() || row.p_holm.value <= kAlpha) return "";
  return absl::StrCat("; the sign-flip test", FamilyText(comparison.family), " gives only ",
                      PText(row.p_holm.value));
}

std::string OpenSeedsText(const Decision& decision, const ComparisonRow& row) {
  if (decision.seeds_to_decide > 0) {
    return absl::StrCat("about ", Counted(decision.seeds_to_decide, "seed"),
                        " would decide if mean and spread stay as they are");
  }
  if (row.difference.mean.value == 0) {
    return "with a mean of exactly 0 no number of seeds can be foretold";
  }
  return absl::StrCat("more than ", text::Grouped(kMaxSeeds),
                      " seeds would be needed for a difference this small");
}

std::string AtLeastText(const Decision& decision) {
  if (decision.seeds_to_decide == 0) return "how many seeds would decide cannot be foretold";
  return absl::StrCat("at least ", Counted(decision.seeds_to_decide, "seed"), " are needed");
}

// "eval/loss +.031 [+.024, +.038] over 12 seeds, each at its own best lr".
std::string MeasuredText(const Comparison& comparison, const ComparisonRow& row) {
  return absl::StrCat(comparison.key, " ", DifferenceText(row), " ",
                      OverText(row, BaselineLabel(comparison, row)), TunedText(comparison));
}

// What follows "A is better than B: ".
std::string DecidedText(const Comparison& comparison, const ComparisonRow& row,
                        const Decision& decision) {
  if (decision.ground == Ground::kDivergence) {
    const Pairs& pairs = row.pairs;
    return absl::StrCat(DivergedText(row, BaselineLabel(comparison, row)), TunedText(comparison),
                        ", and ", row.label, " won ", pairs.wins, " and lost ", pairs.losses,
                        " (sign test, ", PText(SignTest(pairs.wins, pairs.losses).value), ")");
  }
  std::string text = MeasuredText(comparison, row);
  if (decision.ground == Ground::kConstant) {
    absl::StrAppend(&text, ", the same on every seed, so by the sign-flip test (",
                    PText(row.difference.p_sign_flip.value), ") and not by an interval");
  }
  return absl::StrCat(text, CautionText(comparison, row));
}

// What follows "A against B is inconclusive: ".
std::string UndecidedText(const Comparison& comparison, const ComparisonRow& row,
                          const Decision& decision) {
  const std::string& baseline = BaselineLabel(comparison, row);
  const std::string measured = MeasuredText(comparison, row);
  switch (decision.ground) {
    case Ground::kNoPairs:
      return absl::StrCat("no seed has a result of both; ", AtLeastText(decision));
    case Ground::kConflict:
      return absl::StrCat(measured, " makes it the ", decision.toward > 0 ? "better" : "worse",
                          " one where both converge, but it diverges ",
                          decision.toward > 0 ? "more" : "less",
                          " often; more seeds would not say which of the two counts");
    case Ground::kIdentical:
      return absl::StrCat(comparison.key, " is identical ", OverText(row, baseline),
                          TunedText(comparison),
                          "; more seeds would not decide: see whether the setting takes effect");
    case Ground::kTooFewConstant:
      return absl::StrCat(measured, ", the same on every seed, so without an interval; ",
                          AtLeastText(decision));
    case Ground::kTooFewPairs:
      if (row.pairs.converged < row.pairs.all) {
        return absl::StrCat(DivergedText(row, baseline), TunedText(comparison), "; ",
                            AtLeastText(decision));
      }
      return absl::StrCat(measured, " has no spread to be judged by; ", AtLeastText(decision));
    case Ground::kNonFinite:
      return absl::StrCat("the differences in ", comparison.key, " are too large to compute with");
    default:
      return absl::StrCat(measured, "; ", OpenSeedsText(decision, row));
  }
}

// What follows "A against B: ": why there is no verdict, and what is known all the same.
std::string WithheldText(const Comparison& comparison, const ComparisonRow& row) {
  const std::string measured =
      row.pairs.all == 0 ? "no seed has a result of both"
      : row.difference.mean.defined()
          ? MeasuredText(comparison, row)
          : absl::StrCat(DivergedText(row, BaselineLabel(comparison, row)), TunedText(comparison));
  if (row.withheld == Withheld::kScoredDifferently) {
    return absl::StrCat("no verdict, for they are not scored on the same ",
                        ScoredText(comparison.key), " (", Enumerated(row.scored_differently), "); ",
                        measured);
  }
  const ComparisonRow& baseline = comparison.rows[*row.baseline];
  const size_t planned = row.cells + baseline.cells;
  return absl::StrCat("preliminary, ",
                      OfRuns(planned - row.unfinished - baseline.unfinished, planned), "; ",
                      measured, " so far");
}

Verdict VerdictOf(const Comparison& comparison, const ComparisonRow& row,
                  const Decision& decision) {
  const std::string& baseline = BaselineLabel(comparison, row);
  std::string text;
  if (decision.ground == Ground::kWithheld) {
    text = absl::StrCat(row.label, " against ", baseline, ": ", WithheldText(comparison, row), ".");
  } else if (decision.outcome == VerdictOutcome::kInconclusive) {
    text = absl::StrCat(row.label, " against ", baseline,
                        " is inconclusive: ", UndecidedText(comparison, row, decision), ".");
  } else {
    text = absl::StrCat(row.label, " is ", OutcomeName(decision.outcome), " than ", baseline, ": ",
                        DecidedText(comparison, row, decision), ".");
  }
  return {decision.outcome, std::move(text), decision.seeds_to_decide};
}

// A row in a list: "none is better (−.043 [−.049, −.038])".
std::string ShortText(const ComparisonRow& row, const Decision& decision) {
  std::vector<std::string> facts;
  if (row.difference.mean.defined()) facts.push_back(DifferenceText(row));
  if (row.pairs.all == 0) facts.push_back("no pairs");
  if (row.pairs.converged < row.pairs.all) {
    facts.push_back(
        absl::StrCat(row.pairs.converged, " of ", Counted(row.pairs.all, "pair"), " converged"));
  }
  if (decision.ground == Ground::kIdentical) facts = {"identical values"};
  if (decision.seeds_to_decide > 0) {
    facts.push_back(absl::StrCat(decision.ground == Ground::kOpen ? "about " : "at least ",
                                 Counted(decision.seeds_to_decide, "seed"), " needed"));
  }
  if (decision.ground == Ground::kWithheld) {
    return absl::StrCat(row.label, " has no verdict (scored on other data)");
  }
  return absl::StrCat(row.label, " is ", OutcomeName(decision.outcome), " (",
                      absl::StrJoin(facts, ", "), ")");
}

struct Decided {
  const ComparisonRow* row;
  Decision decision;
};

// "3 are better (a, b and c), 1 is worse (d) and 16 are inconclusive (e, f, g and 13 more)". None
// of them is unfinished.
std::string CountsText(const std::vector<Decided>& all) {
  std::vector<std::string> counts;
  for (const VerdictOutcome outcome :
       {VerdictOutcome::kBetter, VerdictOutcome::kWorse, VerdictOutcome::kHigher,
        VerdictOutcome::kLower, VerdictOutcome::kInconclusive,
        VerdictOutcome::kScoredDifferently}) {
    std::vector<std::string> labels;
    for (const Decided& one : all) {
      if (one.decision.outcome == outcome) labels.push_back(one.row->label);
    }
    if (labels.empty()) continue;
    const absl::string_view name = outcome == VerdictOutcome::kScoredDifferently
                                       ? "without a verdict, scored on other data"
                                       : OutcomeName(outcome);
    counts.push_back(absl::StrCat(labels.size(), labels.size() == 1 ? " is " : " are ", name, " (",
                                  Enumerated(labels, kRowsInFull), ")"));
  }
  return Enumerated(counts);
}

// The rows that an interval decides and Holm's p does not.
std::string OverallCaution(const Comparison& comparison, const std::vector<Decided>& all) {
  std::vector<std::string> doubtful;
  for (const Decided& one : all) {
    const bool by_interval =
        one.decision.ground == Ground::kInterval || one.decision.ground == Ground::kConstant;
    if (!by_interval || (one.row->p_holm.defined() && one.row->p_holm.value <= kAlpha)) continue;
    doubtful.push_back(one.row->label);
  }
  if (doubtful.empty()) return "";
  return absl::StrCat("; the sign-flip test", FamilyText(comparison.family),
                      " does not reach p < .05 for ", Enumerated(doubtful, kRowsInFull));
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
  std::vector<std::string> rows;
  for (const Decided& one : all) {
    if (one.decision.outcome != verdict.outcome) verdict.outcome = VerdictOutcome::kMixed;
    verdict.seeds_to_decide = std::max(verdict.seeds_to_decide, one.decision.seeds_to_decide);
    rows.push_back(ShortText(*one.row, one.decision));
  }
  verdict.text = absl::StrCat(comparison.key, " against ", SharedBaseline(comparison, all),
                              TunedText(comparison), ": ",
                              all.size() <= kRowsInFull ? Enumerated(rows) : CountsText(all),
                              OverallCaution(comparison, all), ".");
  return verdict;
}

}  // namespace

absl::string_view OutcomeName(VerdictOutcome outcome) {
  switch (outcome) {
    case VerdictOutcome::kBetter:
      return "better";
    case VerdictOutcome::kWorse:
      return "worse";
    case VerdictOutcome::kInconclusive:
      return "inconclusive";
    case VerdictOutcome::kMixed:
      return "mixed";
    case VerdictOutcome::kPreliminary:
      return "preliminary";
    case VerdictOutcome::kScoredDifferently:
      return "scored-differently";
    case VerdictOutcome::kHigher:
      return "higher";
    case VerdictOutcome::kLower:
      return "lower";
  }
  return "";
}

Verdict RowVerdict(const Comparison& comparison, size_t row) {
  const ComparisonRow& compared = comparison.rows[row];
  return VerdictOf(comparison, compared, Decide(compared, comparison.better, comparison.family));
}

Verdict OverallVerdict(const Comparison& comparison) {
  std::vector<Decided> all;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.compared()) all.push_back({&row, Decide(row, comparison.better, comparison.family)});
  }
  if (comparison.ended < comparison.planned) {
    return {VerdictOutcome::kPreliminary,
            absl::StrCat(PreliminaryText(comparison),
                         ": there is no verdict before all of them have ended."),
            0};
  }
  if (all.empty()) {
    return {VerdictOutcome::kInconclusive,
            comparison.rows.size() == 1 ? "Nothing is compared: there is one setting."
                                        : "Nothing is compared: there is no baseline.",
            0};
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
