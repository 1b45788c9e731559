// Defines names, shapes and offsets of a model's parameters and buffers in their flat arrays.
// Torch-free; the server links it, too.
#ifndef ABLATE_SERVER_ENGINE_CORE_LAYOUT_H_
#define ABLATE_SERVER_ENGINE_CORE_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"

namespace ablate::engine {

// The function of a parameter in its model. Initial values, weight decay and exports depend on it,
// never on a name.
enum class ParameterRole {
  kWeight,     // of a linear
  kBias,       // of a linear or a norm
  kGain,       // of a norm, an update or a mixture
  kAlpha,      // α of a pointwise norm
  kOffset,     // s of a pointwise norm; a sink's scores
  kEmbedding,  // of tokens
  kPosition,   // embedding of positions
  kHead,       // the last linear's weight
};

// The module that a parameter or buffer belongs to.
enum class Module {
  kTokenEmbedding,
  kPositionEmbedding,
  kEmbeddingNorm,
  kAttentionNorm,
  kQkv,
  kQueryNorm,
  kKeyNorm,
  kSink,
  kValueMix,
  kProjection,
  kAttentionPostNorm,
  kAttentionUpdateGain,
  kFeedForwardNorm,
  kUp,
  kDown,
  kFeedForwardPostNorm,
  kFeedForwardUpdateGain,
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
  int block = -1;      // -1: not in a block
  int64_t fan_in = 0;  // of its linear; 0 if it belongs to none
  int64_t fan_out = 0;
  double start = 0;  // initial value, if no linear or table has it
  double rate = 1;   // factor of the learning rate, by µP
};

enum class BufferRole {
  kRunningMean,      // of BatchNorm; starts at 0
  kRunningVariance,  // starts at 1
  kFeedback,         // a learning rule's fixed random matrix
};

// Describes a buffer: part of checkpoints and resume states, but not trained.
struct BufferInfo {
  std::string name;  // e.g. "block.3.attention.qkv.feedback"
  std::vector<int64_t> shape;
  int64_t offset = 0;  // in the flat buffer of one run's buffers
  int64_t size = 0;
  BufferRole role = BufferRole::kFeedback;
  Module module = Module::kQkv;
  int block = -1;  // -1: not in a block
};

// The layout of a model's parameters and buffers in flat arrays.
struct ParameterLayout {
  std::vector<ParameterInfo> parameters;  // in buffer order
  int64_t size = 0;                       // elements of one run, P
  std::vector<BufferInfo> buffers;        // running statistics first
  int64_t statistics_size = 0;            // elements of the running statistics
  int64_t buffer_size = 0;                // elements of all buffers
};

// Returns true if blocks have attention.
bool Attends(const ModelConfig& config);

// Returns true if the output at a position depends on later tokens.
bool LooksAhead(const ModelConfig& config);

// Returns the model's width as a multiple of µP's base width; 1 without µP.
double WidthRatio(const ModelConfig& config);

// Returns the features per head, and the factor of attention scores: qk_norm's, or 1/√(features per
// head)/√WidthRatio: µP's, if the number of heads is that of the base width.
int HeadSize(const ModelConfig& config);
double ScoreScale(const ModelConfig& config);

// Returns the features of all heads of queries together: those of the projection's input.
int QueryWidth(const ModelConfig& config);

// Returns the number of heads of keys and values, and their features together.
int KvHeads(const ModelConfig& config);
int KvWidth(const ModelConfig& config);

// Returns true if the linear of queries, keys and values has a bias.
bool HasQkvBias(const ModelConfig& config);

// Returns the number of a head's features that rotary positions rotate; even.
int RotatedFeatures(const ModelConfig& config);

// Returns true if the attention weights of a row add up to 1.
bool HasNormalisedRows(const ModelConfig& config);

// Returns true if attention is the softmax of scaled and masked scores, and nothing more.
bool HasPlainScores(const ModelConfig& config);

// Returns true if so many targets have so many logits that the torch trainer bounds its memory on a
// CPU: its attention then keeps no weights, and its loss is computed in chunks. A GPT-2 has 50,257
// for each target, so that a window of 1,024 takes 200 MB for its logits, and again for each of
// their probabilities and gradients.
bool HasManyLogits(int64_t targets, int64_t vocabulary);

// Returns true if the torch trainer computes the loss along with its gradients, in chunks of at
// most MostLogitsTogether logits. On a device it does so for every large vocabulary, because each
// copy of the logits takes a part of the step there, and its chunks are larger.
bool ComputesLossInChunks(Device device, int64_t targets, int64_t vocabulary);
int64_t MostLogitsTogether(Device device);

// Returns true if a model has norms in blocks, before them or before the head.
bool HasNorm(const ModelConfig& config);

// Return true if a block has a norm at its attention sublayer (never without attention), and at its
// feed-forward sublayer (if both are parallel: as attention, or never if they share a norm).
bool HasAttentionNorm(const ModelConfig& config);
bool HasFeedForwardNorm(const ModelConfig& config);

// Returns the layout of a model. Parameters, in this order: token_embedding.weight [V,d];
// position_embedding.weight [context,d] if positions are learned; embedding_norm.{weight,bias}; for
// each block i block.{i}.attention.norm.{weight,bias} [d], block.{i}.attention.qkv.{weight
// [q+2k,d],bias} with q = QueryWidth and k = KvWidth,
// block.{i}.attention.{query_norm,key_norm}.weight (of a head's features, or of all heads'),
// block.{i}.attention.sink [H], block.{i}.attention.value_mix [1] of every block but the first,
// block.{i}.attention.projection.{weight [d,q],bias}, block.{i}.attention.post_norm.{weight,bias},
// block.{i}.attention.update_gain ([d] or [1]), block.{i}.feed_forward.norm.{weight,bias},
// block.{i}.feed_forward.up.{weight [h,d],bias} (gated: [2h,d], gates first),
// block.{i}.feed_forward.down.{weight [d,h],bias}, block.{i}.feed_forward.post_norm.{weight,bias},
// block.{i}.feed_forward.update_gain; final_norm.{weight,bias}; head.{weight [V,d] unless tied,
// bias}. Only sandwich placement has the norms called post_norm. A pointwise norm has alpha [1],
// too, and with derf offset [1].
//
// Buffers: running_mean and running_variance [d] of every BatchNorm, under the norm's name. Then,
// with feedback alignment, a matrix `feedback` of the weight's shape for each linear of a block,
// under the linear's name; with direct feedback alignment embedding.feedback and block.{i}.feedback
// [V,d].
ParameterLayout MakeLayout(const ModelConfig& model, LearningRule rule);

// Returns the layout of a model that learns by backpropagation. The parameters are the same with
// every rule.
inline ParameterLayout MakeLayout(const ModelConfig& model) {
  return MakeLayout(model, LearningRule::kBackprop);
}

// Elements [offset, offset + size) of one run's parameters, which an update treats alike.
struct ParameterRange {
  int64_t offset = 0;
  int64_t size = 0;
  bool decays = false;          // true if weight decay acts on them
  double rate = 1;              // factor of the learning rate
  bool orthogonalised = false;  // true if Muon updates them, and not its AdamW

