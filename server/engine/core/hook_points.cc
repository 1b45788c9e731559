#include "server/engine/core/hook_points.h"

#include <utility>

#include "server/engine/core/layout.h"

namespace ablate::engine {
namespace {

// Returns true if a model has a hook point, not necessarily in every block.
bool HasHookPoint(const ModelConfig& model, HookPoint hook_point) {
  const bool sandwich = model.norm.placement == NormPlacement::kSandwich;
  switch (hook_point) {
    case HookPoint::kAttentionInput:
    case HookPoint::kAttentionScores:
    case HookPoint::kAttentionWeights:
    case HookPoint::kAttentionHeads:
    case HookPoint::kAttentionOutput:
      return Attends(model);
    case HookPoint::kAttentionNormInput:
    case HookPoint::kAttentionNormOutput:
      return HasAttentionNorm(model);
    case HookPoint::kAttentionPostNormInput:
    case HookPoint::kAttentionPostNormOutput:
      return HasAttentionNorm(model) && sandwich;
    case HookPoint::kFeedForwardNormInput:
    case HookPoint::kFeedForwardNormOutput:
      return HasFeedForwardNorm(model);
    case HookPoint::kFeedForwardPostNormInput:
    case HookPoint::kFeedForwardPostNormOutput:
      return HasFeedForwardNorm(model) && sandwich;
    case HookPoint::kEmbeddingNormInput:
    case HookPoint::kEmbeddingNormOutput:
      return model.embedding_norm;
    case HookPoint::kFinalNormInput:
    case HookPoint::kFinalNormOutput:
      return model.norm.final;
    case HookPoint::kEmbedding:
    case HookPoint::kFeedForwardInput:
    case HookPoint::kFeedForwardHidden:
    case HookPoint::kFeedForwardOutput:
    case HookPoint::kBlockOutput:
    case HookPoint::kHeadInput:
    case HookPoint::kLogits:
      break;
  }
  return true;
}

}  // namespace

std::vector<ModelHookPoint> HookPointsOf(const ModelConfig& model) {
  std::vector<ModelHookPoint> places;
  for (int block = 0; block < model.layers; ++block) {
    for (const HookPointInfo& info : kHookPoints) {
      if (!HasHookPoint(model, info.hook_point)) continue;
      if (info.in_block || block == 0) {
        places.push_back({HookPointName(info.hook_point, block), info.hook_point, block});
      }
    }
  }
  return places;
}

std::vector<std::string> HookPointNames(const ModelConfig& model) {
  std::vector<std::string> names;
  for (ModelHookPoint& place : HookPointsOf(model)) names.push_back(std::move(place.name));
  return names;
}

}  // namespace ablate::engine
