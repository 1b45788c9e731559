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
  // `rate` is of the weights of blocks.
  explicit LayoutBuilder(double rate) : rate_(rate) {}

  // Sets the block of the following parameters; -1: none.
  void SetBlock(int block) { block_ = block; }

  void Add(absl::string_view name, Module module, ParameterRole role, std::vector<int64_t> shape,
           double start = 0) {
    ParameterInfo parameter;
    parameter.name = NameOf(name);
    parameter.size = SizeOf(shape);
    parameter.shape = std::move(shape);
    parameter.offset = layout_.size;
    parameter.role = role;
    parameter.module = module;
    parameter.block = block_;
    parameter.start = start;
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
    if (block_ >= 0 && role == ParameterRole::kWeight) layout_.parameters.back().rate = rate_;
    layout_.parameters.back().fan_in = in;
    layout_.parameters.back().fan_out = out;
  }

  void AddLinear(absl::string_view name, Module module, int64_t out, int64_t in, bool bias) {
    AddLinear(name, module, ParameterRole::kWeight, out, in);
    if (bias) AddLinear(name, module, ParameterRole::kBias, out, in);
  }

  void AddNorm(absl::string_view name, Module module, const ModelConfig& config) {
    if (config.norm.gain) {
      const bool one_plus = config.norm.gain_form == GainForm::kOnePlus;
      Add(absl::StrCat(name, ".weight"), module, ParameterRole::kGain, {config.width},
          one_plus ? 0 : 1);
    }
    if (config.norm.bias) {
      Add(absl::StrCat(name, ".bias"), module, ParameterRole::kBias, {config.width});
    }
    if (IsPointwise(config.norm.kind)) {
      const bool attention =
          module == Module::kAttentionNorm || module == Module::kAttentionPostNorm;
      Add(absl::StrCat(name, ".alpha"), module, ParameterRole::kAlpha, {1},
          attention ? config.norm.attention_alpha : config.norm.alpha);
    }
    if (config.norm.kind == NormKind::kDerf) {
      Add(absl::StrCat(name, ".offset"), module, ParameterRole::kOffset, {1});
    }
    if (config.norm.kind == NormKind::kBatch) {
      AddBuffer(absl::StrCat(name, ".running_mean"), module, BufferRole::kRunningMean,
                {config.width});
      AddBuffer(absl::StrCat(name, ".running_variance"), module, BufferRole::kRunningVariance,
                {config.width});
    }
  }

  void AddUpdateGain(absl::string_view name, Module module, const ModelConfig& config) {
    if (config.update_gain == UpdateGain::kNone) return;
    const int64_t size = config.update_gain == UpdateGain::kFeature ? config.width : 1;
    Add(absl::StrCat(name, ".update_gain"), module, ParameterRole::kGain, {size},
        config.update_gain_start);
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

  const double rate_;
  ParameterLayout layout_;
  int block_ = -1;
};

// Adds the parameters of queries, keys and values behind their linear.
void AddHeads(const ModelConfig& config, int block, LayoutBuilder& builder) {
  const AttentionConfig& attention = config.attention;
  if (attention.qk_norm.kind != QkNormKind::kNone && attention.qk_norm.gain) {
    const bool all = attention.qk_norm.scope == QkNormScope::kAll;
    const int64_t size = HeadSize(config);
    builder.Add("attention.query_norm.weight", Module::kQueryNorm, ParameterRole::kGain,
                {all ? QueryWidth(config) : size}, 1);
    builder.Add("attention.key_norm.weight", Module::kKeyNorm, ParameterRole::kGain,
                {all ? KvWidth(config) : size}, 1);
  }
  if (attention.sink) {
    builder.Add("attention.sink", Module::kSink, ParameterRole::kOffset, {config.heads});
  }
  if (attention.value_residual == ValueResidual::kLearned && block > 0) {
    builder.Add("attention.value_mix", Module::kValueMix, ParameterRole::kGain, {1}, 0.5);
  }
}

