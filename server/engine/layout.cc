// Lists a model's parameters in buffer order and gives each its offset.
#include "server/engine/layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ablate::engine {
namespace {

// Appends parameters one behind the other.
class LayoutBuilder {
 public:
  void Add(std::string name, std::vector<int64_t> shape) {
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    layout_.parameters.push_back({std::move(name), std::move(shape), layout_.size, size});
    layout_.size += size;
  }

  void AddLinear(absl::string_view name, int64_t out, int64_t in, bool bias) {
    Add(absl::StrCat(name, ".weight"), {out, in});
    if (bias) Add(absl::StrCat(name, ".bias"), {out});
  }

  void AddNorm(absl::string_view name, const ModelConfig& config) {
    if (config.norm.gain) Add(absl::StrCat(name, ".weight"), {config.width});
    if (config.norm.bias) Add(absl::StrCat(name, ".bias"), {config.width});
  }

  ParameterLayout Take() { return std::move(layout_); }

 private:
  ParameterLayout layout_;
};

void AddBlock(const ModelConfig& config, int index, LayoutBuilder& builder) {
  const std::string block = absl::StrCat("block.", index);
  const int64_t width = config.width;
  const bool placed = config.norm.placement != NormPlacement::kNone;
  if (placed && config.norm.attention) {
    builder.AddNorm(absl::StrCat(block, ".attention.norm"), config);
  }
  builder.AddLinear(absl::StrCat(block, ".attention.qkv"), 3 * width, width, config.bias);
  builder.AddLinear(absl::StrCat(block, ".attention.projection"), width, width, config.bias);
  if (placed && config.norm.feed_forward) {
    builder.AddNorm(absl::StrCat(block, ".feed_forward.norm"), config);
  }
  builder.AddLinear(absl::StrCat(block, ".feed_forward.up"), config.hidden, width, config.bias);
  builder.AddLinear(absl::StrCat(block, ".feed_forward.down"), width, config.hidden, config.bias);
}

}  // namespace

ParameterLayout MakeLayout(const ModelConfig& config) {
  LayoutBuilder builder;
  builder.Add("token_embedding.weight", {config.vocabulary, config.width});
  if (config.positions == Positions::kLearned) {
    builder.Add("position_embedding.weight", {config.context, config.width});
  }
  for (int i = 0; i < config.layers; ++i) AddBlock(config, i, builder);
  if (config.norm.final) builder.AddNorm("final_norm", config);
  if (!config.tied_head) builder.Add("head.weight", {config.vocabulary, config.width});
  if (config.head_bias) builder.Add("head.bias", {config.vocabulary});
  return builder.Take();
}

std::vector<std::string> OptimizerSlots(OptimizerKind kind) {
  if (kind == OptimizerKind::kSgd) return {"optimizer.momentum"};
  return {"optimizer.first_moment", "optimizer.second_moment"};
}

}  // namespace ablate::engine
