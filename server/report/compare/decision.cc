#include "server/report/compare/decision.h"

#include <cmath>

namespace ablate::report {
namespace {

VerdictOutcome OutcomeOf(int toward, Better better) {
  if (better == Better::kNeither) {
    return toward > 0 ? VerdictOutcome::kHigher : VerdictOutcome::kLower;
  }
  return toward > 0 ? VerdictOutcome::kBetter : VerdictOutcome::kWorse;
}

VerdictOutcome OutcomeOf(Withheld withheld) {
  switch (withheld) {
    case Withheld::kUnfinished:
      return VerdictOutcome::kPreliminary;
    case Withheld::kScoredDifferently:
      return VerdictOutcome::kScoredDifferently;
    case Withheld::kExploratory:
      return VerdictOutcome::kExploratory;
    case Withheld::kTooFewPairs:
    case Withheld::kNo:
      break;
  }
  return VerdictOutcome::kTooFewPairs;
}

// Returns +1 if `difference` (row minus baseline) is the row's gain, -1 if its loss; if neither
// direction is better, its sign.
int GainOf(double difference, Better better) {
  if (!(difference > 0) && !(difference < 0)) return 0;
  return (difference < 0) == (better == Better::kLower) ? 1 : -1;
}

bool IsConstant(const PairedStatistics& difference) {
  return difference.n >= 2 && difference.deviation.undefined == Undefined::kZeroVariance;
}

// Returns true if a constant difference is only the rounding of the values.
bool IsIdentical(const ComparisonRow& row, Scale scale) {
  const double size = scale == Scale::kRatio ? 1 : std::abs(row.mean.value);
  return IsConstant(row.difference) && std::abs(row.difference.mean.value) <= kTie * size;
}

bool AtMostAlpha(const Number& p) { return p.defined() && p.value <= kAlpha; }

// Returns true if `p` is small although the selected runs alone hardly differ.
bool DiffersElsewhere(const ComparisonRow& row) {
  return AtMostAlpha(row.p) && row.p_selected.defined() && row.p_selected.value > kMostSelected;
}

// Returns +1 if the baseline diverged in more of the pairs, -1 if the row did.
int StabilityOf(const Pairs& pairs) {
  if (pairs.only_row_diverged == pairs.only_baseline_diverged) return 0;
  return pairs.only_row_diverged < pairs.only_baseline_diverged ? 1 : -1;
}

// Returns true if the row is better if both converge but diverges more often, or the reverse, and
// the wins don't show that divergence outweighs it.
bool Conflicts(const ComparisonRow& row, Better better, int wins) {
  const int stability = StabilityOf(row.pairs);
  const bool opposed = stability == -GainOf(row.difference.mean.value, better);
  if (!LeavesOutZero(row.difference.interval) || !opposed) return false;
  return wins != stability || !AtMostAlpha(row.p);
}

Ground GroundOf(const Comparison& comparison, const ComparisonRow& row, int toward) {
  if (row.by_wins && Conflicts(row, comparison.better, toward)) return Ground::kConflict;
  if (!row.by_wins && IsIdentical(row, comparison.scale)) return Ground::kIdentical;
  if (DiffersElsewhere(row)) return Ground::kElsewhere;
  if (row.by_wins) return Ground::kDivergence;
  if (IsConstant(row.difference)) return Ground::kConstant;
  return row.p.undefined == Undefined::kNonFinite ? Ground::kNonFinite : Ground::kDifference;
}

// Returns true if the row's test is too coarse for its family, and neither of the two selected
// different values on different seeds, which the t-test would ignore.
bool MayBeProbable(const Comparison& comparison, const ComparisonRow& row) {
  const ComparisonRow& baseline = comparison.rows[*row.baseline];
  return !row.by_wins && row.difference.n < LeastSeedsForSignFlip(comparison.family) &&
         row.chosen.size() <= 1 && baseline.chosen.size() <= 1;
}

Grade GradeOf(const Comparison& comparison, const ComparisonRow& row, const Decision& decision) {
  // Equal results on every seed may be due to a setting without effect.
  if (decision.ground == Ground::kIdentical || decision.ground == Ground::kConflict) {
    return Grade::kInconclusive;
  }
  const bool sided = decision.toward != 0 && decision.ground != Ground::kElsewhere;
  if (sided && AtMostAlpha(row.p_holm)) {
    return HasDoubtfulNoise(comparison, row) ? Grade::kProbable : Grade::kEstablished;
  }
  if (sided && AtMostAlpha(row.p_t_holm) && MayBeProbable(comparison, row)) return Grade::kProbable;
  if (decision.equivalent) return Grade::kEquivalent;
  return sided && AtMostAlpha(row.p) ? Grade::kLeans : Grade::kInconclusive;
}

}  // namespace

bool DivergedBySequence(Unit unit, const ComparisonRow& row, const ComparisonRow& baseline) {
  return unit != Unit::kSeed && row.diverged + baseline.diverged > 0;
}

bool HasDoubtfulNoise(const Comparison& comparison, const ComparisonRow& row) {
  if (row.by_wins || row.difference.n < kPairsForDoubt || !row.difference.deviation.defined()) {
    return false;
  }
  const bool row_is_noisier = !row.noise_ratio.defined() || row.noise_ratio.value > 1;
  const ComparisonRow& noisier = row_is_noisier ? row : comparison.rows[*row.baseline];
  const bool unequal = !row.noise_ratio.defined() || row.noise_ratio.value >= kDoubtfulNoise ||
                       row.noise_ratio.value <= 1 / kDoubtfulNoise;
  return unequal && noisier.chosen.size() > 1;
}

Decision Decide(const Comparison& comparison, const ComparisonRow& row) {
  Decision decision;
  const int wins = row.pairs.wins > row.pairs.losses   ? 1
                   : row.pairs.wins < row.pairs.losses ? -1
                                                       : 0;
  decision.toward = row.by_wins ? wins : GainOf(row.difference.mean.value, comparison.better);
  if (row.withheld != Withheld::kNo) {
    decision.outcome = OutcomeOf(row.withheld);
    decision.grade = Grade::kNoVerdict;
    return decision;
  }
  decision.ground = GroundOf(comparison, row, decision.toward);
  decision.equivalent = AtMostAlpha(row.p_equivalence) && decision.ground != Ground::kIdentical;
  decision.grade = GradeOf(comparison, row, decision);
  if (decision.grade == Grade::kEquivalent) decision.outcome = VerdictOutcome::kEquivalent;
  if (decision.grade >= Grade::kProbable) {
    decision.outcome = OutcomeOf(decision.toward, comparison.better);
  }
  return decision;
}

bool SaysWhichWay(Grade grade) { return grade >= Grade::kLeans && grade != Grade::kEquivalent; }

absl::string_view DirectionName(int toward, Better better) {
  return OutcomeName(OutcomeOf(toward, better));
}

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
    case VerdictOutcome::kTooFewPairs:
      return "too-few-pairs";
    case VerdictOutcome::kExploratory:
      return "exploratory";
    case VerdictOutcome::kEquivalent:
      return "equivalent";
  }
  return "";
}

absl::string_view GradeName(Grade grade) {
  switch (grade) {
    case Grade::kNoVerdict:
      return "no-verdict";
    case Grade::kInconclusive:
      return "inconclusive";
    case Grade::kLeans:
      return "leans";
    case Grade::kEquivalent:
      return "equivalent";
    case Grade::kProbable:
      return "probable";
    case Grade::kEstablished:
      return "established";
  }
  return "";
}

}  // namespace ablate::report
