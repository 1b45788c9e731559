// Headline numbers of analyses as metrics of the experiment that has given them a label: the key is
// LABEL/NUMBER, the step that of the checkpoint.
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

// Ascending steps, and as many values.
struct Points {
  std::vector<uint32_t> steps;
  std::vector<double> values;
};

// The value at a step; nothing if there is none.
std::optional<double> ValueAt(const Points& points, uint32_t step);

// Of an analysis's stored bytes what was asked, or what it gave. DATA_LOSS if they can't be read.
absl::StatusOr<v1::Analysis> ReadAnalysis(const std::string& id, const std::string& bytes);

// Not changed once loaded: safe from any thread.
class AnalysisMetrics {
 public:
  // Those of an experiment's runs that are DONE, of the labels that `keys` begin with or, where
  // there is no key, of all; memory grows with them. An empty one has none. Blocks on the store.
  static absl::StatusOr<AnalysisMetrics> Load(storage::Store* store, const std::string& experiment,
                                              const std::vector<std::string>& keys = {});
  AnalysisMetrics() = default;

  // Adds those of another experiment; of a key that a run has in both, these stay.
  void Merge(const AnalysisMetrics& other);

  // Ascending, with their points over all runs.
  std::vector<std::pair<std::string, uint64_t>> Keys() const;
  bool Has(const std::string& key) const { return points_.count(key) > 0; }
  // Those that a run has, ascending.
  std::vector<std::string> KeysOf(const std::string& run) const;
  // Null if it has none. A number that is undefined is no point.
  const Points* Find(const std::string& run, const std::string& key) const;

 private:
  // DATA_LOSS if one can't be read.
  absl::Status Add(const std::vector<storage::LabelledAnalysis>& labelled);

  std::map<std::string, std::map<std::string, Points>> points_;  // by key, by run
};

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_METRICS_H_