void AddAttention(const ModelConfig& config, int block, LayoutBuilder& builder) {
  if (!Attends(config)) return;
  const int64_t width = config.width;
  if (HasAttentionNorm(config)) {
    builder.AddNorm("attention.norm", Module::kAttentionNorm, config);
  }
  const int64_t queries = QueryWidth(config);
  builder.AddLinear("attention.qkv", Module::kQkv, queries + int64_t{2} * KvWidth(config), width,
                    HasQkvBias(config));
  AddHeads(config, block, builder);
  builder.AddLinear("attention.projection", Module::kProjection, width, queries, config.bias);
  if (HasAttentionNorm(config) && config.norm.placement == NormPlacement::kSandwich) {
    builder.AddNorm("attention.post_norm", Module::kAttentionPostNorm, config);
  }
  builder.AddUpdateGain("attention", Module::kAttentionUpdateGain, config);
}

void AddFeedForward(const ModelConfig& config, LayoutBuilder& builder) {
  const int64_t halves = IsGated(config.activation) ? 2 : 1;
  if (HasFeedForwardNorm(config)) {
    builder.AddNorm("feed_forward.norm", Module::kFeedForwardNorm, config);
  }
  builder.AddLinear("feed_forward.up", Module::kUp, halves * config.hidden, config.width,
                    config.bias);
  builder.AddLinear("feed_forward.down", Module::kDown, config.width, config.hidden, config.bias);
  if (HasFeedForwardNorm(config) && config.norm.placement == NormPlacement::kSandwich) {
    builder.AddNorm("feed_forward.post_norm", Module::kFeedForwardPostNorm, config);
  }
  builder.AddUpdateGain("feed_forward", Module::kFeedForwardUpdateGain, config);
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
    case ParameterRole::kAlpha:
    case ParameterRole::kOffset:
      break;
  }
  return false;
}

double RateFactorOf(ParameterRole role, const RateFactors& rates) {
  switch (role) {
    case ParameterRole::kEmbedding:
    case ParameterRole::kPosition:
      return rates.embeddings;
    case ParameterRole::kHead:
      return rates.head;
    default:
      return IsMatrix(role) ? 1 : rates.vectors;
  }
}

bool IsBlockMatrix(const ParameterInfo& parameter) {
  return parameter.role == ParameterRole::kWeight && parameter.block >= 0;
}

bool InBlocks(const NormConfig& config) { return config.placement != NormPlacement::kNone; }

}  // namespace

bool Attends(const ModelConfig& config) { return config.attention.kind != AttentionKind::kNone; }

bool LooksAhead(const ModelConfig& config) { return Attends(config) && !config.attention.causal; }

int HeadSize(const ModelConfig& config) {
  return config.attention.head_size > 0 ? config.attention.head_size : config.width / config.heads;
}

int QueryWidth(const ModelConfig& config) { return config.heads * HeadSize(config); }

int KvHeads(const ModelConfig& config) {
  return config.attention.kv_heads > 0 ? config.attention.kv_heads : config.heads;
}

int KvWidth(const ModelConfig& config) { return KvHeads(config) * HeadSize(config); }

bool HasQkvBias(const ModelConfig& config) { return config.bias || config.attention.qkv_bias; }

int RotatedFeatures(const ModelConfig& config) {
  return static_cast<int>(std::lround(HeadSize(config) * config.rotary.share));
}

bool HasNormalisedRows(const ModelConfig& config) {
  return config.attention.kind == AttentionKind::kSoftmax && !config.attention.sink;
}

bool HasPlainScores(const ModelConfig& config) {
  const AttentionConfig& attention = config.attention;
  return attention.kind == AttentionKind::kSoftmax && attention.score_cap == 0 &&
         attention.window == 0 && !attention.sink && config.positions != Positions::kAlibi;
}

double WidthRatio(const ModelConfig& config) {
  return config.base_width > 0 ? static_cast<double>(config.width) / config.base_width : 1;
}

