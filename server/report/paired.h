// Two settings compared over the seeds that they share.
#ifndef ABLATE_SERVER_REPORT_PAIRED_H_
#define ABLATE_SERVER_REPORT_PAIRED_H_

#include <cstddef>

#include "absl/types/span.h"
#include "server/report/number.h"

namespace ablate::report {

// Setting minus baseline, over n pairs.
struct PairedStatistics {
  size_t n = 0;
  Number mean, deviation;  // of the differences
  Interval interval;       // t, of the mean, at kConfidence
  Number t, p_t;           // two-sided; n-1 degrees of freedom
  Number p_sign_flip;      // two-sided
  bool exact = false;      // p_sign_flip counts all patterns
  Number effect;           // d_z: mean over deviation of the differences
  Number effect_unbiased;  // d_z times Hedges' factor; needs three pairs
  Number correlation;      // Pearson's, of the two settings over the pairs; needs three
  Interval bca;            // bootstrap, of the mean
};

// `setting` and `baseline` have one length; element i of both is one seed's, all of them finite.
// `resamples` of the bootstrap, 0 to leave it out (bca is then undefined). Undefined numbers:
// kTooFewPairs, kZeroVariance (differences equal up to the rounding of the numbers they come from),
// kNonFinite. Pure, safe from any thread.
PairedStatistics ComparePairs(absl::Span<const double> setting, absl::Span<const double> baseline,
                              size_t resamples = 10000);

// Statistics that do not exist, all for the same reason.
PairedStatistics NoPairs(Undefined reason);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_PAIRED_H_
