#include "server/report/compare/finding.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

// The subject of a finding.
struct Subject {
  const Comparison& comparison;
  const ComparisonRow& row;
  const ComparisonRow& baseline;
  Decision decision;
};

// Returns the words for a decision: the table of words.
Words WordsOf(const Decision& decision, Withheld withheld, Better better) {
  const absl::string_view direction = DirectionName(decision.toward, better);
  switch (decision.grade) {
    case Grade::kEstablished:
      return {"is ", "are ", "", direction, "than"};
    case Grade::kProbable:
      return {"is probably ", "are probably ", "probably ", direction, "than"};
    case Grade::kEquivalent:
      return {"is ", "are ", "", "equivalent", "to"};
    case Grade::kLeans:
      return {"leans ", "lean ", "leans ", direction, "than"};
    case Grade::kInconclusive:
      return {"is ", "are ", "", "inconclusive", "against"};
    case Grade::kNoVerdict:
      break;
  }
  switch (withheld) {
    case Withheld::kScoredDifferently:
      return {"is ", "are ", "", "not comparable", "with"};
    case Withheld::kUnfinished:
      return {"has ", "have ", "", "no verdict yet", "against"};
    case Withheld::kExploratory:
      return {"is ", "are ", "", "exploratory", "against"};
    case Withheld::kTooFewPairs:
    case Withheld::kNo:
      break;
  }
  return {"has ", "have ", "", "too few pairs for a verdict", "against"};
}

std::string LeadOf(const Words& words, const std::string& size) {
  return Capitalized(
      absl::StrCat(words.hedge, size.empty() ? absl::StrCat(words.what, ":") : size));
}

std::string ConstantText(Unit unit) {
  return absl::StrCat("on every ", UnitName(unit), " (no spread, so no interval)");
}

// Returns "12 seeds", "1 sequence".
std::string CountedUnits(const Comparison& comparison, size_t count) {
  return Counted(count, UnitName(comparison.unit));
}

NumberWords FoundDifference(const Comparison& comparison, const PairedStatistics& difference) {
  const Scale scale = comparison.scale;
  const Interval& interval = difference.interval;
  return {DirectedSize(scale, difference.mean.value, interval),
          interval.defined() ? DirectedDifference(scale, difference.mean, interval).interval
                             : ConstantText(comparison.unit)};
}

// Returns a difference with a direction in two parts; otherwise all of it in the second: "+0.031
// [−0.002, +0.064]".
NumberWords DifferenceOf(const Subject& of) {
  const Scale scale = of.comparison.scale;
  const PairedStatistics& difference = of.row.difference;
  if (of.decision.ground == Ground::kIdentical) return {"", "identical values"};
  if (of.decision.ground == Ground::kNonFinite)
    return {"", "differences too large to compute with"};
  if (!difference.mean.defined()) return {};
  const bool found = SaysWhichWay(of.decision.grade);
  if (found && !of.row.by_wins) return FoundDifference(of.comparison, difference);
  const auto shown = found || of.row.withheld == Withheld::kExploratory
                         ? DirectedDifference(scale, difference.mean, difference.interval)
                         : ShownDifference(scale, difference.mean, difference.interval);
  const std::string text = shown.text();
  return {"", of.decision.ground == Ground::kConstant
                  ? absl::StrCat(text, " ", ConstantText(of.comparison.unit))
                  : text};
}

// Returns "“post” diverged on 3 of 12 seeds, “pre” on 0".
std::string DivergedText(const Subject& of) {
  const Pairs& pairs = of.row.pairs;
  const size_t both =
      pairs.all - pairs.converged - pairs.only_row_diverged - pairs.only_baseline_diverged;
  return absl::StrCat(Quoted(of.row.label), " diverged on ", pairs.only_row_diverged + both, " of ",
                      CountedUnits(of.comparison, pairs.all), ", ", Quoted(of.baseline.label),
                      " on ", pairs.only_baseline_diverged + both);
}

// Returns "over 12 seeds", or which of them could be subtracted.
std::string OverText(const Subject& of) {
  const Pairs& pairs = of.row.pairs;
  const std::string all = CountedUnits(of.comparison, pairs.all);
  if (pairs.converged == pairs.all) return absl::StrCat("over ", all);
  return absl::StrCat("over the ", pairs.converged, " of ", all, " on which both converged (",
                      DivergedText(of), ")");
}