double ScoreScale(const ModelConfig& config) {
  const QkNormConfig& norm = config.attention.qk_norm;
  if (norm.kind != QkNormKind::kNone) return norm.scale;
  return 1 / std::sqrt(static_cast<double>(HeadSize(config)) * WidthRatio(config));
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

bool HasNorm(const ModelConfig& config) {
  return InBlocks(config.norm) || config.norm.final || config.embedding_norm;
}

bool HasAttentionNorm(const ModelConfig& config) {
  return config.norm.attention && InBlocks(config.norm) && Attends(config);
}

bool HasFeedForwardNorm(const ModelConfig& config) {
  if (config.parallel) return config.parallel_norms && HasAttentionNorm(config);
  return config.norm.feed_forward && InBlocks(config.norm);
}

bool HasDeviation(const NormConfig& config) {
  return config.deviation == NormDeviation::kPopulation ||
         (config.kind == NormKind::kLayer && config.backward == NormBackward::kExact);
}

bool HasBackward(const NormConfig& config) {
  if (IsPointwise(config.kind)) return config.backward == NormBackward::kExact;
  return FormulaOf(config.kind).centres || config.backward != NormBackward::kCenterScale;
}

ParameterLayout MakeLayout(const ModelConfig& config, LearningRule rule) {
  LayoutBuilder builder(1 / WidthRatio(config));
  builder.Add("token_embedding.weight", Module::kTokenEmbedding, ParameterRole::kEmbedding,
              {config.vocabulary, config.width});
  if (config.positions == Positions::kLearned) {
    builder.Add("position_embedding.weight", Module::kPositionEmbedding, ParameterRole::kPosition,
                {config.context, config.width});
  }
  if (config.embedding_norm) builder.AddNorm("embedding_norm", Module::kEmbeddingNorm, config);
  for (int block = 0; block < config.layers; ++block) {
    builder.SetBlock(block);
    AddAttention(config, block, builder);
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

std::vector<ParameterRange> UpdateRanges(const ParameterLayout& layout,
                                         const OptimizerConfig& optimizer) {
  std::vector<ParameterRange> ranges;
  for (const ParameterInfo& parameter : layout.parameters) {
    ParameterRange range = {
        parameter.offset, parameter.size,
        optimizer.weight_decay_on == WeightDecayOn::kAll || IsMatrix(parameter.role),
        RateFactorOf(parameter.role, optimizer.rates),
        optimizer.kind == OptimizerKind::kMuon && IsBlockMatrix(parameter)};
    // An orthogonalised update keeps its spectral norm, except that match_rms makes it grow with
    // the root of the width.
    if (!range.orthogonalised) range.rate *= parameter.rate;
    if (range.orthogonalised && optimizer.muon.adjust == MuonAdjust::kMatchRms) {
      range.rate *= std::sqrt(parameter.rate);
    }
    if (!ranges.empty() && ranges.back().IsLike(range)) {
      ranges.back().size += range.size;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

std::vector<int64_t> StackedRows(const ModelConfig& model, const ParameterInfo& parameter) {
  if (parameter.module == Module::kQkv) return {QueryWidth(model), KvWidth(model), KvWidth(model)};
  const bool gated = parameter.module == Module::kUp && IsGated(model.activation);
  if (gated) return {model.hidden, model.hidden};
  return {parameter.shape[0]};
}

std::vector<MatrixView> BlockMatrices(const ModelConfig& model, const ParameterLayout& layout) {
  std::vector<MatrixView> matrices;
  for (const ParameterInfo& parameter : layout.parameters) {
    if (!IsBlockMatrix(parameter)) continue;
    int64_t offset = parameter.offset;
    for (const int64_t rows : StackedRows(model, parameter)) {
      matrices.push_back({offset, rows, parameter.shape[1]});
      offset += rows * parameter.shape[1];
    }
  }
  return matrices;
}

std::vector<std::string> OptimizerSlots(const TrainingConfig& training) {
  std::vector<std::string> slots;
  switch (training.optimizer.kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
    case OptimizerKind::kMuon:
      slots = {"optimizer.first_moment", "optimizer.second_moment"};
      break;
    case OptimizerKind::kSgd:
    case OptimizerKind::kLion:
      slots = {"optimizer.momentum"};
      break;
  }
  if (training.ema > 0) slots.emplace_back(kEmaSlot);
  return slots;
}

}  // namespace ablate::engine
