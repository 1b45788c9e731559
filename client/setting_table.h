// Rows per combination of settings: their labels, and what their runs came to.
#ifndef ABLATE_CLIENT_SETTING_TABLE_H_
#define ABLATE_CLIENT_SETTING_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ablate/v1/run.pb.h"
#include "ablate/v1/spec.pb.h"
#include "client/table.h"

namespace ablate::client {

using Labels = std::map<std::string, std::string>;  // axis → label

// An axis's name, by default the last part of its field.
std::string AxisName(const v1::Axis& axis);

// A column per axis, in their order, and the labels of one row in it.
std::vector<Column> LabelColumns(const v1::ExperimentSpec& spec);
std::vector<std::string> LabelRow(const v1::ExperimentSpec& spec, const Labels& labels);

// A metric's summary of a run, or null.
const v1::Summary* FindSummary(const v1::RunRow& row, const std::string& key);

// What the cells of one combination came to.
struct SettingResult {
  Labels labels;
  uint32_t diverged = 0;
  uint32_t failed = 0;
  uint32_t open = 0;  // queued, training or cancelled
  uint32_t n = 0;     // cells that the mean is over: DONE ones with a last value
  double mean = 0;    // of the metric's last values
};

// In the order in which the combinations first appear.
std::vector<SettingResult> SettingResults(const v1::ListRunsResponse& runs, const std::string& key);

// A line per combination: labels, n, diverged, the mean of the metric's last value.
std::string SettingTable(const v1::ExperimentSpec& spec, const std::vector<SettingResult>& results,
                         const std::string& key, int width);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SETTING_TABLE_H_
