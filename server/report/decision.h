// Which way a row of a comparison goes, and on what ground: the logic behind the verdict's
// sentences.
#ifndef ABLATE_SERVER_REPORT_DECISION_H_
#define ABLATE_SERVER_REPORT_DECISION_H_

#include <cstddef>

#include "server/report/comparison.h"
#include "server/report/verdict.h"

namespace ablate::report {

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
  int toward =
      0;  // +1 if the row is the better one where both converge, -1 if the worse, 0 undecided
  // As Verdict's; kOpen: pairs needed, scaled up by the share of pairs that converge.
  size_t seeds_to_decide = 0;
};

// `row` is compared with a baseline; `family` is Comparison's. Pure.
Decision Decide(const ComparisonRow& row, Better better, size_t family);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_DECISION_H_
