// Multi-head softmax attention, written out so that it can be differentiated twice.
#ifndef ABLATE_SERVER_ENGINE_MODEL_ATTENTION_H_
#define ABLATE_SERVER_ENGINE_MODEL_ATTENTION_H_

#include <ATen/ATen.h>

#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"
#include "server/engine/model/pass.h"

namespace ablate::engine {

// What every block of one forward pass knows of its batch.
struct SequenceShape {
  int64_t runs = 0;
  int64_t rows = 0;
  int64_t length = 0;
  at::Tensor lengths;  // [R, B]; undefined when no row is padded
};

// Added to the scores: −∞ where a query may not look. Undefined, [1, T, T] or [R·B·H, T or 1, T].
at::Tensor CausalBias(const SequenceShape& shape, at::TensorOptions options);
at::Tensor PaddingBias(const SequenceShape& shape, int64_t heads, at::TensorOptions options);

// x [R, B·T, d] → the last real position of every row, [R, B, d].
at::Tensor LastPositions(const at::Tensor& x, const SequenceShape& shape);

// x [R, B·T, d] → [R, B·T, d] after the projection.
at::Tensor SelfAttention(const at::Tensor& x, const BlockParameters& block, int64_t heads,
                         const at::Tensor& bias, const SequenceShape& shape, const BlockPass& pass);

// The same with queries at the last positions only: x [R, B·T, d] → [R, B, d]. `bias` hides padding
// alone: the last position may look everywhere.
at::Tensor LastAttention(const at::Tensor& x, const BlockParameters& block, int64_t heads,
                         const at::Tensor& bias, const SequenceShape& shape, const BlockPass& pass);

// Keys and values of the positions that a decoder has seen, [B·H, context, d/H] each.
struct SeenPositions {
  at::Tensor keys;
  at::Tensor values;
};

// Attention of one new position to itself and those before it, for one run: x [1, B, d] → [1, B,
// d]. Its keys and values become position `position` of `seen`.
at::Tensor NextAttention(const at::Tensor& x, const BlockParameters& block, int64_t heads,
                         int64_t position, const SeenPositions& seen);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_ATTENTION_H_
