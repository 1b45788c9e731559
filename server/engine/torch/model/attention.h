// Computes self-attention of every kind: at all positions, only at those that a loss reads, or for
// the next token of a growing sequence.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_ATTENTION_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_ATTENTION_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "server/engine/config.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/model/pass.h"

namespace ablate::engine {

// The shape of a batch, shared by all blocks of a forward pass: B rows of T positions.
struct SequenceShape {
  int64_t rows = 0;
  int64_t length = 0;
  at::Tensor lengths;  // [B]; undefined when no row is padded
};

// Selects the positions that the rest of a pass computes: S of each row.
enum class Kept { kEvery, kLast };

// Returns those positions, [B, S] int64.
at::Tensor PositionsOf(const SequenceShape& shape, Kept kept, at::TensorOptions options);

// x [B·T, d] → the last position of every row that isn't padding, [B, d].
at::Tensor LastPositions(const at::Tensor& x, const SequenceShape& shape);

// Cosine and sine of the angles by which rotary positions rotate the first 2r features of a head,
// [B, 1, S, r].
struct Rotation {
  at::Tensor cosine;
  at::Tensor sine;
};

// Terms of the attention scores: −∞ for keys that a query may not see, and ALiBi's. Each is [1 or
// B·H, 1 or S, T], or undefined if there are none or no block has such.
struct ScoreBias {
  at::Tensor full;      // of blocks without a window
  at::Tensor windowed;  // of the others
};

// The part of attention that all blocks of a forward pass share. Keeps a reference to `config`.
struct AttentionSetting {
  const ModelConfig& config;
  SequenceShape shape;
  // Each exists twice: for queries at every position, and at last positions only (Kept).
  ScoreBias every_bias;
  ScoreBias last_bias;
  Rotation every;  // undefined if positions are not rotary
  Rotation last;
};

AttentionSetting MakeAttentionSetting(const ModelConfig& config, const SequenceShape& shape,
                                      at::TensorOptions options);

// Returns softmax(s·qkᵀ)v, or σ(s·qkᵀ + score_bias)v without normalisation, after the projection: x
// [B·T, d] → [B·T, d], or [B, d] with kLast, which queries at the last positions only. s is
// ScoreScale. The switches of docs/reference/model.md change queries, keys, values and scores.
// `first_values` are the first block's values [B·K, T, d/H], with K heads of keys and values: set
// by that block if the model has value residuals, read by the others.
at::Tensor SelfAttention(const at::Tensor& x, const BlockParameters& block,
                         const AttentionSetting& setting, Kept kept, const BlockPass& pass,
                         at::Tensor& first_values);

// Key-value cache: keys and values of the positions that a decoder has read, [B·K, context, d/H]
// each.
struct SeenPositions {
  at::Tensor keys;
  at::Tensor values;
};

// Returns the attention of one new position to itself and all earlier ones: x [B, d] → [B, d].
// Stores its keys and values at `position` in `seen`. `first_values` are as in SelfAttention.
at::Tensor NextAttention(const at::Tensor& x, const BlockParameters& block,
                         const ModelConfig& config, int index, int64_t position,
                         const SeenPositions& seen, at::Tensor& first_values);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_ATTENTION_H_
