#include "server/engine/torch/model/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <limits>
#include <vector>

#include "server/engine/core/layout.h"
#include "server/engine/torch/model/dropout.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/unrecorded.h"

// In the shapes: B rows, T positions, S of them still needed (T or 1), M = B·S, d features, H
// heads. Attention is composed of basic operations, so that it is twice differentiable.
namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Splits heads in one Function, because autograd would stack the parts' gradients before
// rearranging them.
class HeadSplitter : public torch::autograd::Function<HeadSplitter> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, int64_t rows,
                               int64_t parts, int64_t heads, bool copies) {
    const Unrecorded unrecorded;
    const int64_t features = x.size(-1), positions = x.numel() / (rows * features);
    const int64_t size = features / (parts * heads);
    ctx->saved_data["shape"] = x.sizes();
    ctx->saved_data["rows"] = rows;
    const at::Tensor whole = x.view({rows, positions, parts, heads, size});
    variable_list split;
    for (int64_t part = 0; part < parts; ++part) {
      const at::Tensor heads_of_part =
          whole.select(2, part).transpose(1, 2);  // [B, H, S, d/H], a view
      split.push_back(copies ? heads_of_part.reshape({rows * heads, positions, size})
                             : heads_of_part);
    }
    return split;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const Unrecorded unrecorded;
    const std::vector<int64_t> shape = ctx->saved_data["shape"].toIntVector();
    const int64_t rows = ctx->saved_data["rows"].toInt();
    const int64_t parts = static_cast<int64_t>(gradients.size());
    const int64_t positions = gradients[0].size(-2), size = gradients[0].size(-1);
    const int64_t heads = gradients[0].numel() / (rows * positions * size);
    if (at::GradMode::is_enabled()) {
      const at::Tensor stacked = at::stack(gradients).view({parts, rows, heads, positions, size});
      return {stacked.permute({1, 3, 0, 2, 4}).reshape(shape), {}, {}, {}, {}};
    }
    at::Tensor dx = at::empty(shape, gradients[0].options());
    const at::Tensor to = dx.view({rows, positions, parts, heads, size});
    for (int64_t part = 0; part < parts; ++part) {
      to.select(2, part).copy_(gradients[part]
                                   .reshape({rows, heads, positions, size})
                                   .transpose(1, 2));  // [B, S, H, d/H]
    }
    return {dx, {}, {}, {}, {}};
  }
};

// x [B·S, k·d] → k tensors [B·H, S, d/H]. Twice differentiable.
std::vector<at::Tensor> Split(const at::Tensor& x, int64_t k, int64_t heads,
                              const SequenceShape& shape) {
  return HeadSplitter::apply(x.contiguous(), shape.rows, k, heads, /*copies=*/true);
}

// x [B·S, k·d] → k views [B, H, S, d/H].
std::vector<at::Tensor> SplitViews(const at::Tensor& x, int64_t k, int64_t heads,
                                   const SequenceShape& shape) {
  return HeadSplitter::apply(x.contiguous(), shape.rows, k, heads, /*copies=*/false);
}

// x [B·H, S, d/H] → [B·S, d].
at::Tensor MergeHeads(const at::Tensor& x, int64_t heads) {
  return x
      .view({-1, heads, x.size(1), x.size(2)})  // [B, H, S, d/H]
      .transpose(1, 2)                          // [B, S, H, d/H]
      .reshape({-1, heads * x.size(2)});
}

// Returns the softmax of scores [N, S, T]. On a CPU, LibTorch processes a row shorter than a vector
// (16 floats) element by element, about ten times slower than a whole vector. Many short rows are
// therefore padded with keys of weight 0.
at::Tensor Softmax(const at::Tensor& scores) {
  constexpr int64_t kVector = 16, kMany = 64;
  const int64_t length = scores.size(2);
  const bool many = scores.size(0) * scores.size(1) >= kMany;
  if (length >= kVector || !many || !scores.is_cpu()) return scores.softmax(-1);
  const double hidden = -std::numeric_limits<double>::infinity();
  return at::constant_pad_nd(scores, {0, kVector - length}, hidden)
      .softmax(-1)
      .narrow(-1, 0, length);  // [N, S, T]
}

