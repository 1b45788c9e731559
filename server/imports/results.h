// Collects results that were trained elsewhere from the messages of a client.
#ifndef ABLATE_SERVER_IMPORTS_RESULTS_H_
#define ABLATE_SERVER_IMPORTS_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ablate/v1/import.pb.h"
#include "absl/status/status.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::imports {

inline constexpr size_t kMaxPoints = 30'000'000;  // of all series: 360 MB
inline constexpr size_t kMaxRuns = 100'000;
inline constexpr size_t kMaxSettings = 2'000;                 // of a run
inline constexpr size_t kMaxSeries = 2'000;                   // likewise
inline constexpr size_t kMaxSettingBytes = size_t{64} << 20;  // of all runs, values and keys
inline constexpr size_t kMaxSettingCells = 20'000'000;        // distinct keys times runs
inline constexpr size_t kMaxTextBytes = size_t{256} << 20;    // of items, groups and metrics

struct Series {
  std::vector<uint32_t> steps;  // strictly ascending; none if there are items
  std::vector<double> values;
  std::vector<std::string> items;   // one per value, distinct; or none
  std::vector<std::string> groups;  // one per item; or none
};

struct Run {
  std::string name;
  std::map<std::string, google::protobuf::Value> settings;  // lists and groups as JSON texts
  v1::ImportedState::Value state = v1::ImportedState::finished;
  int64_t start_time = 0, end_time = 0;  // microseconds since the Unix epoch; 0: unknown
  std::map<std::string, Series> series;  // none is empty
};

class Results {
 public:
  // Adds the runs of a message. A run whose name is known continues that one. INVALID_ARGUMENT
  // names the run and its field; RESOURCE_EXHAUSTED beyond a limit.
  absl::Status Add(const v1::ImportRequest& request);

  // The runs in the order of their first messages.
  std::vector<Run>& runs() { return runs_; }
  const std::vector<Run>& runs() const { return runs_; }

 private:
  absl::Status AddRun(const v1::ImportedRun& message);
  absl::Status AddSettings(const v1::ImportedRun& message, Run* run);
  absl::Status AddSeries(const v1::ImportedSeries& message, Run* run);

  std::vector<Run> runs_;
  std::unordered_map<std::string, size_t> places_;  // in runs_, by name
  size_t points_ = 0;
  std::set<std::string> keys_;  // of all runs' settings
  size_t setting_bytes_ = 0, text_bytes_ = 0;
};

}  // namespace ablate::imports

#endif  // ABLATE_SERVER_IMPORTS_RESULTS_H_
