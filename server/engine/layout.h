// Names, shapes and offsets of a model's parameters in its flat buffer, and what stands beside it.
// Torch-free; the server links it too.
#ifndef ABLATE_SERVER_ENGINE_LAYOUT_H_
#define ABLATE_SERVER_ENGINE_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"

namespace ablate::engine {

// What a parameter is to its model. Initial values, weight decay and exports follow from it, never
// from a name.
enum class ParameterRole {
  kWeight,     // of a linear
  kBias,       // of a linear or a norm
  kGain,       // of a norm
  kEmbedding,  // of tokens
  kPosition,   // embedding of positions
  kHead,       // the last linear's weight
};

// Whose it is.
enum class Module {
  kTokenEmbedding,
  kPositionEmbedding,
  kAttentionNorm,
  kQkv,
  kProjection,
  kAttentionPostNorm,
  kFeedForwardNorm,
  kUp,
  kDown,
  kFeedForwardPostNorm,
  kBlock,
  kFinalNorm,
  kHead,
};

struct ParameterInfo {
  std::string name;            // e.g. "block.3.attention.qkv.weight"
  std::vector<int64_t> shape;  // linears are [out, in]
  int64_t offset = 0;          // first element in the flat buffer of one run
  int64_t size = 0;            // elements
  ParameterRole role = ParameterRole::kWeight;
  Module module = Module::kQkv;
  int block = -1;      // -1: in none
  int64_t fan_in = 0;  // of the linear that it belongs to; 0 where it belongs to none
  int64_t fan_out = 0;
};

enum class BufferRole {
  kRunningMean,      // of BatchNorm; starts at 0
  kRunningVariance,  // starts at 1
  kFeedback,         // a learning rule's fixed random matrix
};

// What a run carries beside its parameters: kept in checkpoints and resume states, never trained.
struct BufferInfo {
  std::string name;  // e.g. "block.3.attention.qkv.feedback"
  std::vector<int64_t> shape;
  int64_t offset = 0;  // in the flat buffer of one run's buffers
  int64_t size = 0;
  BufferRole role = BufferRole::kFeedback;
  Module module = Module::kQkv;
  int block = -1;  // -1: in none
};

struct ParameterLayout {
  std::vector<ParameterInfo> parameters;  // in buffer order
  int64_t size = 0;                       // elements of one run, P
  std::vector<BufferInfo> buffers;        // running statistics first
  int64_t statistics_size = 0;            // elements of those
  int64_t buffer_size = 0;                // of all
};

// Whether blocks have attention.
bool Attends(const ModelConfig& config);

// Whether what is said at a position depends on tokens behind it.
bool LooksAhead(const ModelConfig& config);

// Features of a head, and what its scores are multiplied by: 1/√(features of a head).
int HeadSize(const ModelConfig& config);
double ScoreScale(const ModelConfig& config);

// Whether norms have a place: in blocks or before the head.
bool HasNorm(const NormConfig& config);

// Whether a block has a norm at its attention site, which a block without attention does not have,
// and at its feed-forward site.
bool HasAttentionNorm(const ModelConfig& config);
bool HasFeedForwardNorm(const ModelConfig& config);

// The parameters that a model has, in this order: token_embedding.weight [V,d],
// position_embedding.weight [context,d] if positions are learned; for each block i:
// block.{i}.attention.norm.{weight,bias} [d], block.{i}.attention.qkv.{weight [3d,d],bias},
// block.{i}.attention.projection.{weight [d,d],bias}, block.{i}.attention.post_norm.{weight,bias},
// block.{i}.feed_forward.norm.{weight,bias}, block.{i}.feed_forward.up.{weight [h,d],bias}, where
// SwiGLU has [2h,d], gates first, block.{i}.feed_forward.down.{weight [d,h],bias},
// block.{i}.feed_forward.post_norm.{weight,bias}; final_norm.{weight,bias}; head.{weight [V,d]
// unless tied, bias}. Only sandwich placement has the norms called post_norm.
//
// And the buffers: of every BatchNorm running_mean and running_variance [d], under the norm's name.
// With feedback alignment then a matrix `feedback` of the shape of each linear's weight in a block,
// under the linear's name; with direct feedback alignment embedding.feedback and block.{i}.feedback
// [V,d].
ParameterLayout MakeLayout(const ModelConfig& model, LearningRule rule);

// Of a model that learns by backprop: its parameters are the same by every rule.
inline ParameterLayout MakeLayout(const ModelConfig& model) {
  return MakeLayout(model, LearningRule::kBackprop);
}

// Elements [offset, offset + size) of one run's parameters.
struct ParameterRange {
  int64_t offset = 0;
  int64_t size = 0;
  bool decays = false;  // whether weight decay acts on them
};

// All of the parameters in their order; neighbours that decay alike are one range.
std::vector<ParameterRange> DecayRanges(const ParameterLayout& layout, WeightDecayOn on);

// Whether a norm of this kind has this deviation together with its backward mode: LayerNorm has
// both deviations, the unbiased one with the exact backward only, the other kinds have the one.
bool HasDeviation(const NormConfig& config);

// Whether a norm of this kind has this backward mode: center_scale is of norms that centre.
bool HasBackward(const NormConfig& config);

// The tensors, each as large as the parameters, that an optimizer carries from step to step: what
// a resume state holds beside the parameters. Momentum has its slot also where it is 0; the average
// of the parameters, where there is one, is the last.
std::vector<std::string> OptimizerSlots(const TrainingConfig& training);

// The name of the average's slot.
inline constexpr char kAverageSlot[] = "average";

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_LAYOUT_H_
