// Attention as two batched products around a softmax; heads of all rows and runs form the batch.
#include "server/engine/model/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "server/engine/model/heads.h"
#include "server/engine/model/linear.h"

namespace ablate::engine {
namespace {

// Row ranges of a fused linear: `begin`…`begin + count` of its outputs.
LinearParameters OutputRange(const LinearParameters& linear, int64_t begin, int64_t count) {
  return {linear.weight.narrow(1, begin, count),
          linear.bias.defined() ? linear.bias.narrow(1, begin, count) : at::Tensor()};
}

// x [R, B·S, k·d] → k tensors [R·B·H, S, d/H].
std::vector<at::Tensor> Split(const at::Tensor& x, int64_t k, int64_t heads,
                              const SequenceShape& shape) {
  return SplitHeads(x, {shape.runs * shape.rows, k, heads});
}

// Attention weights of scores [N, S, T]. LibTorch's softmax takes a row that is shorter than a
// vector (16 floats) element by element, some ten times slower than a whole one, so that many short
// rows are filled up with keys of weight 0.
at::Tensor Weights(const at::Tensor& scores) {
  constexpr int64_t kVector = 16, kMany = 64;
  const int64_t length = scores.size(2);
  if (length >= kVector || scores.size(0) * scores.size(1) < kMany) return scores.softmax(-1);
  const double hidden = -std::numeric_limits<double>::infinity();
  return at::constant_pad_nd(scores, {0, kVector - length}, hidden)
      .softmax(-1)
      .narrow(-1, 0, length);  // [N, S, T]
}

// q [R·B·H, S, d/H], k and v [R·B·H, T, d/H] → context [R, B·S, d].
at::Tensor Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& bias, int64_t heads, const SequenceShape& shape) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(2)));
  const at::Tensor keys = k.transpose(1, 2);  // [R·B·H, d/H, T]
  const at::Tensor scores =
      bias.defined() ? at::baddbmm(bias, q, keys, 1, scale) : q.bmm(keys) * scale;  // [R·B·H, S, T]
  const at::Tensor weights = Weights(scores);  // [R·B·H, S, T]
  const at::Tensor context = weights.bmm(v);   // [R·B·H, S, d/H]
  const at::Tensor merged =
      MergeHeads(context, {shape.runs * shape.rows, 1, heads});  // [R·B, S, d]
  return merged.view({shape.runs, -1, merged.size(2)});          // [R, B·S, d]
}

}  // namespace

at::Tensor CausalBias(const SequenceShape& shape, at::TensorOptions options) {
  return at::full({1, shape.length, shape.length}, -std::numeric_limits<double>::infinity(),
                  options)
      .triu_(1);  // [1, T, T]
}

at::Tensor PaddingBias(const SequenceShape& shape, int64_t heads, at::TensorOptions options) {
  if (!shape.lengths.defined()) return {};
  const at::Tensor position = at::arange(shape.length, shape.lengths.options());  // [T]
  const at::Tensor hidden = position.ge(shape.lengths.unsqueeze(2));              // [R, B, T]
  return at::zeros({shape.runs, shape.rows, shape.length}, options)
      .masked_fill_(hidden, -std::numeric_limits<double>::infinity())
      .view({shape.runs * shape.rows, 1, 1, shape.length})           // [R·B, 1, 1, T]
      .expand({-1, heads, -1, -1})                                   // [R·B, H, 1, T]
      .reshape({shape.runs * shape.rows * heads, 1, shape.length});  // [R·B·H, 1, T]
}

at::Tensor LastPositions(const at::Tensor& x, const SequenceShape& shape) {
  const at::Tensor sequences = x.view({shape.runs, shape.rows, shape.length, x.size(2)});
  if (!shape.lengths.defined()) return sequences.select(2, shape.length - 1);  // [R, B, d]
  const at::Tensor last = (shape.lengths - 1).view({shape.runs, shape.rows, 1, 1});
  return sequences.gather(2, last.expand({-1, -1, 1, x.size(2)})).squeeze(2);  // [R, B, d]
}

at::Tensor SelfAttention(const at::Tensor& x, const BlockParameters& block, int64_t heads,
                         const at::Tensor& bias, const SequenceShape& shape, LearningRule rule) {
  const at::Tensor qkv = Linear(x, block.qkv, rule);                  // [R, B·T, 3d]
  const std::vector<at::Tensor> split = Split(qkv, 3, heads, shape);  // 3 × [R·B·H, T, d/H]
  const at::Tensor context =
      Attend(split[0], split[1], split[2], bias, heads, shape);  // [R, B·T, d]
  return Linear(context, block.projection, rule);                // [R, B·T, d]
}

at::Tensor LastAttention(const at::Tensor& x, const BlockParameters& block, int64_t heads,
                         const at::Tensor& bias, const SequenceShape& shape, LearningRule rule) {
  const int64_t d = x.size(2);
  const at::Tensor last = LastPositions(x, shape);                          // [R, B, d]
  const at::Tensor q = Linear(last, OutputRange(block.qkv, 0, d), rule);    // [R, B, d]
  const at::Tensor kv = Linear(x, OutputRange(block.qkv, d, 2 * d), rule);  // [R, B·T, 2d]
  const std::vector<at::Tensor> queries = Split(q, 1, heads, shape);        // [R·B·H, 1, d/H]
  const std::vector<at::Tensor> split = Split(kv, 2, heads, shape);  // 2 × [R·B·H, T, d/H]
  const at::Tensor context =
      Attend(queries[0], split[0], split[1], bias, heads, shape);  // [R, B, d]
  return Linear(context, block.projection, rule);                  // [R, B, d]
}

at::Tensor NextAttention(const at::Tensor& x, const BlockParameters& block, int64_t heads,
                         int64_t position, const SeenPositions& seen) {
  const SequenceShape shape = {1, x.size(1), 1, {}};
  const at::Tensor qkv = Linear(x, block.qkv, LearningRule::kBackprop);  // [1, B, 3d]
  const std::vector<at::Tensor> split = Split(qkv, 3, heads, shape);     // 3 × [B·H, 1, d/H]
  seen.keys.narrow(1, position, 1).copy_(split[1]);
  seen.values.narrow(1, position, 1).copy_(split[2]);
  const at::Tensor context = Attend(split[0], seen.keys.narrow(1, 0, position + 1),
                                    seen.values.narrow(1, 0, position + 1), {}, heads, shape);
  return Linear(context, block.projection, LearningRule::kBackprop);  // [1, B, d]
}

}  // namespace ablate::engine
