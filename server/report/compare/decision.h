// Decides a row's verdict: the direction of its difference, and the grade. Pure functions, safe
// from any thread. docs/reference/comparison.md has the rule with its error rates.
#ifndef ABLATE_SERVER_REPORT_COMPARE_DECISION_H_
#define ABLATE_SERVER_REPORT_COMPARE_DECISION_H_

#include "absl/strings/string_view.h"
#include "server/report/compare/comparison.h"

namespace ablate::report {

enum class VerdictOutcome {
  kBetter,
  kWorse,
  kInconclusive,
  kMixed,              // overall only: the rows' outcomes differ
  kPreliminary,        // none yet: runs have not ended
  kScoredDifferently,  // none: the runs have different evaluation data
  kHigher,             // if neither direction is better
  kLower,
  kTooFewPairs,  // none
  kExploratory,  // none: the experiment wasn't planned for this
  kEquivalent,   // within ±margin
};

// Returns the name for programs and stylesheets: "better", "scored-differently".
absl::string_view OutcomeName(VerdictOutcome outcome);

// Strength of the evidence, in ascending order.
enum class Grade {
  kNoVerdict,
  kInconclusive,
  kLeans,        // the row's own p <= kAlpha
  kEquivalent,   // p_equivalence <= kAlpha
  kProbable,     // too few pairs for p_holm to reach kAlpha, but the Holm-adjusted t-test does; or
                 // p_holm <= kAlpha with kDoubtfulNoise
  kEstablished,  // p_holm <= kAlpha
};

// Returns true if the grade has a direction: kLeans or more.
bool SaysWhichWay(Grade grade);

// Returns the word for +1 or -1 in a Decision's `toward`: "better", "lower".
absl::string_view DirectionName(int toward, Better better);

// Returns "established", "no-verdict".
absl::string_view GradeName(Grade grade);

enum class Ground {
  kWithheld,    // none: the row has the reason
  kDifference,  // the pairs in which both converged
  kConstant,    // the same, with one nonzero difference on every seed: no variance
  kDivergence,  // in some pair only one diverged, and one direction is better: wins over all pairs
  kConflict,    // the same: better if both converge, but diverges more often, or the reverse
  kElsewhere,   // p <= kAlpha because of tuned values that aren't selected
  kIdentical,   // equal on every seed
  kNonFinite,   // differences too large for the computation
};

// The largest p_selected with which a row has a direction. The null hypothesis of `p` is that the
// settings are alike at every tuned value, and a verdict is about the selected ones.
inline constexpr double kMostSelected = 0.2;

// With tuned values and unequal noise the permutation test is approximate: if the runs of one
// setting vary this many times as much as the other's, and it selected several values, equal
// settings are told apart too often, from this number of pairs on (ADR 0011). Such a row is
// probable at best.
inline constexpr double kDoubtfulNoise = 2;
inline constexpr size_t kPairsForDoubt = 7;

// Returns true if this applies to `row`, which is one of `comparison`'s and compared.
bool HasDoubtfulNoise(const Comparison& comparison, const ComparisonRow& row);

struct Decision {
  // Better, worse, higher or lower from kProbable on.
  VerdictOutcome outcome = VerdictOutcome::kInconclusive;
  Grade grade = Grade::kInconclusive;
  Ground ground = Ground::kWithheld;
  // +1 if the row is better by its test, -1 if worse; if neither direction is better, higher and
  // lower; 0 for neither.
  int toward = 0;
  bool equivalent = false;  // may also be true if established or probable
};

// Returns true if a row and its baseline have no pairs because these are of sequences and a run of
// theirs diverged: more sequences would not help.
bool DivergedBySequence(Unit unit, const ComparisonRow& row, const ComparisonRow& baseline);

// Decides about `row`, which is one of `comparison`'s and compared with a baseline; for a row of a
// matched block only if and why there is no verdict.
Decision Decide(const Comparison& comparison, const ComparisonRow& row);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_DECISION_H_
