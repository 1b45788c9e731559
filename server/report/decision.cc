// From interval, divergences and wins to an outcome.
#include "server/report/decision.h"

#include <algorithm>
#include <cmath>

#include "server/report/statistics.h"

namespace ablate::report {
namespace {

// +1 if `difference` (row minus baseline) is the row's gain, -1 if its loss.
int Toward(double difference, Better better) {
  if (difference == 0) return 0;
  return (difference < 0) == (better == Better::kLower) ? 1 : -1;
}

VerdictOutcome OutcomeOf(int toward) {
  if (toward == 0) return VerdictOutcome::kInconclusive;
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
    if (StabilityToward(row.pairs) == -converged) {
      return {VerdictOutcome::kInconclusive, Ground::kConflict, converged, 0};
    }
    const Ground ground = IsConstant(row.difference) ? Ground::kConstant : Ground::kInterval;
    return {OutcomeOf(converged), ground, converged, 0};
  }
  const int wins = WinsToward(row.pairs);
  if (wins != 0) return {OutcomeOf(wins), Ground::kDivergence, wins, 0};
  return Undecided(row, family);
}

}  // namespace ablate::report
