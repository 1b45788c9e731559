#include "server/engine/model/transformer.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>

#include "server/engine/layout.h"
#include "server/engine/model/layers.h"

// In the shapes: R runs, B rows, T positions, S of them still needed (T or 1), M = B·S, d features,
// H heads. Attention is written out so that it can be differentiated twice.
namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What every block of one forward pass knows of its batch.
struct SequenceShape {
  int64_t runs = 0;
  int64_t rows = 0;
  int64_t length = 0;
  at::Tensor lengths;  // [R, B]; undefined when no row is padded
};

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

// Added to the scores: −∞ where a query may not look. Undefined, [1, T, T] or [R·B·H, T or 1, T].
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

// x [R, B·T, d] → the last real position of every row, [R, B, d].
at::Tensor LastPositions(const at::Tensor& x, const SequenceShape& shape) {
  const at::Tensor sequences = x.view({shape.runs, shape.rows, shape.length, x.size(2)});
  if (!shape.lengths.defined()) return sequences.select(2, shape.length - 1);  // [R, B, d]
  const at::Tensor last = (shape.lengths - 1).view({shape.runs, shape.rows, 1, 1});
  return sequences.gather(2, last.expand({-1, -1, 1, x.size(2)})).squeeze(2);  // [R, B, d]
}

// x [R, B·T, d] → [R, B·T, d] after the projection.
at::Tensor SelfAttention(const at::Tensor& x, const BlockParameters& block, int64_t heads,
                         const at::Tensor& bias, const SequenceShape& shape,
                         const BlockPass& pass) {
  const at::Tensor qkv = Linear(x, block.qkv, pass.rule());           // [R, B·T, 3d]
  const std::vector<at::Tensor> split = Split(qkv, 3, heads, shape);  // 3 × [R·B·H, T, d/H]
  const at::Tensor context =
      Attend(split[0], split[1], split[2], bias, heads, shape, pass);  // [R, B·T, d]
  return Linear(context, block.projection, pass.rule());               // [R, B·T, d]
}

// The same with queries at the last positions only: x [R, B·T, d] → [R, B, d]. `bias` hides padding
// alone: the last position may look everywhere.
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

// Attention of one new position to itself and those before it, for one run: x [1, B, d] → [1, B,
// d]. Its keys and values become position `position` of `seen`.
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

at::Tensor Activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return x.relu();
    case Activation::kGelu:
      return at::gelu(x, "none");
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
  }
  TORCH_CHECK(false, "unknown activation");
}

at::Tensor Embed(const ModelParameters& parameters, const StackBatch& batch) {
  const at::Tensor x = Embedding(parameters.token_embedding, batch.tokens);  // [R, B·T, d]
  if (!parameters.position_embedding.defined()) return x;
  const at::Tensor positions =
      parameters.position_embedding.narrow(1, 0, batch.length).unsqueeze(1);  // [R, 1, T, d]
  const at::Tensor sequences = x.view({batch.runs, batch.rows, batch.length, x.size(2)});
  return (sequences + positions).view(x.sizes());  // [R, B·T, d]
}

// How one sublayer meets the residual stream: x → x + f(norm x), norm(x + f x) or x + f x, without
// x when there are no residual additions.
struct Sublayer {
  const ModelConfig& config;
  const NormParameters& norm;
  bool has_norm;

  at::Tensor Before(const at::Tensor& x) const {
    const bool pre = has_norm && config.norm.placement == NormPlacement::kPre;
    return pre ? Norm(x, norm, config.norm) : x;
  }
  at::Tensor After(const at::Tensor& stream, const at::Tensor& update) const {
    const at::Tensor sum = config.residual ? stream + update : update;
    const bool post = has_norm && config.norm.placement == NormPlacement::kPost;
    return post ? Norm(sum, norm, config.norm) : sum;
  }
};

// One block. `mix` attends, [R, N, d] → [R, M, d]; `kept` are the M positions of x that go on.
template <typename Mix, typename Kept>
at::Tensor ApplyBlock(const ModelConfig& config, const BlockParameters& block, const at::Tensor& x,
                      const BlockPass& pass, const Mix& mix, const Kept& kept) {
  const Sublayer attention = {config, block.attention_norm, HasAttentionNorm(config.norm)};
  const Sublayer feed_forward = {config, block.feed_forward_norm, HasFeedForwardNorm(config.norm)};
  const auto linear = [&pass](const at::Tensor& in, const LinearParameters& parameters) {
    return Linear(in, parameters, pass.rule());
  };
  const at::Tensor mixed =
      pass.At(Site::kAttentionOutput,
              mix(pass.At(Site::kAttentionInput, attention.Before(x))));                // [R, M, d]
  const at::Tensor stream = attention.After(kept(x), mixed);                            // [R, M, d]
  const at::Tensor in = pass.At(Site::kFeedForwardInput, feed_forward.Before(stream));  // [R, M, d]
  const at::Tensor hidden = pass.At(
      Site::kFeedForwardHidden, Activate(linear(in, block.up), config.activation));  // [R, M, h]
  const at::Tensor down =
      pass.At(Site::kFeedForwardOutput, linear(hidden, block.down));  // [R, M, d]
  return pass.At(Site::kBlockOutput, feed_forward.After(stream, down));
}

