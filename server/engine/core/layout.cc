#include "server/engine/core/layout.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ablate::engine {
namespace {

int64_t SizeOf(const std::vector<int64_t>& shape) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return size;
}

// Appends parameters and statistics, with consecutive offsets.
class LayoutBuilder {
 public:
  // Sets the block of the following parameters; -1: none.
  void SetBlock(int block) { block_ = block; }

  void Add(absl::string_view name, Module module, ParameterRole role, std::vector<int64_t> shape) {
    ParameterInfo parameter;
    parameter.name = NameOf(name);
    parameter.size = SizeOf(shape);
    parameter.shape = std::move(shape);
    parameter.offset = layout_.size;
    parameter.role = role;
    parameter.module = module;
    parameter.block = block_;
    layout_.size += parameter.size;
    layout_.parameters.push_back(std::move(parameter));
  }

  void AddBuffer(absl::string_view name, Module module, BufferRole role,
                 std::vector<int64_t> shape) {
    Append({NameOf(name), std::move(shape), 0, 0, role, module, block_});
  }

  // Adds a matrix of the same shape for every weight of a block.
  void AddFeedbackOfWeights() {
    for (const ParameterInfo& parameter : layout_.parameters) {
      if (parameter.block < 0 || parameter.role != ParameterRole::kWeight) continue;
      const absl::string_view linear = absl::StripSuffix(parameter.name, ".weight");
      Append({absl::StrCat(linear, ".feedback"), parameter.shape, 0, 0, BufferRole::kFeedback,
              parameter.module, parameter.block});
    }
  }

  // Adds a weight or bias of a linear with these fans.
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
    if (config.norm.kind == NormKind::kBatch) {
      AddBuffer(absl::StrCat(name, ".running_mean"), module, BufferRole::kRunningMean,
                {config.width});
      AddBuffer(absl::StrCat(name, ".running_variance"), module, BufferRole::kRunningVariance,
                {config.width});
    }
  }

  ParameterLayout Take() { return std::move(layout_); }

 private:
  void Append(BufferInfo buffer) {
    buffer.offset = layout_.buffer_size;
    buffer.size = SizeOf(buffer.shape);
    layout_.buffer_size += buffer.size;
    if (buffer.role != BufferRole::kFeedback) layout_.statistics_size += buffer.size;
    layout_.buffers.push_back(std::move(buffer));
  }

  std::string NameOf(absl::string_view name) const {
    return block_ < 0 ? std::string(name) : absl::StrCat("block.", block_, ".", name);
  }

  ParameterLayout layout_;
  int block_ = -1;
};

void AddAttention(const ModelConfig& config, LayoutBuilder& builder) {
  if (!Attends(config)) return;
  const int64_t width = config.width;
  if (HasAttentionNorm(config)) {
    builder.AddNorm("attention.norm", Module::kAttentionNorm, config);
  }
  builder.AddLinear("attention.qkv", Module::kQkv, 3 * width, width, config.bias);
  builder.AddLinear("attention.projection", Module::kProjection, width, width, config.bias);
  if (HasAttentionNorm(config) && config.norm.placement == NormPlacement::kSandwich) {
    builder.AddNorm("attention.post_norm", Module::kAttentionPostNorm, config);
  }
}

void AddFeedForward(const ModelConfig& config, LayoutBuilder& builder) {
  const int64_t halves = config.activation == Activation::kSwiglu ? 2 : 1;
  if (HasFeedForwardNorm(config)) {
    builder.AddNorm("feed_forward.norm", Module::kFeedForwardNorm, config);
  }
  builder.AddLinear("feed_forward.up", Module::kUp, halves * config.hidden, config.width,
                    config.bias);
  builder.AddLinear("feed_forward.down", Module::kDown, config.width, config.hidden, config.bias);
  if (HasFeedForwardNorm(config) && config.norm.placement == NormPlacement::kSandwich) {
    builder.AddNorm("feed_forward.post_norm", Module::kFeedForwardPostNorm, config);
  }
}

// Adds the matrices that project the output error to the embeddings' sum and to every block.
void AddFeedbackOfErrors(const ModelConfig& config, LayoutBuilder& builder) {
  const std::vector<int64_t> shape = {config.vocabulary, config.width};
  builder.SetBlock(-1);
  builder.AddBuffer("embedding.feedback", Module::kTokenEmbedding, BufferRole::kFeedback, shape);
  for (int block = 0; block < config.layers; ++block) {
    builder.SetBlock(block);
    builder.AddBuffer("feedback", Module::kBlock, BufferRole::kFeedback, shape);
  }
}

