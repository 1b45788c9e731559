#include "server/engine/analyze/representations.h"

#include "absl/strings/str_cat.h"

namespace ablate::engine {

Representations::Representations(const std::vector<std::string>& sites, const Material& material)
    : material_(material) {
  for (const SubjectModel& subject : material.subjects) {
    sites_.push_back(SitesOr(sites, subject.config.model));
  }
  const std::vector<at::Tensor> rows = Rows(0);
  for (size_t subject = 0; subject < sites_.size(); ++subject) {
    for (const std::string& site : sites_[subject]) {
      const at::Tensor& of = rows[all_.size()];
      all_.push_back({subject, site, of.size(1)});
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
    labels.push_back(sites_.size() == 1 ? of.site
                                        : absl::StrCat("subject.", of.subject, ".", of.site));
  }
  return labels;
}

std::string Representations::PairName(size_t first, size_t second) const {
  const Representation &a = all_[first], &b = all_[second];
  if (first == second) return "";
  if (sites_.size() == 1) return absl::StrCat("cka/", a.site, "/", b.site);
  if (a.site != b.site) return "";
  return absl::StrCat("cka/", a.site, "/subject.", a.subject, "/subject.", b.subject);
}

std::vector<at::Tensor> Representations::Rows(int64_t batch) const {
  const TokenBatch& read = material_.Batch(batch);
  std::vector<at::Tensor> all;
  for (size_t subject = 0; subject < sites_.size(); ++subject) {
    for (at::Tensor& rows :
         CaptureRows(material_, material_.subjects[subject], read, sites_[subject])) {
      all.push_back(std::move(rows));
    }
  }
  return all;
}

}  // namespace ablate::engine
