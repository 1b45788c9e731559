// The two-sided sign-flip test of paired differences: would random signs give a sum as far from 0?
#ifndef ABLATE_SERVER_REPORT_SIGN_FLIP_H_
#define ABLATE_SERVER_REPORT_SIGN_FLIP_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "server/report/number.h"

namespace ablate::report {

struct SignFlipOptions {
  size_t exact_up_to = 20;  // pairs; beyond, signs are drawn
  size_t draws = 100000;
  uint64_t seed = 0;
};

struct SignFlipResult {
  Number p;            // undefined: kTooFewPairs (below 2), kNonFinite
  bool exact = false;  // all 2^n sign patterns counted; else (c+1)/(draws+1)
};

// Sums that differ from the observed one by no more than kTie of the larger of it and the largest
// difference count as equal to it, so that rounding cannot split ties. Depends neither on the order
// nor on the signs' naming (p of -d is p of d). Pure, safe from any thread.
SignFlipResult SignFlipTest(absl::Span<const double> differences,
                            const SignFlipOptions& options = {});

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_SIGN_FLIP_H_
