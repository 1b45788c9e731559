#include "server/engine/layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ablate::engine {
namespace {

// Appends parameters one behind the other.
class LayoutBuilder {
 public:
  // The parameters that follow belong to this block; -1: to none.
  void SetBlock(int block) { block_ = block; }

  void Add(absl::string_view name, Module module, ParameterRole role, std::vector<int64_t> shape) {
    ParameterInfo parameter;
    parameter.name = block_ < 0 ? std::string(name) : absl::StrCat("block.", block_, ".", name);
    parameter.shape = std::move(shape);
    parameter.offset = layout_.size;
    parameter.size = 1;
    for (const int64_t extent : parameter.shape) parameter.size *= extent;
    parameter.role = role;
    parameter.module = module;
    parameter.block = block_;
    layout_.size += parameter.size;
    layout_.parameters.push_back(std::move(parameter));
  }

  // A weight or bias of a linear with these fans.
  void AddLinear(absl::string_view name, Module module, ParameterRole role, int64_t out,
                 int64_t in) {
    if (role == ParameterRole::kBias) {
      Add(absl::StrCat(name, ".bias"), module, role, {out});
    } else {
      Add(absl::StrCat(name, ".weight"), module, role, {out, in});
    }
    layout_.parameters.back().fan_in = in;
    layout_.parameters.back().fan_out = out;
  }

  void AddLinear(absl::string_view name, Module module, int64_t out, int64_t in, bool bias) {
    AddLinear(name, module, ParameterRole::kWeight, out, in);
    if (bias) AddLinear(name, module, ParameterRole::kBias, out, in);
  }

  void AddNorm(absl::string_view name, Module module, const ModelConfig& config) {
    if (config.norm.gain) {
      Add(absl::StrCat(name, ".weight"), module, ParameterRole::kGain, {config.width});
    }
    if (config.norm.bias) {
      Add(absl::StrCat(name, ".bias"), module, ParameterRole::kBias, {config.width});
    }
  }

  ParameterLayout Take() { return std::move(layout_); }

 private:
  ParameterLayout layout_;
  int block_ = -1;
};

void AddBlock(const ModelConfig& config, LayoutBuilder& builder) {
  const int64_t width = config.width;
  if (HasAttentionNorm(config.norm)) {
    builder.AddNorm("attention.norm", Module::kAttentionNorm, config);
  }
  builder.AddLinear("attention.qkv", Module::kQkv, 3 * width, width, config.bias);
  builder.AddLinear("attention.projection", Module::kProjection, width, width, config.bias);
  if (HasFeedForwardNorm(config.norm)) {
    builder.AddNorm("feed_forward.norm", Module::kFeedForwardNorm, config);
  }
  builder.AddLinear("feed_forward.up", Module::kUp, config.hidden, width, config.bias);
  builder.AddLinear("feed_forward.down", Module::kDown, width, config.hidden, config.bias);
}

}  // namespace

bool HasAttentionNorm(const NormConfig& config) {
  return config.attention && config.placement != NormPlacement::kNone;
}

bool HasFeedForwardNorm(const NormConfig& config) {
  return config.feed_forward && config.placement != NormPlacement::kNone;
}

ParameterLayout MakeLayout(const ModelConfig& config) {
  LayoutBuilder builder;
  builder.Add("token_embedding.weight", Module::kTokenEmbedding, ParameterRole::kEmbedding,
              {config.vocabulary, config.width});
  if (config.positions == Positions::kLearned) {
    builder.Add("position_embedding.weight", Module::kPositionEmbedding, ParameterRole::kPosition,
                {config.context, config.width});
  }
  for (int block = 0; block < config.layers; ++block) {
    builder.SetBlock(block);
    AddBlock(config, builder);
  }
  builder.SetBlock(-1);
  if (config.norm.final) builder.AddNorm("final_norm", Module::kFinalNorm, config);
  const auto add_head = [&](ParameterRole role) {
    builder.AddLinear("head", Module::kHead, role, config.vocabulary, config.width);
  };
  if (!config.tied_head) add_head(ParameterRole::kHead);
  if (config.head_bias) add_head(ParameterRole::kBias);
  return builder.Take();
}

std::vector<std::string> OptimizerSlots(const TrainingConfig& training) {
  std::vector<std::string> slots;
  switch (training.optimizer.kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
      slots = {"optimizer.first_moment", "optimizer.second_moment"};
      break;
    case OptimizerKind::kSgd:
      slots = {"optimizer.momentum"};
      break;
  }
  if (training.ema > 0) slots.emplace_back(kAverageSlot);
  return slots;
}

}  // namespace ablate::engine
