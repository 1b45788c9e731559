#include "server/engine/analyze/representations.h"

#include "absl/strings/str_cat.h"

namespace ablate::engine {

Representations::Representations(const std::vector<std::string>& hook_points,
                                 const AnalysisContext& analysis) {
  for (const SubjectModel& subject : analysis.subjects) {
    const size_t number = subjects_.size();
    const CapturedBatches& captured =
        subjects_.emplace_back(analysis, subject, HookPointsOr(hook_points, subject.config.model));
    const std::vector<at::Tensor> rows = captured.FirstRows();
    for (size_t i = 0; i < rows.size(); ++i) {
      all_.push_back({number, captured.hook_points()[i], rows[i].size(1)});
      first_means_.push_back(rows[i].mean(0));
    }
  }
}

std::vector<int64_t> Representations::Features() const {
  std::vector<int64_t> features;
  for (const Representation& of : all_) features.push_back(of.features);
  return features;
}

std::vector<std::string> Representations::Labels() const {
  std::vector<std::string> labels;
  for (const Representation& of : all_) {
    labels.push_back(subjects_.size() == 1
                         ? of.hook_point
                         : absl::StrCat("subject.", of.subject, ".", of.hook_point));
  }
  return labels;
}

std::string Representations::PairName(size_t first, size_t second) const {
  const Representation &a = all_[first], &b = all_[second];
  if (first == second) return "";
  if (subjects_.size() == 1) return absl::StrCat("cka/", a.hook_point, "/", b.hook_point);
  if (a.hook_point != b.hook_point) return "";
  return absl::StrCat("cka/", a.hook_point, "/subject.", a.subject, "/subject.", b.subject);
}

std::vector<at::Tensor> Representations::Rows(int64_t batch) {
  std::vector<at::Tensor> all;
  for (CapturedBatches& subject : subjects_) {
    for (at::Tensor& rows : subject.TakeRows(batch)) all.push_back(std::move(rows));
  }
  return all;
}

}  // namespace ablate::engine
