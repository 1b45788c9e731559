#include "server/engine/analyze/representations.h"

#include "absl/strings/str_cat.h"

namespace ablate::engine {

Representations::Representations(const std::vector<std::string>& hook_points,
                                 const AnalysisContext& analysis)
    : analysis_(analysis) {
  for (const SubjectModel& subject : analysis.subjects) {
    hook_points_.push_back(HookPointsOr(hook_points, subject.config.model));
  }
  const std::vector<at::Tensor> rows = Rows(0);
  for (size_t subject = 0; subject < hook_points_.size(); ++subject) {
    for (const std::string& hook_point : hook_points_[subject]) {
      const at::Tensor& of = rows[all_.size()];
      all_.push_back({subject, hook_point, of.size(1)});
      first_means_.push_back(of.mean(0));
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
    labels.push_back(hook_points_.size() == 1
                         ? of.hook_point
                         : absl::StrCat("subject.", of.subject, ".", of.hook_point));
  }
  return labels;
}

std::string Representations::PairName(size_t first, size_t second) const {
  const Representation &a = all_[first], &b = all_[second];
  if (first == second) return "";
  if (hook_points_.size() == 1) return absl::StrCat("cka/", a.hook_point, "/", b.hook_point);
  if (a.hook_point != b.hook_point) return "";
  return absl::StrCat("cka/", a.hook_point, "/subject.", a.subject, "/subject.", b.subject);
}

std::vector<at::Tensor> Representations::Rows(int64_t batch) const {
  const TokenBatch& read = analysis_.Batch(batch);
  std::vector<at::Tensor> all;
  for (size_t subject = 0; subject < hook_points_.size(); ++subject) {
    for (at::Tensor& rows :
         CaptureRows(analysis_, analysis_.subjects[subject], read, hook_points_[subject])) {
      all.push_back(std::move(rows));
    }
  }
  return all;
}

}  // namespace ablate::engine