at::Tensor Weights(const at::Tensor& scores, const AttentionConfig& config) {
  switch (config.kind) {
    case AttentionKind::kSoftmax:
      return Softmax(scores);
    case AttentionKind::kSigmoid:
      return (scores + config.score_bias).sigmoid();
    case AttentionKind::kNone:
      break;
  }
  TORCH_CHECK(false, "a block without attention attends to nothing");
}

// Drops weights of one attention; null: no dropout.
using DropWeights = std::function<at::Tensor(const at::Tensor& weights)>;

// Heads of all rows form the batch: q [B·H, S, d/H], k and v [B·H, T, d/H] → context
// [B·S, d].
at::Tensor Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& bias, const ModelConfig& config, const BlockPass& pass,
                  const DropWeights& drop) {
  const double scale = ScoreScale(config);
  const at::Tensor keys = k.transpose(1, 2);  // [B·H, d/H, T]
  const at::Tensor scores =
      pass.At(HookPoint::kAttentionScores, bias.defined() ? at::baddbmm(bias, q, keys, 1, scale)
                                                          : q.bmm(keys) * scale);  // [B·H, S, T]
  at::Tensor weights =
      pass.At(HookPoint::kAttentionWeights, Weights(scores, config.attention));  // [B·H, S, T]
  if (drop) weights = drop(weights);
  const at::Tensor context = weights.bmm(v);                                      // [B·H, S, d/H]
  return pass.At(HookPoint::kAttentionHeads, MergeHeads(context, config.heads));  // [B·S, d]
}

at::Tensor CausalBias(const SequenceShape& shape, at::TensorOptions options) {
  return at::full({1, shape.length, shape.length}, -std::numeric_limits<double>::infinity(),
                  options)
      .triu_(1);  // [1, T, T]
}

at::Tensor PaddingBias(const SequenceShape& shape, int64_t heads, at::TensorOptions options) {
  if (!shape.lengths.defined()) return {};
  const at::Tensor position = at::arange(shape.length, shape.lengths.options());  // [T]
  const at::Tensor hidden = position.ge(shape.lengths.unsqueeze(1));              // [B, T]
  return at::zeros({shape.rows, shape.length}, options)
      .masked_fill_(hidden, -std::numeric_limits<double>::infinity())
      .view({shape.rows, 1, 1, shape.length})           // [B, 1, 1, T]
      .expand({-1, heads, -1, -1})                      // [B, H, 1, T]
      .reshape({shape.rows * heads, 1, shape.length});  // [B·H, 1, T]
}

// Returns the angles at `positions` [B, S], the same for every head.
Rotation MakeRotation(const ModelConfig& config, const at::Tensor& positions,
                      at::TensorOptions options) {
  const int64_t half = HeadSize(config) / 2;
  const at::TensorOptions exact = options.dtype(at::kDouble);
  const at::Tensor frequency =
      at::pow(1e4, at::arange(half, exact) / -static_cast<double>(half));          // [d/2H]
  const at::Tensor angle = positions.to(exact.dtype()).unsqueeze(-1) * frequency;  // [B, S, d/2H]
  const auto by_head = [&](const at::Tensor& values) {
    return values.to(options)
        .unsqueeze(1)
        .expand({-1, config.heads, -1, -1})
        .reshape({-1, positions.size(1), half});  // [B·H, S, d/2H]
  };
  return {by_head(angle.cos()), by_head(angle.sin())};
}

// Returns x [B·H, S, d/H] with rotated features.
at::Tensor Rotate(const at::Tensor& x, const Rotation& rotation) {
  if (!rotation.cosine.defined()) return x;
  const std::vector<at::Tensor> halves = x.chunk(2, -1);  // 2 × [B·H, S, d/2H]
  const auto& [cosine, sine] = rotation;
  return at::cat({halves[0] * cosine - halves[1] * sine, halves[1] * cosine + halves[0] * sine},
                 -1);
}

// Returns the numbering of attention weights for dropout. It assumes that every row has all of the
// model's positions, so that masks depend neither on padding nor on positions that a pass omits.
DropoutLines WeightLines(const ModelConfig& config, const at::Tensor& positions, int64_t keys,
                         int64_t first_row) {
  const int64_t rows = positions.size(0), context = config.context;
  const at::Tensor row = at::arange(first_row, first_row + rows, positions.options());
  const at::Tensor head =
      row.unsqueeze(1) * config.heads + at::arange(config.heads, positions.options());  // [B, H]
  const at::Tensor first =
      head.unsqueeze(2) * (context * context) + positions.unsqueeze(1) * context;  // [B, H, S]
  return {first.flatten(), keys};
}

