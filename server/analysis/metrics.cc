#include "server/analysis/metrics.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace ablate::analysis {

std::optional<double> ValueAt(const Points& points, uint32_t step) {
  const auto found = std::lower_bound(points.steps.begin(), points.steps.end(), step);
  if (found == points.steps.end() || *found != step) return std::nullopt;
  return points.values[static_cast<size_t>(found - points.steps.begin())];
}

absl::StatusOr<v1::Analysis> ReadAnalysis(const std::string& id, const std::string& bytes) {
  v1::Analysis analysis;
  if (analysis.ParseFromString(bytes)) return analysis;
  return absl::DataLossError(absl::StrCat("stored analysis ", id, " can't be read"));
}

absl::StatusOr<AnalysisMetrics> AnalysisMetrics::Load(storage::Store* store,
                                                      const std::string& experiment,
                                                      const std::vector<std::string>& keys) {
  std::set<std::string> labels;
  for (const std::string& key : keys) labels.insert(key.substr(0, key.find('/')));
  labels.erase("");  // "" isn't an analysis's label; the store would take it for all labels
  if (keys.empty()) labels = {""};
  AnalysisMetrics metrics;
  for (const std::string& label : labels) {
    ASSIGN_OR_RETURN(const auto labelled, store->LabelledAnalyses(experiment, label));
    if (absl::Status added = metrics.Add(labelled); !added.ok()) return added;
  }
  return metrics;
}

// They come in order of step. If a run has several for one step, such as of earlier checkpoints of
// a range, the newest counts, which comes last.
absl::Status AnalysisMetrics::Add(const std::vector<storage::LabelledAnalysis>& labelled) {
  const auto is_replaced = [&](size_t i) {
    if (i + 1 == labelled.size()) return false;
    const storage::LabelledAnalysis &one = labelled[i], &next = labelled[i + 1];
    return one.label == next.label && one.subject.run == next.subject.run &&
           one.subject.step == next.subject.step;
  };
  for (size_t i = 0; i < labelled.size(); ++i) {
    if (is_replaced(i)) continue;
    const storage::LabelledAnalysis& one = labelled[i];
    ASSIGN_OR_RETURN(const auto result, ReadAnalysis(one.id, one.result));
    for (const auto& [name, number] : result.numbers()) {
      if (!number.has_value()) continue;
      Points& points = points_[absl::StrCat(one.label, "/", name)][one.subject.run];
      points.steps.push_back(one.subject.step);
      points.values.push_back(number.value());
    }
  }
  return absl::OkStatus();
}

void AnalysisMetrics::Merge(const AnalysisMetrics& other) {
  for (const auto& [key, runs] : other.points_) points_[key].insert(runs.begin(), runs.end());
}

std::vector<std::pair<std::string, uint64_t>> AnalysisMetrics::Keys() const {
  std::vector<std::pair<std::string, uint64_t>> keys;
  for (const auto& [key, runs] : points_) {
    uint64_t count = 0;
    for (const auto& [run, points] : runs) count += points.steps.size();
    keys.emplace_back(key, count);
  }
  return keys;
}

std::vector<std::string> AnalysisMetrics::KeysOf(const std::string& run) const {
  std::vector<std::string> keys;
  for (const auto& [key, runs] : points_) {
    if (runs.count(run) > 0) keys.push_back(key);
  }
  return keys;
}

const Points* AnalysisMetrics::Find(const std::string& run, const std::string& key) const {
  const auto runs = points_.find(key);
  if (runs == points_.end()) return nullptr;
  const auto points = runs->second.find(run);
  return points == runs->second.end() ? nullptr : &points->second;
}

}  // namespace ablate::analysis
