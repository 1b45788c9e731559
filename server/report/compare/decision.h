// The rule of the verdict: which way a row goes, and how much speaks for it. Pure functions, safe
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
  kScoredDifferently,  // none: the runs are scored on different data
  kHigher,             // where neither is better
  kLower,
  kTooFewPairs,  // none
  kExploratory,  // none: not what the experiment was planned for
  kEquivalent,   // within the margin either way
};

// The name that programs and stylesheets read: "better", "scored-differently".
absl::string_view OutcomeName(VerdictOutcome outcome);

// How much speaks for it, in ascending order.
enum class Grade {
  kNoVerdict,
  kInconclusive,
  kLeans,        // the row's own p <= kAlpha
  kEquivalent,   // p_equivalence <= kAlpha
  kProbable,     // too few pairs for p_holm to reach kAlpha, but the t-test adjusted likewise does
  kEstablished,  // p_holm <= kAlpha
};

// Whether it says which way a row goes: that it leans, or more.
bool SaysWhichWay(Grade grade);

// "better", "lower": what +1 and -1 of a Decision's `toward` are called.
absl::string_view DirectionName(int toward, Better better);

// "established", "no-verdict".
absl::string_view GradeName(Grade grade);

enum class Ground {
  kWithheld,    // the row says why
  kDifference,  // the pairs on which both converged
  kConstant,    // the same, with one difference, not 0, on every seed: it has no spread
  kDivergence,  // on some pair only one diverged: the wins over all pairs
  kConflict,    // the same: better where both converge, but diverges more often, or the reverse
  kIdentical,   // equal on every seed
  kNonFinite,   // differences too large to compute with
};

struct Decision {
  // Better, worse, higher or lower from kProbable on.
  VerdictOutcome outcome = VerdictOutcome::kInconclusive;
  Grade grade = Grade::kInconclusive;
  Ground ground = Ground::kWithheld;
  // +1 if the row is the better one as far as its test sees, -1 if the worse; where neither is
  // better if it is the higher and the lower one; 0 for neither.
  int toward = 0;
  bool equivalent = false;  // also of one that is established or probable
};

// `row` is one of `comparison`'s and is compared with a baseline; of a matched block it is only
// whether and why there is no verdict.
Decision Decide(const Comparison& comparison, const ComparisonRow& row);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_DECISION_H_
