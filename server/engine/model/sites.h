// Places of a pass that have a name: it can be tapped there, and dropout counts by them.
// Torch-free.
#ifndef ABLATE_SERVER_ENGINE_MODEL_SITES_H_
#define ABLATE_SERVER_ENGINE_MODEL_SITES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ablate::engine {

// M positions are those that a block goes on with: all, or each row's last.
enum class Site {
  kEmbedding,          // tokens and positions, [R, B·T, d]
  kAttentionInput,     // after the norm before it, [R, B·T, d]
  kAttentionWeights,   // of every head, before dropout, [R·B·H, S, T]
  kAttentionOutput,    // before it meets the residual stream, [R, M, d]
  kFeedForwardInput,   // after the norm before it, [R, M, d]
  kFeedForwardHidden,  // after the activation, and SwiGLU's product, [R, M, h]
  kFeedForwardOutput,  // before it meets the residual stream, [R, M, d]
  kBlockOutput,        // the residual stream, [R, M, d]
  kHeadInput,          // after the final norm, [R, M, d]
  kLogits,             // [R, M, V]
};

struct SiteInfo {
  Site site;
  bool in_block;           // whether every block has one
  absl::string_view name;  // within its block then
};

// Every site, in the order of the pass. A block's sites are called block.{i}.{name}.
inline constexpr SiteInfo kSites[] = {
    {Site::kEmbedding, false, "embedding"},
    {Site::kAttentionInput, true, "attention.input"},
    {Site::kAttentionWeights, true, "attention.weights"},
    {Site::kAttentionOutput, true, "attention.output"},
    {Site::kFeedForwardInput, true, "feed_forward.input"},
    {Site::kFeedForwardHidden, true, "feed_forward.hidden"},
    {Site::kFeedForwardOutput, true, "feed_forward.output"},
    {Site::kBlockOutput, true, "output"},
    {Site::kHeadInput, false, "head.input"},
    {Site::kLogits, false, "logits"},
};

// A site's name; `block` counts where every block has one.
inline std::string SiteName(Site site, int block) {
  for (const SiteInfo& info : kSites) {
    if (info.site != site) continue;
    return info.in_block ? absl::StrCat("block.", block, ".", info.name) : std::string(info.name);
  }
  return "";
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_SITES_H_
