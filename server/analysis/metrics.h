// Turns headline numbers of analyses into metrics of the experiment that labelled them: the key is
// LABEL/NUMBER, the step is the checkpoint's.
#ifndef ABLATE_SERVER_ANALYSIS_METRICS_H_
#define ABLATE_SERVER_ANALYSIS_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace ablate::analysis {

// A metric's points: steps in ascending order, and as many values.
struct Points {
  std::vector<uint32_t> steps;
  std::vector<double> values;
};

// Returns the value at a step; nothing if there is none.
std::optional<double> ValueAt(const Points& points, uint32_t step);

// Parses an analysis's stored bytes: its request or its result. DATA_LOSS if they can't be read.
absl::StatusOr<v1::Analysis> ReadAnalysis(const std::string& id, const std::string& bytes);

// Holds the analyses' metrics of an experiment. Not changed once loaded: safe from any thread.
class AnalysisMetrics {
 public:
  // Loads the metrics of an experiment's DONE runs, for the labels that `keys` begin with, or all
  // labels if `keys` is empty. Memory grows with them. A default object has none. Blocks on the
  // store.
  static absl::StatusOr<AnalysisMetrics> Load(storage::Store* store, const std::string& experiment,
                                              const std::vector<std::string>& keys = {});
  AnalysisMetrics() = default;

  // Adds another experiment's metrics; if both have a key of a run, this object's points stay.
  void Merge(const AnalysisMetrics& other);

  // Returns all keys in ascending order, each with its number of points over all runs.
  std::vector<std::pair<std::string, uint64_t>> Keys() const;
  bool Has(const std::string& key) const { return points_.count(key) > 0; }
  // Returns the keys of a run in ascending order.
  std::vector<std::string> KeysOf(const std::string& run) const;
  // Returns the points; null if the run has none. Undefined numbers aren't points.
  const Points* Find(const std::string& run, const std::string& key) const;

 private:
  // Adds stored analyses; DATA_LOSS if one can't be read.
  absl::Status Add(const std::vector<storage::LabelledAnalysis>& labelled);

  std::map<std::string, std::map<std::string, Points>> points_;  // run → key → points
};

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_METRICS_H_