// Returns true if a parameter is a matrix, for weight decay on matrices only.
bool IsMatrix(ParameterRole role) {
  switch (role) {
    case ParameterRole::kWeight:
    case ParameterRole::kEmbedding:
    case ParameterRole::kPosition:
    case ParameterRole::kHead:
      return true;
    case ParameterRole::kBias:
    case ParameterRole::kGain:
      break;
  }
  return false;
}

bool InBlocks(const NormConfig& config) { return config.placement != NormPlacement::kNone; }

}  // namespace

bool Attends(const ModelConfig& config) { return config.attention.kind != AttentionKind::kNone; }

bool LooksAhead(const ModelConfig& config) { return Attends(config) && !config.attention.causal; }

int HeadSize(const ModelConfig& config) { return config.width / config.heads; }

double ScoreScale(const ModelConfig& config) {
  return 1 / std::sqrt(static_cast<double>(HeadSize(config)));
}

bool HasManyLogits(int64_t targets, int64_t vocabulary) {
  constexpr double kMany = 1 << 24;
  return static_cast<double>(targets) * static_cast<double>(vocabulary) > kMany;
}

bool ComputesLossInChunks(Device device, int64_t targets, int64_t vocabulary) {
  constexpr int64_t kLarge = 1024;
  return device == Device::kCpu ? HasManyLogits(targets, vocabulary) : vocabulary >= kLarge;
}

int64_t MostLogitsTogether(Device device) {
  return int64_t{1} << (device == Device::kCpu ? 25 : 29);
}

bool HasNorm(const NormConfig& config) { return InBlocks(config) || config.final; }

bool HasAttentionNorm(const ModelConfig& config) {
  return config.norm.attention && InBlocks(config.norm) && Attends(config);
}

bool HasFeedForwardNorm(const ModelConfig& config) {
  return config.norm.feed_forward && InBlocks(config.norm);
}

bool HasDeviation(const NormConfig& config) {
  return config.deviation == NormDeviation::kPopulation ||
         (config.kind == NormKind::kLayer && config.backward == NormBackward::kExact);
}

bool HasBackward(const NormConfig& config) {
  return FormulaOf(config.kind).centres || config.backward != NormBackward::kCenterScale;
}

ParameterLayout MakeLayout(const ModelConfig& config, LearningRule rule) {
  LayoutBuilder builder;
  builder.Add("token_embedding.weight", Module::kTokenEmbedding, ParameterRole::kEmbedding,
              {config.vocabulary, config.width});
  if (config.positions == Positions::kLearned) {
    builder.Add("position_embedding.weight", Module::kPositionEmbedding, ParameterRole::kPosition,
                {config.context, config.width});
  }
  for (int block = 0; block < config.layers; ++block) {
    builder.SetBlock(block);
    AddAttention(config, builder);
    AddFeedForward(config, builder);
  }
  builder.SetBlock(-1);
  if (config.norm.final) builder.AddNorm("final_norm", Module::kFinalNorm, config);
  const auto add_head = [&](ParameterRole role) {
    builder.AddLinear("head", Module::kHead, role, config.vocabulary, config.width);
  };
  if (!config.tied_head) add_head(ParameterRole::kHead);
  if (config.head_bias) add_head(ParameterRole::kBias);
  if (rule == LearningRule::kFeedbackAlignment) builder.AddFeedbackOfWeights();
  if (rule == LearningRule::kDirectFeedbackAlignment) AddFeedbackOfErrors(config, builder);
  return builder.Take();
}

std::vector<ParameterRange> DecayRanges(const ParameterLayout& layout, WeightDecayOn on) {
  std::vector<ParameterRange> ranges;
  for (const ParameterInfo& parameter : layout.parameters) {
    const bool decays = on == WeightDecayOn::kAll || IsMatrix(parameter.role);
    if (ranges.empty() || ranges.back().decays != decays) {
      ranges.push_back({parameter.offset, 0, decays});
    }
    ranges.back().size += parameter.size;
  }
  return ranges;
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
  if (training.ema > 0) slots.emplace_back(kEmaSlot);
  return slots;
}

}  // namespace ablate::engine
