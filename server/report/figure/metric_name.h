// What a metric is called in figures.
#ifndef ABLATE_SERVER_REPORT_FIGURE_METRIC_NAME_H_
#define ABLATE_SERVER_REPORT_FIGURE_METRIC_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ablate::figure {

struct MetricName {
  std::string text;  // in the middle of a sentence: "held-out loss"
  std::string unit;  // "nats"; may be empty
};

// A key that is not known is its own name.
MetricName NameOf(absl::string_view key);

// "Held-out loss (nats)": an axis's title.
std::string AxisTitle(const MetricName& name);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_METRIC_NAME_H_