// Returns outputs `begin`…`begin + count` of a fused linear.
LinearParameters OutputRange(const LinearParameters& linear, int64_t begin, int64_t count) {
  const auto range = [&](const at::Tensor& all) {
    return all.defined() ? all.narrow(0, begin, count) : at::Tensor();
  };
  return {range(linear.weight), range(linear.bias), range(linear.feedback)};
}

struct Heads {
  at::Tensor q;  // [B·H, S, d/H]
  at::Tensor k;  // [B·H, T, d/H]
  at::Tensor v;
};

Heads HeadsOf(const at::Tensor& x, const BlockParameters& block, const AttentionSetting& setting,
              Kept kept, const BlockPass& pass) {
  const SequenceShape& shape = setting.shape;
  const auto linear = [&](const at::Tensor& in, const LinearParameters& parameters) {
    return Linear(in, parameters, pass.rule(), pass.factors()).to(parameters.weight.scalar_type());
  };
  const int64_t d = x.size(1), heads = setting.config.heads;
  if (kept == Kept::kEvery) {
    const at::Tensor qkv = linear(x, block.qkv);  // [B·T, 3d]
    const std::vector<at::Tensor> split = Split(qkv, 3, heads, shape);
    return {Rotate(split[0], setting.every), Rotate(split[1], setting.every), split[2]};
  }
  const at::Tensor last = LastPositions(x, shape);                    // [B, d]
  const at::Tensor q = linear(last, OutputRange(block.qkv, 0, d));    // [B, d]
  const at::Tensor kv = linear(x, OutputRange(block.qkv, d, 2 * d));  // [B·T, 2d]
  const std::vector<at::Tensor> split = Split(kv, 2, heads, shape);
  return {Rotate(Split(q, 1, heads, shape)[0], setting.last), Rotate(split[0], setting.every),
          split[1]};
}

// Returns true if LibTorch's fused attention computes what Attend would.
bool CanFuse(const at::Tensor& x, const AttentionSetting& setting, const Pass& pass) {
  const AttentionConfig& attention = setting.config.attention;
  const bool plain =
      attention.kind == AttentionKind::kSoftmax && pass.dropout == nullptr && pass.hooks == nullptr;
  // Padding is on the right, where causal attention never looks.
  const bool sees_padding = !attention.causal && setting.shape.lengths.defined();
  const bool many = setting.config.loss == LossPositions::kAll &&
                    HasManyLogits(x.size(0), setting.config.vocabulary);
  const bool pays = !x.is_cpu() || pass.factors.has_value() || many;
  return pass.once && plain && !sees_padding && pays;
}

// Returns the attention of all positions, before the projection: x [B·T, d] → [B·T, d].
at::Tensor FusedAttention(const at::Tensor& x, const BlockParameters& block,
                          const AttentionSetting& setting, const BlockPass& pass) {
  const ModelConfig& config = setting.config;
  const SequenceShape& shape = setting.shape;
  const at::Tensor qkv = Linear(x, block.qkv, pass.rule(), pass.factors());  // [B·T, 3d]
  std::vector<at::Tensor> heads;
  if (setting.every.cosine.defined()) {
    heads = Split(qkv, 3, config.heads, shape);  // 3 × [B·H, T, d/H]
    for (size_t i = 0; i < 2; ++i) heads[i] = Rotate(heads[i], setting.every);
    for (at::Tensor& head : heads) {
      head =
          head.to(qkv.scalar_type()).view({shape.rows, config.heads, shape.length, head.size(2)});
    }
  } else {
    heads = SplitViews(qkv, 3, config.heads, shape);  // 3 × [B, H, T, d/H]
  }
  const at::Tensor context =
      at::scaled_dot_product_attention(heads[0], heads[1], heads[2], /*attn_mask=*/{},
                                       /*dropout_p=*/0, config.attention.causal,
                                       ScoreScale(config));  // [B, H, T, d/H]
  return context.transpose(1, 2).reshape({shape.rows * shape.length, -1});
}

}  // namespace

