// What metrics are called in sentences and figures, and how their values are compared. Pure
// functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_METRIC_NAMES_H_
#define ABLATE_SERVER_REPORT_COMPARE_METRIC_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/report/compare/scale.h"

namespace ablate::report {

struct MetricName {
  std::string text;  // in the middle of a sentence: "held-out loss"
  std::string unit;  // "nats"; may be empty
  std::string per;   // what the metric is a mean over: "token"; may be empty
};

// A key that is not known is its own name; "gradient norm at block.3" of `gradient/block.3`.
MetricName NameOfMetric(absl::string_view key);

// Of a family of metrics by block: "gradient norm" of `gradient` and of an analysis's
// `flow/gradient`. One that is not known is its own name.
MetricName NameOfFamily(absl::string_view family);

// Ratios of norms and the like, which are positive and span decades; differences of all others.
// Known by the key alone, before any value is seen: `train/gradient_norm`, `gradient/block.3`, and
// numbers of analyses by what stands behind their label, as `flow/gradient/block.3`.
Scale ScaleOfMetric(absl::string_view key);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_METRIC_NAMES_H_
