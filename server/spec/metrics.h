// Which metrics runs record, and what of a spec it takes.
#ifndef ABLATE_SERVER_SPEC_METRICS_H_
#define ABLATE_SERVER_SPEC_METRICS_H_

#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::spec {

// Those that have one name; such as gradient/block.3 exist beside them.
const std::vector<std::string>& Metrics();

bool IsMetric(absl::string_view key);

// All there are, as a sentence lists them.
std::string MetricNames();

// What a run of this resolved spec lacks to record a metric, such as "training.ema above 0"; empty
// if it records it.
std::string SettingLackedFor(absl::string_view key, const v1::BaseSpec& spec);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_METRICS_H_