at::Tensor PositionsOf(const SequenceShape& shape, Kept kept, at::TensorOptions options) {
  const at::TensorOptions integers = options.dtype(at::kLong);
  if (kept == Kept::kEvery) {
    return at::arange(shape.length, integers).expand({shape.rows, -1});
  }
  if (shape.lengths.defined()) return (shape.lengths - 1).unsqueeze(1);
  return at::full({shape.rows, 1}, shape.length - 1, integers);
}

at::Tensor LastPositions(const at::Tensor& x, const SequenceShape& shape) {
  const at::Tensor rows = x.view({shape.rows, shape.length, x.size(1)});
  if (!shape.lengths.defined()) return rows.select(1, shape.length - 1);  // [B, d]
  const at::Tensor last = (shape.lengths - 1).view({shape.rows, 1, 1});
  return rows.gather(1, last.expand({-1, 1, x.size(1)})).squeeze(1);  // [B, d]
}

AttentionSetting MakeAttentionSetting(const ModelConfig& config, const SequenceShape& shape,
                                      at::TensorOptions options) {
  AttentionSetting setting = {config, shape, {}, {}, {}, {}};
  if (!Attends(config)) return setting;
  // The last position may see everything except padding.
  setting.last_bias = PaddingBias(shape, config.heads, options);
  // Padding is on the right, which causal queries never see.
  setting.every_bias = config.attention.causal ? CausalBias(shape, options) : setting.last_bias;
  if (config.positions == Positions::kRotary) {
    setting.every = MakeRotation(config, PositionsOf(shape, Kept::kEvery, options), options);
    setting.last = MakeRotation(config, PositionsOf(shape, Kept::kLast, options), options);
  }
  return setting;
}

at::Tensor SelfAttention(const at::Tensor& x, const BlockParameters& block,
                         const AttentionSetting& setting, Kept kept, const BlockPass& pass) {
  const ModelConfig& config = setting.config;
  const SequenceShape& shape = setting.shape;
  if (kept == Kept::kEvery && CanFuse(x, setting, pass.pass)) {
    return Linear(FusedAttention(x, block, setting, pass), block.projection, pass.rule(),
                  pass.factors());
  }
  const Heads heads = HeadsOf(x, block, setting, kept, pass);
  DropWeights drop;
  if (const Dropout* dropout = pass.pass.dropout) {
    drop = [&, dropout](const at::Tensor& weights) {
      const DropoutLines lines = WeightLines(config, PositionsOf(shape, kept, x.device()),
                                             shape.length, dropout->first_row);
      return Drop(weights, *dropout, HookPointName(HookPoint::kAttentionWeights, pass.block),
                  lines);
    };
  }
  const at::Tensor& bias = kept == Kept::kEvery ? setting.every_bias : setting.last_bias;
  const at::Tensor context =
      Attend(heads.q, heads.k, heads.v, bias, config, pass, drop);        // [B·S, d]
  return Linear(context, block.projection, pass.rule(), pass.factors());  // [B·S, d]
}

at::Tensor NextAttention(const at::Tensor& x, const BlockParameters& block,
                         const ModelConfig& config, int64_t position, const SeenPositions& seen) {
  const SequenceShape shape = {x.size(0), 1, {}};
  const at::Tensor qkv = Linear(x, block.qkv, LearningRule::kBackprop);      // [B, 3d]
  const std::vector<at::Tensor> split = Split(qkv, 3, config.heads, shape);  // 3 × [B·H, 1, d/H]
  Rotation rotation;
  if (config.positions == Positions::kRotary) {
    const at::Tensor here = at::full({x.size(0), 1}, position, x.options().dtype(at::kLong));
    rotation = MakeRotation(config, here, x.options());
  }
  seen.keys.narrow(1, position, 1).copy_(Rotate(split[1], rotation));
  seen.values.narrow(1, position, 1).copy_(split[2]);
  const at::Tensor context =
      Attend(Rotate(split[0], rotation), seen.keys.narrow(1, 0, position + 1),
             seen.values.narrow(1, 0, position + 1), {}, config, {Pass(), 0}, nullptr);
  return Linear(context, block.projection, LearningRule::kBackprop);  // [B, d]
}

}  // namespace ablate::engine
