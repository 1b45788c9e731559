#include "server/engine/model/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>
#include <vector>

#include "server/engine/model/layers.h"

namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Sizes of a split: G sequences (all rows of all runs), k tensors side by side, H heads.
struct HeadSplit {
  int64_t sequences = 0;
  int64_t parts = 0;
  int64_t heads = 0;
};

// A Function of its own: autograd would stack the parts' gradients before it rearranges them.
class HeadSplitter : public torch::autograd::Function<HeadSplitter> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, int64_t sequences,
                               int64_t parts, int64_t heads) {
    const int64_t features = x.size(-1), positions = x.numel() / (sequences * features);
    const int64_t size = features / (parts * heads);
    ctx->saved_data["shape"] = x.sizes();
    ctx->saved_data["sequences"] = sequences;
    const at::Tensor rows = x.view({sequences, positions, parts, heads, size});
    variable_list split;
    for (int64_t part = 0; part < parts; ++part) {
      split.push_back(rows.select(2, part)  // [G, S, H, d/H]
                          .transpose(1, 2)  // [G, H, S, d/H]
                          .reshape({sequences * heads, positions, size}));
    }
    return split;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const std::vector<int64_t> shape = ctx->saved_data["shape"].toIntVector();
    const int64_t sequences = ctx->saved_data["sequences"].toInt();
    const int64_t parts = static_cast<int64_t>(gradients.size());
    const int64_t heads = gradients[0].size(0) / sequences, positions = gradients[0].size(1);
    const int64_t size = gradients[0].size(2);
    if (at::GradMode::is_enabled()) {
      const at::Tensor stacked =
          at::stack(gradients).view({parts, sequences, heads, positions, size});
      return {stacked.permute({1, 3, 0, 2, 4}).reshape(shape), {}, {}, {}};
    }
    at::Tensor dx = at::empty(shape, gradients[0].options());
    const at::Tensor to = dx.view({sequences, positions, parts, heads, size});
    for (int64_t part = 0; part < parts; ++part) {
      to.select(2, part).copy_(gradients[part]
                                   .view({sequences, heads, positions, size})
                                   .transpose(1, 2));  // [G, S, H, d/H]
    }
    return {dx, {}, {}, {}};
  }
};

// x with G·S rows of k·d features, in any shape → k tensors [G·H, S, d/H]. Differentiable twice.
std::vector<at::Tensor> SplitHeads(const at::Tensor& x, const HeadSplit& split) {
  return HeadSplitter::apply(x.contiguous(), split.sequences, split.parts, split.heads);
}

// x [G·H, S, d/H] → [G, S, d].
at::Tensor MergeHeads(const at::Tensor& x, const HeadSplit& split) {
  return x
      .view({split.sequences, split.heads, x.size(1), x.size(2)})  // [G, H, S, d/H]
      .transpose(1, 2)                                             // [G, S, H, d/H]
      .reshape({split.sequences, x.size(1), split.heads * x.size(2)});
}

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

// Heads of all rows and runs form the batch: q [R·B·H, S, d/H], k and v [R·B·H, T, d/H] → context
// [R, B·S, d].
at::Tensor Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& bias, int64_t heads, const SequenceShape& shape,
                  const BlockPass& pass) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(2)));
  const at::Tensor keys = k.transpose(1, 2);  // [R·B·H, d/H, T]
  const at::Tensor scores =
      bias.defined() ? at::baddbmm(bias, q, keys, 1, scale) : q.bmm(keys) * scale;  // [R·B·H, S, T]
  const at::Tensor weights = pass.At(Site::kAttentionWeights, Weights(scores));  // [R·B·H, S, T]
  const at::Tensor context = weights.bmm(v);  // [R·B·H, S, d/H]
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
                         const at::Tensor& bias, const SequenceShape& shape,
                         const BlockPass& pass) {
  const at::Tensor qkv = Linear(x, block.qkv, pass.rule());           // [R, B·T, 3d]
  const std::vector<at::Tensor> split = Split(qkv, 3, heads, shape);  // 3 × [R·B·H, T, d/H]
  const at::Tensor context =
      Attend(split[0], split[1], split[2], bias, heads, shape, pass);  // [R, B·T, d]
  return Linear(context, block.projection, pass.rule());               // [R, B·T, d]
}

at::Tensor LastAttention(const at::Tensor& x, const BlockParameters& block, int64_t heads,
                         const at::Tensor& bias, const SequenceShape& shape,
                         const BlockPass& pass) {
  const int64_t d = x.size(2);
  const at::Tensor last = LastPositions(x, shape);                                 // [R, B, d]
  const at::Tensor q = Linear(last, OutputRange(block.qkv, 0, d), pass.rule());    // [R, B, d]
  const at::Tensor kv = Linear(x, OutputRange(block.qkv, d, 2 * d), pass.rule());  // [R, B·T, 2d]
  const std::vector<at::Tensor> queries = Split(q, 1, heads, shape);  // [R·B·H, 1, d/H]
  const std::vector<at::Tensor> split = Split(kv, 2, heads, shape);   // 2 × [R·B·H, T, d/H]
  const at::Tensor context =
      Attend(queries[0], split[0], split[1], bias, heads, shape, pass);  // [R, B, d]
  return Linear(context, block.projection, pass.rule());                 // [R, B, d]
}

at::Tensor NextAttention(const at::Tensor& x, const BlockParameters& block, int64_t heads,
                         int64_t position, const SeenPositions& seen) {
  const SequenceShape shape = {1, x.size(1), 1, {}};
  const at::Tensor qkv = Linear(x, block.qkv, LearningRule::kBackprop);  // [1, B, 3d]
  const std::vector<at::Tensor> split = Split(qkv, 3, heads, shape);     // 3 × [B·H, 1, d/H]
  seen.keys.narrow(1, position, 1).copy_(split[1]);
  seen.values.narrow(1, position, 1).copy_(split[2]);
  const at::Tensor context =
      Attend(split[0], seen.keys.narrow(1, 0, position + 1), seen.values.narrow(1, 0, position + 1),
             {}, heads, shape, {Pass(), 0});
  return Linear(context, block.projection, LearningRule::kBackprop);  // [1, B, d]
}

}  // namespace ablate::engine
