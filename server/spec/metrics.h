// Which metrics runs record, and what of a spec it takes.
#ifndef ABLATE_SERVER_SPEC_METRICS_H_
#define ABLATE_SERVER_SPEC_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::spec {

// Those that have one name; such as gradient/block.3 exist beside them.
const std::vector<std::string>& Metrics();

// All there are, as a sentence lists them.
std::string MetricNames();

// What a run's spec must ask for so that the run records a metric.
struct MetricNeeds {
  bool average = false;                                // of the parameters
  v1::Record::Value record = v1::Record::unspecified;  // unspecified: none
  uint32_t blocks = 0;                                 // that its model must have

  bool any() const { return average || record != v1::Record::unspecified; }
};

// Absent if `key` is no metric.
std::optional<MetricNeeds> FindMetric(absl::string_view key);

// The field below BaseSpec without which a run does not record a metric, and what it has to be,
// such as "training.ema above 0". Empty if it is recorded.
struct LackedSetting {
  std::string path;
  std::string expected;
};

LackedSetting SettingLacked(const MetricNeeds& needs, const v1::BaseSpec& spec);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_METRICS_H_