// Returns "worse on 7 of 8 seeds": how many agree with its direction. Empty if none does, or if
// neither direction is better.
std::string AgreeingText(const Subject& of) {
  const bool worse = of.decision.toward < 0;
  const size_t agreeing = worse ? of.row.pairs.losses : of.row.pairs.wins;
  if (of.comparison.better == Better::kNeither || agreeing == 0) return "";
  return absl::StrCat(worse ? "worse on " : "better on ", text::Grouped(agreeing), " of ",
                      CountedUnits(of.comparison, of.row.pairs.all));
}

// Returns "1.7 % of “pre”", the baseline's mean. Empty if that is meaningless, as for a ratio.
std::string PercentText(const Subject& of) {
  const Number& mean = of.baseline.own.mean;
  if (of.comparison.scale == Scale::kRatio || !mean.defined() || !(mean.value > 0)) return "";
  const double percent = 100 * std::abs(of.row.difference.mean.value) / mean.value;
  if (!(percent >= .05) || percent >= 1000) return "";
  return absl::StrCat(Plain(percent, percent < 10 ? 1 : 0), " % of ", Quoted(of.baseline.label));
}

// Returns how many runs have ended: "24 of 60 runs ended, “pre” 60 of 60".
std::string ProgressText(const Subject& of) {
  return absl::StrCat(OfRuns(of.row.cells - of.row.unfinished, of.row.cells), " ended, ",
                      Quoted(of.baseline.label), " ", of.baseline.cells - of.baseline.unfinished,
                      " of ", of.baseline.cells);
}

// Returns the evidence of a row whose difference has no direction.
std::string SeenText(const Subject& of, const NumberWords& difference) {
  if (of.row.pairs.all == 0) {
    const absl::string_view unit = UnitName(of.comparison.unit);
    if (DivergedBySequence(of.comparison.unit, of.row, of.baseline)) {
      return absl::StrCat(Quoted(of.row.diverged > 0 ? of.row.label : of.baseline.label),
                          " diverged");
    }
    return of.row.n > 0 && of.baseline.n > 0 ? absl::StrCat("they have no ", unit, " in common")
                                             : absl::StrCat("no ", unit, " has a result for both");
  }
  if (difference.interval.empty()) return DivergedText(of);
  return absl::StrCat(difference.interval, " ", OverText(of));
}

std::string EvidenceText(const Subject& of, const NumberWords& difference) {
  switch (of.row.withheld) {
    case Withheld::kScoredDifferently:
      return absl::StrCat("evaluated on other ", ScoredText(of.comparison.key), " (",
                          Enumerated(of.row.scored_differently), ")");
    case Withheld::kUnfinished:
      return absl::StrCat(ProgressText(of), "; ", SeenText(of, difference), " so far");
    case Withheld::kExploratory:
    case Withheld::kTooFewPairs:
      return SeenText(of, difference);
    case Withheld::kNo:
      break;
  }
  const std::string agreeing = AgreeingText(of);
  if (of.row.by_wins) {
    const std::string& text = difference.interval;
    return Together({DivergedText(of), agreeing,
                     text.empty() ? "" : absl::StrCat(text, " when both converged")},
                    "; ");
  }
  if (of.decision.ground == Ground::kNonFinite) return difference.interval;
  if (of.decision.ground == Ground::kIdentical || difference.interval.empty()) {
    return SeenText(of, difference);
  }
  const bool whole = of.row.pairs.converged == of.row.pairs.all;
  return Together(
      {Together({difference.interval, difference.value.empty() ? "" : PercentText(of)}, ", "),
       agreeing, whole && !agreeing.empty() ? "" : OverText(of)},
      "; ");
}

// Returns " (Holm-adjusted for 2 comparisons; 8 pairs allow no smaller p)"; "" without parts.
std::string Parenthesized(const std::vector<std::string>& parts) {
  const std::string text = Together(parts, "; ");
  return text.empty() ? "" : absl::StrCat(" (", text, ")");
}

