// Lists the metrics that runs record, and the settings that each needs.
#ifndef ABLATE_SERVER_EXPERIMENT_METRICS_H_
#define ABLATE_SERVER_EXPERIMENT_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::spec {

// Returns the metrics with a single name; families such as gradient/block.3 exist, too.
const std::vector<std::string>& Metrics();

// Returns all names, enumerated for a sentence.
std::string MetricNames();

// The settings that a run's spec needs to record a metric.
struct MetricNeeds {
  bool average = false;                                // EMA weights
  v1::Record::Value record = v1::Record::unspecified;  // unspecified: none
  uint32_t blocks = 0;                                 // least number of blocks

  bool any() const { return average || record != v1::Record::unspecified; }
};

// Returns the needs of a metric; nothing if `key` isn't a metric.
std::optional<MetricNeeds> FindMetric(absl::string_view key);

// The field below BaseSpec that keeps a run from recording a metric, and the value it needs, such
// as "training.ema above 0". Empty if the metric is recorded.
struct LackedSetting {
  std::string path;
  std::string expected;
};

LackedSetting SettingLacked(const MetricNeeds& needs, const v1::BaseSpec& spec);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_METRICS_H_
