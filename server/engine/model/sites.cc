#include "server/engine/model/sites.h"

#include <utility>

#include "server/engine/layout.h"

namespace ablate::engine {
namespace {

// Returns true if a model has a site, not necessarily in every block.
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

}  // namespace

std::vector<SitePlace> SitesOf(const ModelConfig& model) {
  std::vector<SitePlace> places;
  for (int block = 0; block < model.layers; ++block) {
    for (const SiteInfo& info : kSites) {
      if (!HasSite(model, info.site)) continue;
      if (info.in_block || block == 0) {
        places.push_back({SiteName(info.site, block), info.site, block});
      }
    }
  }
  return places;
}

std::vector<std::string> SiteNames(const ModelConfig& model) {
  std::vector<std::string> names;
  for (SitePlace& place : SitesOf(model)) names.push_back(std::move(place.name));
  return names;
}

}  // namespace ablate::engine
