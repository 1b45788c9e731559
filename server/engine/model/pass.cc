#include "server/engine/model/pass.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/layout.h"

namespace ablate::engine {
namespace {

// Whether a model has a site, which need not be in every block.
bool HasSite(const ModelConfig& model, Site site) {
  const bool sandwich = model.norm.placement == NormPlacement::kSandwich;
  switch (site) {
    case Site::kAttentionInput:
    case Site::kAttentionScores:
    case Site::kAttentionWeights:
    case Site::kAttentionHeads:
    case Site::kAttentionOutput:
      return Attends(model);
    case Site::kAttentionNormInput:
    case Site::kAttentionNormOutput:
      return HasAttentionNorm(model);
    case Site::kAttentionPostNormInput:
    case Site::kAttentionPostNormOutput:
      return HasAttentionNorm(model) && sandwich;
    case Site::kFeedForwardNormInput:
    case Site::kFeedForwardNormOutput:
      return HasFeedForwardNorm(model);
    case Site::kFeedForwardPostNormInput:
    case Site::kFeedForwardPostNormOutput:
      return HasFeedForwardNorm(model) && sandwich;
    case Site::kFinalNormInput:
    case Site::kFinalNormOutput:
      return model.norm.final;
    case Site::kEmbedding:
    case Site::kFeedForwardInput:
    case Site::kFeedForwardHidden:
    case Site::kFeedForwardOutput:
    case Site::kBlockOutput:
    case Site::kHeadInput:
    case Site::kLogits:
      break;
  }
  return true;
}

// Calls `visit(name, site, block)` for every site of the model.
template <typename Visit>
void VisitSites(const ModelConfig& model, const Visit& visit) {
  for (int block = 0; block < model.layers; ++block) {
    for (const SiteInfo& info : kSites) {
      if (!HasSite(model, info.site)) continue;
      if (info.in_block || block == 0) visit(SiteName(info.site, block), info.site, block);
    }
  }
}

}  // namespace

std::vector<std::string> SiteNames(const ModelConfig& model) {
  std::vector<std::string> names;
  VisitSites(model, [&](std::string name, Site, int) { names.push_back(std::move(name)); });
  return names;
}

Tap Observe(std::function<void(const at::Tensor&)> observer) {
  return [observer = std::move(observer)](const at::Tensor& x) {
    observer(x);
    return x;
  };
}

Tap Replace(at::Tensor value) {
  return [value = std::move(value)](const at::Tensor&) { return value; };
}

Tap Add(at::Tensor value) {
  return [value = std::move(value)](const at::Tensor& x) { return x + value; };
}

absl::StatusOr<Taps> Taps::Make(const ModelConfig& model,
                                std::vector<std::pair<std::string, Tap>> taps) {
  std::map<std::string, std::pair<Site, int>> sites;
  VisitSites(model, [&](std::string name, Site site, int block) {
    sites.emplace(std::move(name), std::pair(site, block));
  });
  Taps made;
  for (std::pair<std::string, Tap>& tap : taps) {
    const auto found = sites.find(tap.first);
    if (found == sites.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "site: '", tap.first, "' is unknown; allowed: ", absl::StrJoin(SiteNames(model), ", ")));
    }
    made.taps_[found->second].push_back(std::move(tap.second));
  }
  return made;
}

at::Tensor Taps::Apply(Site site, int block, const at::Tensor& x) const {
  const auto found = taps_.find({site, block});
  if (found == taps_.end()) return x;
  at::Tensor result = x;
  for (const Tap& tap : found->second) {
    result = tap(result);
    TORCH_CHECK(result.sizes() == x.sizes() && result.scalar_type() == x.scalar_type(),
                "a tap gave ", result.sizes(), " in place of ", x.sizes());
  }
  return result;
}

}  // namespace ablate::engine
