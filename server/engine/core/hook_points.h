// Names the hook points (`HookPoint`) of a forward pass. Hooks attach to them, and dropout counts
// elements by them. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_HOOK_POINTS_H_
#define ABLATE_SERVER_ENGINE_CORE_HOOK_POINTS_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"

namespace ablate::engine {

// The hook points. M is the number of positions that the rest of the pass computes: all, or each
// row's last.
enum class HookPoint {
  kEmbeddingNormInput,         // tokens and positions, [B·T, d]
  kEmbeddingNormOutput,        // the same
  kEmbedding,                  // after the norm of embeddings and dropout, [B·T, d]
  kAttentionNormInput,         // [B·T, d], or [M, d] if the norm follows its sublayer
  kAttentionNormOutput,        // the same
  kAttentionInput,             // after the norm before it, [B·T, d]
  kAttentionScores,            // of every head, -inf where masked, [B·H, S, T]
  kAttentionWeights,           // of every head, before dropout, [B·H, S, T]
  kAttentionHeads,             // the heads' outputs, concatenated, [M, d]
  kAttentionOutput,            // before the residual addition, [M, d]
  kAttentionPostNormInput,     // [M, d]
  kAttentionPostNormOutput,    // [M, d]
  kFeedForwardNormInput,       // [M, d]
  kFeedForwardNormOutput,      // [M, d]
  kFeedForwardInput,           // after the norm before it, [M, d]
  kFeedForwardHidden,          // after the activation, and a gate's product, [M, h]
  kFeedForwardOutput,          // before the residual addition, [M, d]
  kFeedForwardPostNormInput,   // [M, d]
  kFeedForwardPostNormOutput,  // [M, d]
  kBlockOutput,                // the residual stream, [M, d]
  kFinalNormInput,             // [M, d]
  kFinalNormOutput,            // [M, d]
  kHeadInput,                  // after the final norm, [M, d]
  kLogits,                     // [M, V]
};

// A norm, as the two hook points around it.
struct NormHookPoints {
  HookPoint input;
  HookPoint output;
};

inline constexpr NormHookPoints kAttentionNormHookPoints = {HookPoint::kAttentionNormInput,
                                                            HookPoint::kAttentionNormOutput};
inline constexpr NormHookPoints kAttentionPostNormHookPoints = {
    HookPoint::kAttentionPostNormInput, HookPoint::kAttentionPostNormOutput};
inline constexpr NormHookPoints kFeedForwardNormHookPoints = {HookPoint::kFeedForwardNormInput,
                                                              HookPoint::kFeedForwardNormOutput};
inline constexpr NormHookPoints kFeedForwardPostNormHookPoints = {
    HookPoint::kFeedForwardPostNormInput, HookPoint::kFeedForwardPostNormOutput};
inline constexpr NormHookPoints kEmbeddingNormHookPoints = {HookPoint::kEmbeddingNormInput,
                                                            HookPoint::kEmbeddingNormOutput};
inline constexpr NormHookPoints kFinalNormHookPoints = {HookPoint::kFinalNormInput,
                                                        HookPoint::kFinalNormOutput};

struct HookPointInfo {
  HookPoint hook_point;
  bool in_block;           // true if every block has one
  absl::string_view name;  // inside its block if in_block
};

// All hook points, in the order of a pass with pre-norm. Those of a block are called
// block.{i}.{name}.
inline constexpr HookPointInfo kHookPoints[] = {
    {HookPoint::kEmbeddingNormInput, false, "embedding_norm.input"},
    {HookPoint::kEmbeddingNormOutput, false, "embedding_norm.output"},
    {HookPoint::kEmbedding, false, "embedding"},
    {HookPoint::kAttentionNormInput, true, "attention_norm.input"},
    {HookPoint::kAttentionNormOutput, true, "attention_norm.output"},
    {HookPoint::kAttentionInput, true, "attention.input"},
    {HookPoint::kAttentionScores, true, "attention.scores"},
    {HookPoint::kAttentionWeights, true, "attention.weights"},
    {HookPoint::kAttentionHeads, true, "attention.heads"},
    {HookPoint::kAttentionOutput, true, "attention.output"},
    {HookPoint::kAttentionPostNormInput, true, "attention_post_norm.input"},
    {HookPoint::kAttentionPostNormOutput, true, "attention_post_norm.output"},
    {HookPoint::kFeedForwardNormInput, true, "feed_forward_norm.input"},
    {HookPoint::kFeedForwardNormOutput, true, "feed_forward_norm.output"},
    {HookPoint::kFeedForwardInput, true, "feed_forward.input"},
    {HookPoint::kFeedForwardHidden, true, "feed_forward.hidden"},
    {HookPoint::kFeedForwardOutput, true, "feed_forward.output"},
    {HookPoint::kFeedForwardPostNormInput, true, "feed_forward_post_norm.input"},
    {HookPoint::kFeedForwardPostNormOutput, true, "feed_forward_post_norm.output"},
    {HookPoint::kBlockOutput, true, "output"},
    {HookPoint::kFinalNormInput, false, "final_norm.input"},
    {HookPoint::kFinalNormOutput, false, "final_norm.output"},
    {HookPoint::kHeadInput, false, "head.input"},
    {HookPoint::kLogits, false, "logits"},
};

// Returns a hook point's name; `block` is used only if every block has one.
inline std::string HookPointName(HookPoint hook_point, int block) {
  for (const HookPointInfo& info : kHookPoints) {
    if (info.hook_point != hook_point) continue;
    return info.in_block ? absl::StrCat("block.", block, ".", info.name) : std::string(info.name);
  }
  return "";
}

// A hook point of a model.
struct ModelHookPoint {
  std::string name;
  HookPoint hook_point;
  int block = 0;  // 0 if not in a block
};

// Return all hook points of a model, and their names, block by block.
std::vector<ModelHookPoint> HookPointsOf(const ModelConfig& model);
std::vector<std::string> HookPointNames(const ModelConfig& model);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_HOOK_POINTS_H_
