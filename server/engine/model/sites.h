// Names the hook points (`Site`) of a forward pass. Hooks attach to them, and dropout counts
// elements by them. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_MODEL_SITES_H_
#define ABLATE_SERVER_ENGINE_MODEL_SITES_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"

namespace ablate::engine {

// The hook points. M is the number of positions that the rest of the pass computes: all, or each
// row's last.
enum class Site {
  kEmbedding,                  // tokens and positions, [B·T, d]
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
  kFeedForwardHidden,          // after the activation, and SwiGLU's product, [M, h]
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
struct NormSite {
  Site input;
  Site output;
};

inline constexpr NormSite kAttentionNormSite = {Site::kAttentionNormInput,
                                                Site::kAttentionNormOutput};
inline constexpr NormSite kAttentionPostNormSite = {Site::kAttentionPostNormInput,
                                                    Site::kAttentionPostNormOutput};
inline constexpr NormSite kFeedForwardNormSite = {Site::kFeedForwardNormInput,
                                                  Site::kFeedForwardNormOutput};
inline constexpr NormSite kFeedForwardPostNormSite = {Site::kFeedForwardPostNormInput,
                                                      Site::kFeedForwardPostNormOutput};
inline constexpr NormSite kFinalNormSite = {Site::kFinalNormInput, Site::kFinalNormOutput};

struct SiteInfo {
  Site site;
  bool in_block;           // true if every block has one
  absl::string_view name;  // inside its block if in_block
};

// All hook points, in the order of a pass with pre-norm. Those of a block are called
// block.{i}.{name}.
inline constexpr SiteInfo kSites[] = {
    {Site::kEmbedding, false, "embedding"},
    {Site::kAttentionNormInput, true, "attention_norm.input"},
    {Site::kAttentionNormOutput, true, "attention_norm.output"},
    {Site::kAttentionInput, true, "attention.input"},
    {Site::kAttentionScores, true, "attention.scores"},
    {Site::kAttentionWeights, true, "attention.weights"},
    {Site::kAttentionHeads, true, "attention.heads"},
    {Site::kAttentionOutput, true, "attention.output"},
    {Site::kAttentionPostNormInput, true, "attention_post_norm.input"},
    {Site::kAttentionPostNormOutput, true, "attention_post_norm.output"},
    {Site::kFeedForwardNormInput, true, "feed_forward_norm.input"},
    {Site::kFeedForwardNormOutput, true, "feed_forward_norm.output"},
    {Site::kFeedForwardInput, true, "feed_forward.input"},
    {Site::kFeedForwardHidden, true, "feed_forward.hidden"},
    {Site::kFeedForwardOutput, true, "feed_forward.output"},
    {Site::kFeedForwardPostNormInput, true, "feed_forward_post_norm.input"},
    {Site::kFeedForwardPostNormOutput, true, "feed_forward_post_norm.output"},
    {Site::kBlockOutput, true, "output"},
    {Site::kFinalNormInput, false, "final_norm.input"},
    {Site::kFinalNormOutput, false, "final_norm.output"},
    {Site::kHeadInput, false, "head.input"},
    {Site::kLogits, false, "logits"},
};

// Returns a hook point's name; `block` is used only if every block has one.
inline std::string SiteName(Site site, int block) {
  for (const SiteInfo& info : kSites) {
    if (info.site != site) continue;
    return info.in_block ? absl::StrCat("block.", block, ".", info.name) : std::string(info.name);
  }
  return "";
}

// A hook point of a model.
struct SitePlace {
  std::string name;
  Site site;
  int block = 0;  // 0 if not in a block
};

// Return all hook points of a model, and their names, block by block.
std::vector<SitePlace> SitesOf(const ModelConfig& model);
std::vector<std::string> SiteNames(const ModelConfig& model);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_SITES_H_