at::Tensor Scores(const ModelConfig& config, const ModelParameters& parameters, at::Tensor x,
                  const BlockPass& pass) {
  if (config.norm.final) x = Norm(x, parameters.final_norm, config.norm);  // [R, M, d]
  x = Linear(pass.At(Site::kHeadInput, x), parameters.head, pass.rule());  // [R, M, V]
  return pass.At(Site::kLogits, x);
}

struct AttentionMask {
  at::Tensor every;  // for queries at every position
  at::Tensor last;   // for queries at the last position
};

AttentionMask MakeMask(const ModelConfig& config, const SequenceShape& shape,
                       at::TensorOptions options) {
  AttentionMask mask;
  mask.last = PaddingBias(shape, config.heads, options);
  // Padding is on the right, where causal queries never look.
  mask.every = config.causal ? CausalBias(shape, options) : mask.last;
  return mask;
}

}  // namespace

at::Tensor Logits(const ModelConfig& config, const ModelParameters& parameters,
                  const StackBatch& batch, const Pass& pass) {
  const SequenceShape shape = {batch.runs, batch.rows, batch.length, batch.lengths};
  const AttentionMask mask = MakeMask(config, shape, parameters.token_embedding.options());
  const BlockPass whole{pass};
  at::Tensor x = whole.At(Site::kEmbedding, Embed(parameters, batch));  // [R, B·T, d]
  for (int i = 0; i < config.layers; ++i) {
    const BlockParameters& block = parameters.blocks[static_cast<size_t>(i)];
    const BlockPass here{pass, i};
    const bool last = config.loss == LossPositions::kLast && i + 1 == config.layers;
    const auto mix = [&](const at::Tensor& a) {  // [R, B·T, d] → [R, B·S, d]
      return last ? LastAttention(a, block, config.heads, mask.last, shape, here)
                  : SelfAttention(a, block, config.heads, mask.every, shape, here);
    };
    const auto kept = [&](const at::Tensor& all) { return last ? LastPositions(all, shape) : all; };
    x = ApplyBlock(config, block, x, here, mix, kept);  // [R, B·S, d]
  }
  return Scores(config, parameters, x, whole);  // [R, B·S, V]
}

Decoder::Decoder(const ModelConfig& config, const ModelParameters& parameters, int64_t rows)
    : config_(config), parameters_(parameters) {
  const at::TensorOptions options = parameters.token_embedding.options();
  const int64_t size = config.width / config.heads;
  for (size_t block = 0; block < parameters.blocks.size(); ++block) {
    const auto room = [&] {
      return at::empty({rows * config.heads, config.context, size}, options.requires_grad(false));
    };
    seen_.push_back({room(), room()});
  }
}

at::Tensor Decoder::Next(const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  at::Tensor x = Embedding(parameters_.token_embedding, tokens.unsqueeze(0));  // [1, B, d]
  if (parameters_.position_embedding.defined()) {
    x = x + parameters_.position_embedding.narrow(1, position_, 1);  // [1, B, d]
  }
  const Pass pass;
  const auto kept = [](const at::Tensor& all) { return all; };
  for (size_t i = 0; i < seen_.size(); ++i) {
    const BlockParameters& block = parameters_.blocks[i];
    const auto mix = [&](const at::Tensor& a) {
      return NextAttention(a, block, config_.heads, position_, seen_[i]);
    };
    x = ApplyBlock(config_, block, x, {pass}, mix, kept);  // [1, B, d]
  }
  ++position_;
  return Scores(config_, parameters_, x, {pass}).squeeze(0);  // [B, V]
}

void Decoder::Keep(const at::Tensor& rows) {
  const auto select = [&](const at::Tensor& all) {
    return all.view({-1, config_.heads, all.size(1), all.size(2)})
        .index_select(0, rows)
        .flatten(0, 1);  // [B'·H, context, d/H]
  };
  for (SeenPositions& seen : seen_) seen = {select(seen.keys), select(seen.values)};
}

}  // namespace ablate::engine
