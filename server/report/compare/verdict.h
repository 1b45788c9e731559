// What a comparison says: which way each row goes and on what ground, as sentences made from its
// intervals. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_
#define ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_

#include <cstddef>
#include <string>

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
};

// The name that programs and stylesheets read: "better", "scored-differently".
absl::string_view OutcomeName(VerdictOutcome outcome);

enum class Ground {
  kWithheld,  // the row says why
  kNoPairs,   // no seed has a result of both
  kInterval,  // the interval leaves out 0
  kConstant,  // the same difference, not 0, on every seed: no spread, decided by the sign-flip test
  kDivergence,      // one diverges so often that the wins over all pairs decide
  kConflict,        // better where both converge, but diverges more often, or the reverse
  kOpen,            // the interval includes 0
  kIdentical,       // equal on every seed
  kTooFewConstant,  // as kConstant, on too few seeds
  kTooFewPairs,     // one pair converged or none
  kNonFinite,       // differences too large to compute with
};

struct Decision {
  VerdictOutcome outcome = VerdictOutcome::kInconclusive;
  Ground ground = Ground::kNoPairs;
  // +1 if the row is the better one where both converge, -1 if the worse; where neither is better
  // if it is the higher and the lower one; 0 undecided.
  int toward = 0;
  // As Verdict's; kOpen: pairs needed, scaled up by the share of pairs that converge.
  size_t seeds_to_decide = 0;
};

// `row` is compared with a baseline; `family` is Comparison's. Pure.
Decision Decide(const ComparisonRow& row, Better better, size_t family);

struct Verdict {
  VerdictOutcome outcome = VerdictOutcome::kInconclusive;
  std::string text;  // one sentence
  // Seeds that would decide an inconclusive row, were its mean and spread to stay as they are, or
  // without a spread those that it takes at least; overall the most that a row needs. 0: decided,
  // or not to be foretold (the sentence says why).
  size_t seeds_to_decide = 0;
};

// About `comparison.rows[row]`, which is compared with a baseline. Better or worse where the
// interval of the paired difference leaves out 0, unless runs diverged the other way; where too few
// pairs converged for that, by the wins over all pairs (a diverged run loses; exact sign test at
// kAlpha). Of a metric of which neither is better, higher or lower by the interval alone. An
// inconclusive row is never called equal. Neither while a run of the row or of its baseline has not
// ended, nor where they are scored on different data.
Verdict RowVerdict(const Comparison& comparison, size_t row);

// About all rows that are compared; preliminary while any run of the comparison has not ended.
Verdict OverallVerdict(const Comparison& comparison);

// "preliminary, 68 of 96 runs"; "" where all runs have ended.
std::string PreliminaryText(const Comparison& comparison);

// What to know of baselines that are chosen by what is scored: rows are compared within each
// setting of some axes. "" where there are none.
std::string WithinNote(const Comparison& comparison);

// What the same rows would have said at one shared combination of tuned values (the reference
// block), and whose difference is mostly due to it, of rows that have a verdict; "" where nothing
// is tuned.
std::string MatchedNote(const Comparison& comparison);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_
