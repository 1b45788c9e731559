// What metrics are called in sentences and figures. Pure functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_METRIC_NAMES_H_
#define ABLATE_SERVER_REPORT_COMPARE_METRIC_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ablate::report {

struct MetricName {
  std::string text;  // in the middle of a sentence: "held-out loss"
  std::string unit;  // "nats"; may be empty
};

// A key that is not known is its own name; "gradient norm at block.3" of `gradient/block.3`.
MetricName NameOfMetric(absl::string_view key);

// Of a family of metrics by block: "gradient norm" of `gradient` and of an analysis's
// `flow/gradient`. One that is not known is its own name.
MetricName NameOfFamily(absl::string_view family);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_METRIC_NAMES_H_
