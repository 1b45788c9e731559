// Self-attention of every kind: for all positions, for those alone that a loss reads, and for the
// next one of a sequence that grows.
#ifndef ABLATE_SERVER_ENGINE_MODEL_ATTENTION_H_
#define ABLATE_SERVER_ENGINE_MODEL_ATTENTION_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "server/engine/config.h"
#include "server/engine/model/parameters.h"
#include "server/engine/model/pass.h"

namespace ablate::engine {

// What every block of one forward pass knows of its batch: B rows of T positions.
struct SequenceShape {
  int64_t rows = 0;
  int64_t length = 0;
  at::Tensor lengths;  // [B]; undefined when no row is padded
};

// Which positions a part of a pass goes on with, S of each row.
enum class Kept { kEvery, kLast };

// Those positions, [B, S] int64.
at::Tensor PositionsOf(const SequenceShape& shape, Kept kept, at::TensorOptions options);

// x [B·T, d] → the last real position of every row, [B, d].
at::Tensor LastPositions(const at::Tensor& x, const SequenceShape& shape);

// Cosine and sine of the angles by which rotary positions turn a head's features, [B·H, S, d/2H].
struct Rotation {
  at::Tensor cosine;
  at::Tensor sine;
};

// What the attention of all blocks has in common in one forward pass. Keeps a reference to
// `config`.
struct AttentionSetting {
  const ModelConfig& config;
  SequenceShape shape;
  // Added to the scores: −∞ where a query may not look. Undefined, [1, T, T] or [B·H, 1, T].
  at::Tensor every_bias;
  at::Tensor last_bias;
  Rotation every;  // undefined if positions are not rotary
  Rotation last;
};

AttentionSetting MakeAttentionSetting(const ModelConfig& config, const SequenceShape& shape,
                                      at::TensorOptions options);

// softmax(qkᵀ/√(d/H))v, or σ(qkᵀ/√(d/H) + score_bias)v without normalisation, then the projection:
// x [B·T, d] → [B·T, d], or with kLast queries at the last positions only → [B, d]. Rotary
// positions turn features j and j + d/2H of queries and keys at position p by p·10000^(−2jH/d).
at::Tensor SelfAttention(const at::Tensor& x, const BlockParameters& block,
                         const AttentionSetting& setting, Kept kept, const BlockPass& pass);

// Keys and values of the positions that a decoder has seen, [B·H, context, d/H] each.
struct SeenPositions {
  at::Tensor keys;
  at::Tensor values;
};

// Attention of one new position to itself and those before it: x [B, d] → [B, d]. Its keys and
// values become position `position` of `seen`.
at::Tensor NextAttention(const at::Tensor& x, const BlockParameters& block,
                         const ModelConfig& config, int64_t position, const SeenPositions& seen);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_ATTENTION_H_