  // Returns true if an update treats the other range as this one.
  bool IsLike(const ParameterRange& other) const {
    return decays == other.decays && rate == other.rate && orthogonalised == other.orthogonalised;
  }
};

// Returns ranges that cover all parameters in order; neighbours that are alike form one range.
std::vector<ParameterRange> UpdateRanges(const ParameterLayout& layout,
                                         const OptimizerConfig& optimizer);

// A matrix [rows, columns] in the flat buffer of one run's parameters.
struct MatrixView {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// Returns the rows of the linears that are stacked in a parameter: queries, keys and values; gates
// and values of a gated feed-forward; else all.
std::vector<int64_t> StackedRows(const ModelConfig& model, const ParameterInfo& parameter);

// Returns the weights of the blocks' linears. Those of stacked linears are apart: queries, keys and
// values; gates and values of a gated feed-forward.
std::vector<MatrixView> BlockMatrices(const ModelConfig& model, const ParameterLayout& layout);

// Returns true if this kind of norm supports this deviation and backward mode together. LayerNorm
// has both deviations, the unbiased one with the exact backward only; other kinds have only the
// population deviation.
bool HasDeviation(const NormConfig& config);

// Returns true if this kind of norm supports this backward mode; center_scale needs a norm that
// centres.
bool HasBackward(const NormConfig& config);

// Returns the names of the tensors, each as large as the parameters, that an optimizer carries from
// step to step and that a resume state holds in addition to the parameters. SGD has a momentum slot
// even if momentum is 0. Muon has AdamW's slots: the first moment of a matrix is its momentum, its
// second moment stays 0. The EMA weights, if kept, are the last slot.
std::vector<std::string> OptimizerSlots(const TrainingConfig& training);

// The slot name of the EMA weights in resume states.
inline constexpr char kEmaSlot[] = "average";

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_LAYOUT_H_
