// Bootstrap intervals of a statistic of one sample: percentile and BCa.
#ifndef ABLATE_SERVER_REPORT_BOOTSTRAP_H_
#define ABLATE_SERVER_REPORT_BOOTSTRAP_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "server/report/number.h"
#include "server/report/statistics.h"

namespace ablate::report {

// A statistic of at least one value; pure.
using Statistic = absl::FunctionRef<Number(absl::Span<const double>)>;

struct BootstrapOptions {
  size_t resamples = 10000;
  uint64_t seed = 0;
  double confidence = kConfidence;
};

struct BootstrapResult {
  Interval percentile;  // quantiles (type 7) of the resampled statistic
  // Bias-corrected and accelerated; beside percentile's reasons kNonFinite where all resamples lie
  // on one side.
  Interval bca;
  Number bias;          // z0; resamples within kTie of the estimate count half
  Number acceleration;  // by the jackknife
};

// Undefined: kTooFewPairs (below 2 values), kZeroVariance (as StandardDeviation), kNonFinite.
BootstrapResult Bootstrap(absl::Span<const double> sample, Statistic statistic = Mean,
                          const BootstrapOptions& options = {});

// The same from given draws: `indices` are [resamples, n], each below n = sample.size().
BootstrapResult BootstrapFromIndices(absl::Span<const double> sample,
                                     absl::Span<const uint32_t> indices, Statistic statistic = Mean,
                                     double confidence = kConfidence);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_BOOTSTRAP_H_