// Returns "p = 0.078 (Holm-adjusted for 2 comparisons)", "p = 0.188"; empty without p.
std::string AdjustedText(const Subject& of) {
  if (!of.row.p_holm.defined()) return "";
  return absl::StrCat(PText(of.row.p_holm.value),
                      Parenthesized({FamilyText(of.comparison.family)}));
}

// Returns "p = 0.016 (Holm-adjusted for 2 comparisons; 8 pairs allow no smaller p)".
std::string EstablishedText(const Subject& of) {
  const size_t pairs = of.row.tested_pairs();
  const bool least = of.row.p.value <= std::pow(2.0, 1 - static_cast<double>(pairs)) * (1 + kTie);
  return absl::StrCat(
      PText(of.row.p_holm.value),
      Parenthesized({FamilyText(of.comparison.family),
                     least ? absl::StrCat(Counted(pairs, "pair"), " allow no smaller p") : ""}));
}

// Returns "p < 0.001 by the t-test (Holm-adjusted for 2 comparisons; assumes roughly normal
// differences)".
std::string ProbableText(const Subject& of) {
  return absl::StrCat(
      PText(of.row.p_t_holm.value), " by the t-test",
      Parenthesized({FamilyText(of.comparison.family),
                     of.comparison.scale == Scale::kRatio ? "assumes roughly log-normal ratios"
                                                          : "assumes roughly normal differences"}));
}

// Returns "not established, because “post” varies 3.1 times as much as “pre” and the selected lr
// differs between its seeds".
std::string NoiseText(const Subject& of) {
  return absl::StrCat("not established, because ", NoisierText(of.row, of.baseline),
                      " and the selected ", absl::StrJoin(of.comparison.tuned_axes, " and "),
                      " differs between its seeds");
}

// Returns "Holm-adjusted", for facts after one that has the number of comparisons.
std::string BriefFamilyText(const Subject& of) {
  return of.comparison.family > 1 ? "Holm-adjusted" : "";
}

// Returns "within ±0.01 (equivalence test: p = 0.003; Holm-adjusted for 2 comparisons)", "within a
// factor of 1.1 either way …"; the comparison has a margin.
std::string EquivalentText(const Subject& of, const std::string& family) {
  const Comparison& comparison = of.comparison;
  const std::string within =
      comparison.scale == Scale::kRatio
          ? absl::StrCat("within a factor of ", 1 + *comparison.margin, " either way")
          : absl::StrCat("within \u00b1", text::ShortestDecimal(*comparison.margin));
  return absl::StrCat(
      within, Parenthesized(
                  {absl::StrCat("equivalence test: ", PText(of.row.p_equivalence.value)), family}));
}

std::string NotEquivalentText(const Subject& of) {
  if (!of.comparison.margin.has_value() || !of.row.p_equivalence.defined()) return "";
  return absl::StrCat("not shown to be ", EquivalentText(of, BriefFamilyText(of)));
}

// Rounds a number of seeds to two digits, its precision.
size_t RoundedSeeds(size_t seeds) {
  size_t unit = 1;
  while (seeds / unit >= 100) unit *= 10;
  return (seeds + unit / 2) / unit * unit;
}

std::string SeedsText(const Number& seeds) {
  if (!seeds.defined()) return absl::StrCat("more than ", text::Grouped(kMaxSeeds));
  return text::Grouped(static_cast<int64_t>(RoundedSeeds(static_cast<size_t>(seeds.value))));
}

// Returns "minimum detectable difference with 12 seeds: 0.009 (80 % power)", "minimum detectable
// ratio with 12 seeds: a factor of 1.08 (80 % power)"; or why there is none.
std::string DetectableText(const Subject& of) {
  const Scale scale = of.comparison.scale;
  const Number least = OffScale(scale, of.row.least_detectable);
  const size_t pairs = of.row.difference.n;
  if (!least.defined()) {
    return absl::StrCat(Counted(pairs, "pair"), " cannot reach p < 0.05 in the permutation test",
                        Parenthesized({BriefFamilyText(of)}));
  }
  const bool ratio = scale == Scale::kRatio;
  return absl::StrCat(
      "minimum detectable ", ratio ? "ratio" : "difference", " with ",
      CountedUnits(of.comparison, pairs), ": ",
      ratio ? absl::StrCat("a factor of ", ShownFactor(least.value)) : Plain(least.value),
      " (80 % power)");
}

