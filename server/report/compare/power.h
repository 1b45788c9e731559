// How many seeds it takes, and what the seeds that there are can find: the power of the sign-flip
// test in a Holm family, by that of the paired t-test at the level that flipping signs can reach.
// Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_POWER_H_
#define ABLATE_SERVER_REPORT_COMPARE_POWER_H_

#include <cstddef>

#include "server/report/compare/statistics.h"

namespace ablate::report {

inline constexpr double kPower = 0.8;  // that experiments are planned for

// P(established) of a difference whose mean is `effect` standard deviations of the differences, on
// n
// >= 2 pairs in a family of m >= 1 rows: P(|T'| >= t) of the noncentral t with n−1 degrees of
// freedom and noncentrality effect·√n (Cohen 1988), t for the largest multiple of 2^(1−n) up to
// kAlpha/m; 0 where that is 0. Holm's later steps ask for less: a bound from below of the rest of
// the family's.
double EstablishingPower(double effect, size_t n, size_t family);

// What more seeds would do, were a difference's mean and spread to stay as they are.
struct SeedsNeeded {
  // The least n with EstablishingPower(effect, n) >= kPower. kBeyondLimit above kMaxSeeds.
  Number estimate;
  // The same of the ends of the 80 % interval of the effect (noncentral t): how far off the
  // estimate may be. kBeyondLimit likewise, of `high` also where the effect may be 0.
  Number low, high;

  // Whether there is an effect to tell it by.
  bool known() const { return estimate.defined() || estimate.undefined == Undefined::kBeyondLimit; }
};

// `effect` is seen on n >= 2 pairs. Undefined: `effect`'s reason.
SeedsNeeded FindSeedsNeeded(const Number& effect, size_t n, size_t family);

// The effect that n pairs establish with kPower. Undefined: kTooFewPairs where n pairs can't
// establish anything in a family of that size.
Number LeastDetectableEffect(size_t n, size_t family);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_POWER_H_
