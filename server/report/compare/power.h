// Estimates the power of the sign-flip test in a Holm family: how many seeds are needed, and which
// differences the present seeds detect. Approximated by the paired t-test at the level that the
// sign-flip test can reach. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_POWER_H_
#define ABLATE_SERVER_REPORT_COMPARE_POWER_H_

#include <cstddef>

#include "server/report/compare/statistics.h"

namespace ablate::report {

inline constexpr double kPower = 0.8;  // power that experiments are planned for

// Returns P(established) of a difference whose mean is `effect` standard deviations of the
// differences, on n >= 2 pairs in a family of m >= 1 rows: P(|T'| >= t) of the noncentral t with
// n−1 degrees of freedom and noncentrality effect·√n (Cohen 1988), t for the largest multiple of
// 2^(1−n) up to kAlpha/m; 0 if that is 0. Holm's later steps need less, so for the rest of the
// family this is a lower bound.
double EstablishingPower(double effect, size_t n, size_t family);

// The effect of more seeds, if a difference's mean and spread stay as they are.
struct SeedsNeeded {
  // The least n with EstablishingPower(effect, n) >= kPower. kBeyondLimit above kMaxSeeds.
  Number estimate;
  // The same for the ends of the 80 % interval of the effect (noncentral t): the uncertainty of the
  // estimate. kBeyondLimit likewise; `high` also if the effect may be 0.
  Number low, high;

  // Returns true if there is an effect to estimate it from.
  bool known() const { return estimate.defined() || estimate.undefined == Undefined::kBeyondLimit; }
};

// Estimates the seeds needed for `effect`, observed on n >= 2 pairs. Undefined: `effect`'s reason.
SeedsNeeded FindSeedsNeeded(const Number& effect, size_t n, size_t family);

// Returns the effect that n pairs establish with kPower. Undefined: kTooFewPairs if n pairs can't
// establish anything in a family of that size.
Number LeastDetectableEffect(size_t n, size_t family);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_POWER_H_