// Returns true if nearly all pairs are equal, as if a metric is at its ceiling, and pairs aren't
// too few to be decided.
bool AreMostlyEqual(const Subject& of) {
  const Pairs& pairs = of.row.pairs;
  return pairs.all >= LeastSeedsForSignFlip(of.comparison.family) &&
         4 * pairs.equal() >= 3 * pairs.all;
}

std::string MostlyEqualText(const Subject& of) {
  const Pairs& pairs = of.row.pairs;
  const bool coarse = absl::StrContains(of.comparison.key, "accuracy");
  return absl::StrCat(pairs.equal(), " of ", Counted(pairs.all, "pair"), " are equal, so more ",
                      UnitName(of.comparison.unit), "s help little",
                      coarse ? ": compare a finer metric, such as eval/loss" : "");
}

// Returns "the settings differ at some lr (p = 0.004), but their selected runs alone don't show it
// (p = 1.000, above 0.2)".
std::string ElsewhereText(const Subject& of) {
  return absl::StrCat(
      "the settings differ at some ", absl::StrJoin(of.comparison.tuned_axes, " and "), " (",
      PText(of.row.p.value), "), but their selected runs alone don't show it (",
      PText(of.row.p_selected.value), ", above ", text::ShortestDecimal(kMostSelected), ")");
}

// Returns the effect of more seeds: "…; the observed difference needs about 105 seeds (40 to
// 1,000)". A permutation test with reselection has less power than the test of the differences,
// whose power is known.
std::string PowerText(const Subject& of) {
  if (AreMostlyEqual(of)) return MostlyEqualText(of);
  const SeedsNeeded& needed = of.row.needed;
  const size_t least = LeastSeedsForSignFlip(of.comparison.family);
  const std::string units = absl::StrCat(UnitName(of.comparison.unit), "s");
  if (!needed.known()) {
    return of.row.pairs.all >= least
               ? absl::StrCat("the number of ", units, " needed cannot be estimated")
               : absl::StrCat("the permutation test needs at least ",
                              CountedUnits(of.comparison, least));
  }
  const std::string seen =
      absl::StrCat(DetectableText(of), "; the observed ",
                   of.comparison.scale == Scale::kRatio ? "ratio" : "difference", " needs ");
  if (!needed.estimate.defined()) {
    return absl::StrCat(
        seen, SeedsText(needed.estimate), " ", units,
        needed.low.defined() ? absl::StrCat(", at best ", SeedsText(needed.low)) : "");
  }
  return absl::StrCat(seen, "about ", SeedsText(needed.estimate), " ", units,
                      of.row.chosen.empty() ? "" : " or more", " (", SeedsText(needed.low), " to ",
                      SeedsText(needed.high), ")");
}

// Returns true for a row with too few pairs that more of them would decide.
bool NeedsPairs(const Subject& of) {
  return of.row.withheld == Withheld::kTooFewPairs &&
         !DivergedBySequence(of.comparison.unit, of.row, of.baseline);
}

// Returns the facts by grade: the evidence, or what would be needed.
std::vector<std::string> GradeFacts(const Subject& of) {
  const std::string unit(UnitName(of.comparison.unit));
  const std::string least =
      CountedUnits(of.comparison, LeastSeedsForSignFlip(of.comparison.family));
  switch (of.decision.grade) {
    case Grade::kEstablished:
      return {EstablishedText(of)};
    case Grade::kProbable:
      if (of.row.p_holm.defined() && of.row.p_holm.value <= kAlpha) {
        return {EstablishedText(of), NoiseText(of)};
      }
      return {ProbableText(of), absl::StrCat("the permutation test needs ", least)};
    case Grade::kEquivalent:
      return {};
    case Grade::kLeans:
      return {absl::StrCat(PText(of.row.p.value), " unadjusted, but ", AdjustedText(of)),
              PowerText(of)};
    case Grade::kInconclusive:
      break;
    case Grade::kNoVerdict:
      if (!NeedsPairs(of)) return {};
      return {absl::StrCat("the permutation test needs at least ", least)};
  }
  switch (of.decision.ground) {
    case Ground::kConflict: {
      const bool more = of.row.pairs.only_row_diverged > of.row.pairs.only_baseline_diverged;
      return {absl::StrCat(more ? "better when both converge, but diverges more often"
                                : "worse when both converge, but diverges less often",
                           ": more ", unit, "s cannot resolve this trade-off")};
    }
    case Ground::kIdentical:
      return {
          absl::StrCat("more ", unit, "s will not help: check that the setting has any effect")};
    case Ground::kNonFinite:
      return {};
    case Ground::kElsewhere:
      return {ElsewhereText(of), NotEquivalentText(of), PowerText(of)};
    default:
      return {AdjustedText(of), NotEquivalentText(of), PowerText(of)};
  }
}

