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
  kFeedForwardNorm,
  kUp,
  kDown,
  kFinalNorm,
  kHead,
};

struct ParameterInfo {
  std::string name;            // e.g. "block.3.attention.qkv.weight"
  std::vector<int64_t> shape;  // without the leading run dimension; linears are [out, in]
  int64_t offset = 0;          // first element in the flat buffer of one run
  int64_t size = 0;            // elements
  ParameterRole role = ParameterRole::kWeight;
  Module module = Module::kQkv;
  int block = -1;      // -1: in none
  int64_t fan_in = 0;  // of the linear that it belongs to; 0 where it belongs to none
  int64_t fan_out = 0;
};

// What a model carries beside its parameters, such as running statistics: kept in checkpoints and
// resume states, never trained.
struct BufferInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // in the flat buffer of one run's buffers
  int64_t size = 0;
};

struct ParameterLayout {
  std::vector<ParameterInfo> parameters;  // in buffer order
  int64_t size = 0;                       // elements of one run, P
  std::vector<BufferInfo> buffers;        // no switch of ModelConfig has any yet
  int64_t buffer_size = 0;
};

// Whether a block of a model has a norm at its attention and at its feed-forward site.
bool HasAttentionNorm(const NormConfig& config);
bool HasFeedForwardNorm(const NormConfig& config);

// The parameters that `config` has, in this order: token_embedding.weight [V,d],
// position_embedding.weight [context,d]; for each block i: block.{i}.attention.norm.{weight,bias}
// [d], block.{i}.attention.qkv.{weight [3d,d],bias}, block.{i}.attention.projection.{weight
// [d,d],bias}, block.{i}.feed_forward.norm.{weight,bias}, block.{i}.feed_forward.up.{weight
// [h,d],bias}, block.{i}.feed_forward.down.{weight [d,h],bias}; final_norm.{weight,bias};
// head.{weight [V,d] unless tied, bias}.
ParameterLayout MakeLayout(const ModelConfig& config);

// The tensors, each as large as the parameters, that an optimizer carries from step to step: what
// a resume state holds beside the parameters. Momentum has its slot also where it is 0; the average
// of the parameters, where there is one, is the last.
std::vector<std::string> OptimizerSlots(const TrainingConfig& training);

// The name of the average's slot.
inline constexpr char kAverageSlot[] = "average";

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_LAYOUT_H_
