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

// Cosine and sine of the angles by which rotary positions rotate a head's features, [B·H, S,
// d/(2H)].
struct Rotation {
  at::Tensor cosine;
  at::Tensor sine;
};

// The part of attention that all blocks of a forward pass share. Keeps a reference to `config`.
struct AttentionSetting {
  const ModelConfig& config;
  SequenceShape shape;
  // Each exists twice: for queries at every position, and at last positions only (Kept).
  //
  // Biases are added to the attention scores: −∞ for keys that a query may not see. every_bias is
  // [1, T, T] for causal attention; otherwise both are [B·H, 1, T] if rows are padded, else
  // undefined.
  at::Tensor every_bias;
  at::Tensor last_bias;
  Rotation every;  // undefined if positions are not rotary
  Rotation last;
};

AttentionSetting MakeAttentionSetting(const ModelConfig& config, const SequenceShape& shape,
                                      at::TensorOptions options);

// Returns softmax(qkᵀ/√(d/H))v, or σ(qkᵀ/√(d/H) + score_bias)v without normalisation, after the
// projection: x [B·T, d] → [B·T, d], or [B, d] with kLast, which queries at the last positions
// only. Rotary positions rotate features j and j + d/(2H) of queries and keys at position p by
// p·10000^(−2jH/d).
at::Tensor SelfAttention(const at::Tensor& x, const BlockParameters& block,
                         const AttentionSetting& setting, Kept kept, const BlockPass& pass);

// Key-value cache: keys and values of the positions that a decoder has read, [B·H, context, d/H]
// each.
struct SeenPositions {
  at::Tensor keys;
  at::Tensor values;
};

// Returns the attention of one new position to itself and all earlier ones: x [B, d] → [B, d].
// Stores its keys and values at `position` in `seen`.
at::Tensor NextAttention(const at::Tensor& x, const BlockParameters& block,
                         const ModelConfig& config, int64_t position, const SeenPositions& seen);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_ATTENTION_H_