std::vector<std::string> FactsOf(const Subject& of) {
  const std::string chosen = ChosenText(of.row, of.comparison.tuned_axes);
  std::vector<std::string> facts;
  if (!chosen.empty()) facts.push_back(absl::StrCat("at ", chosen));
  for (std::string& fact : GradeFacts(of)) {
    if (!fact.empty()) facts.push_back(std::move(fact));
  }
  if (of.decision.equivalent) facts.push_back(EquivalentText(of, FamilyText(of.comparison.family)));
  return facts;
}

SeedsToDecide SeedsOf(const Subject& of) {
  const size_t least = LeastSeedsForSignFlip(of.comparison.family);
  if (NeedsPairs(of)) return {least, 0, 0};
  const Grade grade = of.decision.grade;
  const Ground ground = of.decision.ground;
  const bool open = grade == Grade::kInconclusive || grade == Grade::kLeans;
  const bool foretold =
      ground != Ground::kConflict && ground != Ground::kIdentical && ground != Ground::kNonFinite;
  if (!open || !foretold || AreMostlyEqual(of)) return {};
  const SeedsNeeded& needed = of.row.needed;
  if (!needed.known()) return {of.row.pairs.all < least ? least : 0, 0, 0};
  const auto count = [](const Number& seeds) {
    return seeds.defined() ? static_cast<size_t>(seeds.value) : 0;
  };
  return {count(needed.estimate), count(needed.low), count(needed.high)};
}

std::vector<std::string> BriefFacts(const Subject& of, const std::string& difference,
                                    const SeedsToDecide& seeds) {
  const Pairs& pairs = of.row.pairs;
  const Grade grade = of.decision.grade;
  if (of.row.withheld == Withheld::kScoredDifferently) {
    return {absl::StrCat("evaluated on other ", ScoredText(of.comparison.key))};
  }
  std::vector<std::string> facts;
  if (!difference.empty()) facts.push_back(difference);
  if (pairs.all == 0) facts.emplace_back("no pairs");
  if (pairs.converged < pairs.all) {
    facts.push_back(
        absl::StrCat(pairs.converged, " of ", Counted(pairs.all, "pair"), " converged"));
  }
  if (grade == Grade::kEstablished || grade == Grade::kLeans) {
    facts.push_back(PText(of.row.p_holm.value));
  }
  if (grade == Grade::kProbable && HasDoubtfulNoise(of.comparison, of.row)) {
    facts.push_back(absl::StrCat(PText(of.row.p_holm.value), " with unequal noise"));
  } else if (grade == Grade::kProbable) {
    facts.push_back(absl::StrCat(PText(of.row.p_t_holm.value), " by the t-test"));
  }
  if (of.decision.equivalent) facts.push_back(EquivalentText(of, FamilyText(of.comparison.family)));
  if (seeds.seeds > 0) {
    const bool about = seeds.low > 0 && of.row.chosen.empty();
    facts.push_back(absl::StrCat(about ? "about " : "at least ",
                                 CountedUnits(of.comparison, RoundedSeeds(seeds.seeds)),
                                 " needed"));
  }
  return facts;
}

// Returns how much of the difference at shared tuned values is due to them.
std::string DueText(const Subject& of, const ComparisonRow& matched) {
  const bool known = of.row.withheld == Withheld::kNo && matched.withheld == Withheld::kNo &&
                     of.row.difference.mean.defined() && LeavesOutZero(matched.difference.interval);
  if (!known) return "";
  const std::string axes = absl::StrJoin(of.comparison.tuned_axes, " and ");
  const double share = of.row.difference.mean.value / matched.difference.mean.value;
  if (share < 0 && LeavesOutZero(of.row.difference.interval)) {
    return absl::StrCat(" (the sign depends on the ", axes, ")");
  }
  if (std::abs(share) >= 0.5) return "";
  const absl::string_view part = share > 0 && share < .05   ? "nearly all"
                                 : share > 0 && share < .15 ? "nine tenths"
                                                            : "most";
  return absl::StrCat(" (tuning the ", axes, " removes ", part, " of it)");
}

std::string SharedText(const Subject& of) {
  if (!of.comparison.reference.has_value()) return "";
  for (const ComparisonRow& matched : of.comparison.matched[*of.comparison.reference].rows) {
    if (matched.labels != of.row.labels || !matched.in_family()) continue;
    const PairedStatistics& there = matched.difference;
    if (!there.mean.defined()) continue;
    return absl::StrCat(DirectedDifference(of.comparison.scale, there.mean, there.interval).text(),
                        DueText(of, matched));
  }
  return "";
}

}  // namespace

Finding FindingOf(const Comparison& comparison, size_t index) {
  const ComparisonRow& row = comparison.rows[index];
  const Subject of = {comparison, row, comparison.rows[*row.baseline], Decide(comparison, row)};
  Finding finding;
  finding.row = index;
  finding.who = Quoted(row.label);
  finding.decision = of.decision;
  finding.words = WordsOf(of.decision, row.withheld, comparison.better);
  const NumberWords difference = DifferenceOf(of);
  finding.size = difference.value;
  finding.lead = LeadOf(finding.words, finding.size);
  finding.evidence = EvidenceText(of, difference);
  finding.facts = FactsOf(of);
  finding.shared = SharedText(of);
  finding.seeds = SeedsOf(of);
  finding.brief = BriefFacts(of, difference.text(), finding.seeds);
  return finding;
}

std::vector<Finding> FindingsOf(const Comparison& comparison) {
  std::vector<Finding> findings;
  for (size_t row = 0; row < comparison.rows.size(); ++row) {
    if (comparison.rows[row].compared()) findings.push_back(FindingOf(comparison, row));
  }
  return findings;
}

Finding EffectFinding(const Comparison& comparison, const Effect& effect, size_t family) {
  const PairedStatistics& difference = effect.difference;
  const bool together = effect.levels.size() > 1;
  const bool found = effect.p_holm.defined() && effect.p_holm.value <= kAlpha;
  const Better better = together ? Better::kNeither : comparison.better;
  Finding finding;
  finding.who = EffectText(effect);
  if (found) {
    const bool higher = difference.mean.value > 0;
    finding.decision.toward = higher == (better != Better::kLower) ? 1 : -1;
    finding.decision.grade = Grade::kEstablished;
  }
  const NumberWords shown =
      found ? FoundDifference(comparison, difference)
      : difference.mean.defined()
          ? NumberWords{"", ShownDifference(comparison.scale, difference.mean, difference.interval)
                                .text()}
          : NumberWords{"", std::string(PairReasonText(difference.mean.undefined))};
  finding.size = shown.value;
  finding.words = WordsOf(finding.decision, Withheld::kNo, better);
  finding.lead = together && found ? absl::StrCat("Together ", finding.size)
                                   : LeadOf(finding.words, finding.size);
  finding.evidence = absl::StrCat(
      shown.interval,
      !together || !found                 ? ", "
      : comparison.scale == Scale::kRatio ? " than the product of the two separate effects, "
                                          : " than the sum of the two separate effects, ",
      effect.combinations < 2
          ? "over "
          : absl::StrCat("on average over ", effect.combinations, " combinations, "),
      CountedUnits(comparison, difference.n));
  if (effect.p_holm.defined()) {
    finding.facts.push_back(absl::StrCat(PText(effect.p_holm.value), " (Holm-adjusted for ",
                                         Counted(family, together ? "interaction" : "main effect"),
                                         ")"));
  }
  return finding;
}

}  // namespace ablate::report
