#include "server/engine/torch/model/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "server/engine/core/layout.h"
#include "server/engine/torch/model/dropout.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/norm.h"
#include "server/engine/torch/model/unrecorded.h"

// In the shapes: B rows, T positions, S of them still needed (T or 1), M = B·S, d features, H heads
// of queries, K heads of keys and values. Attention is composed of basic operations, so that it is
// twice differentiable.
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

// Returns the softmax over the keys and the sink, without the sink's weight. `sink` [H]; scores
// [B·H, S, T].
at::Tensor SinkSoftmax(const at::Tensor& scores, const at::Tensor& sink) {
  const int64_t rows = scores.size(0) / sink.size(0);
  const at::Tensor more = sink.view({1, -1, 1, 1})
                              .expand({rows, -1, scores.size(1), 1})
                              .reshape({scores.size(0), scores.size(1), 1});
  return Softmax(at::cat({scores, more}, -1)).narrow(-1, 0, scores.size(2));
}

at::Tensor Weights(const at::Tensor& scores, const AttentionConfig& config,
                   const at::Tensor& sink) {
  switch (config.kind) {
    case AttentionKind::kSoftmax:
      return sink.defined() ? SinkSoftmax(scores, sink) : Softmax(scores);
    case AttentionKind::kSigmoid:
      return (scores + config.score_bias).sigmoid();
    case AttentionKind::kNone:
      break;
  }
  TORCH_CHECK(false, "a block without attention attends to nothing");
}

// Drops weights of one attention; null: no dropout.
using DropWeights = std::function<at::Tensor(const at::Tensor& weights)>;

// Queries [B·H, S, d/H], keys and values [B·H, T, d/H].
struct Heads {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
};

// Returns s·qkᵀ, capped, with `bias` added, [B·H, S, T].
at::Tensor Scores(const Heads& heads, const at::Tensor& bias, const ModelConfig& config) {
  const double scale = ScoreScale(config), cap = config.attention.score_cap;
  const at::Tensor keys = heads.k.transpose(1, 2);  // [B·H, d/H, T]
  if (cap > 0) {
    const at::Tensor capped = Capped(heads.q.bmm(keys) * scale, cap);
    return bias.defined() ? capped + bias : capped;
  }
  return bias.defined() ? at::baddbmm(bias, heads.q, keys, 1, scale) : heads.q.bmm(keys) * scale;
}

// Returns the context, [B·S, d].
at::Tensor Attend(const Heads& heads, const at::Tensor& bias, const at::Tensor& sink,
                  const ModelConfig& config, const BlockPass& pass, const DropWeights& drop) {
  const at::Tensor scores =
      pass.At(HookPoint::kAttentionScores, Scores(heads, bias, config));  // [B·H, S, T]
  at::Tensor weights = pass.At(HookPoint::kAttentionWeights,
                               Weights(scores, config.attention, sink));  // [B·H, S, T]
  if (drop) weights = drop(weights);
  const at::Tensor context = weights.bmm(heads.v);                                // [B·H, S, d/H]
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

// Returns ALiBi's slopes (Press et al. 2022), [H]: 2^(−8(h+1)/H) if H is a power of two; otherwise
// those of the power n below it, followed by every other one of 2n. Computed on the device, because
// a captured graph can't copy numbers of the host.
at::Tensor AlibiSlopes(int heads, at::TensorOptions options) {
  int power = 1;
  while (2 * power <= heads) power *= 2;
  const at::Tensor head = at::arange(heads, options.dtype(at::kDouble));
  const at::Tensor exponent =
      at::where(head.lt(power), (head + 1) * -8.0, ((head - power) * 2 + 1) * -4.0) / power;
  return exponent.exp2().to(options);
}

// Returns the term of queries at `positions` [B, S] for keys 0…T − 1: [1, S, T] if it is the same
// for all rows and heads, else [B·H, S, T].
at::Tensor BiasOf(const ModelConfig& config, const SequenceShape& shape, at::Tensor positions,
                  int64_t keys, bool windowed, at::TensorOptions options) {
  const AttentionConfig& attention = config.attention;
  const int64_t rows = positions.size(0), queries = positions.size(1);
  const bool padded = shape.lengths.defined(), by_head = config.positions == Positions::kAlibi;
  if (!padded) positions = positions.narrow(0, 0, 1);            // rows are alike
  const at::Tensor key = at::arange(keys, positions.options());  // [T]
  const at::Tensor distance = positions.unsqueeze(-1) - key;     // [B, S, T]
  at::Tensor hidden = at::zeros_like(distance, at::kBool);       // [B, S, T]
  if (attention.causal) hidden = hidden.logical_or(distance.lt(0));
  if (windowed) hidden = hidden.logical_or(distance.abs().ge(attention.window));
  if (padded) {
    // Padding sees itself, because a position that saw nothing would have no softmax.
    const at::Tensor padding = key.ge(shape.lengths.unsqueeze(1)).unsqueeze(1);  // [B, 1, T]
    hidden = hidden.logical_or(padding.logical_and(distance.ne(0)));
  }
  at::Tensor bias = at::zeros(hidden.sizes(), options)
                        .masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  if (!padded && !by_head) return bias;
  bias = bias.unsqueeze(1);  // [B, 1, S, T]
  if (by_head) {
    const at::Tensor slopes = AlibiSlopes(config.heads, options).view({-1, 1, 1});  // [H, 1, 1]
    bias = bias - slopes * distance.abs().unsqueeze(1);                             // [B, H, S, T]
  }
  return bias.expand({rows, config.heads, -1, -1}).reshape({-1, queries, keys});
}

// Returns the terms for the kept positions.
ScoreBias ScoreBiasOf(const ModelConfig& config, const SequenceShape& shape, Kept kept,
                      at::TensorOptions options) {
  const at::Tensor positions = PositionsOf(shape, kept, options);
  ScoreBias bias;
  if (config.attention.window > 0) {
    bias.windowed = BiasOf(config, shape, positions, shape.length, true, options);
    if (config.attention.full_every == 0) return bias;
  }
  if (config.positions == Positions::kAlibi) {
    bias.full = BiasOf(config, shape, positions, shape.length, false, options);
  } else if (kept == Kept::kEvery && config.attention.causal) {
    bias.full = CausalBias(shape, options);  // padding is on the right, which queries never see
  } else {
    bias.full = PaddingBias(shape, config.heads, options);  // the last position sees all others
  }
  return bias;
}

bool IsWindowed(const AttentionConfig& attention, int block) {
  return attention.window > 0 && !IsNth(attention.full_every, block);
}

// Returns the angles at `positions` [B, S].
Rotation MakeRotation(const ModelConfig& config, const at::Tensor& positions,
                      at::TensorOptions options) {
  const int64_t pairs = RotatedFeatures(config) / 2;
  const at::TensorOptions exact = options.dtype(at::kDouble);
  const at::Tensor frequency =
      at::pow(config.rotary.theta, at::arange(pairs, exact) / -static_cast<double>(pairs));  // [r]
  const at::Tensor angle = positions.to(exact.dtype()).unsqueeze(-1) * frequency;  // [B, S, r]
  return {angle.cos().to(options).unsqueeze(1), angle.sin().to(options).unsqueeze(1)};
}

// Returns x [B·H, S, d/H] with rotated features.
at::Tensor Rotate(const at::Tensor& x, const Rotation& rotation) {
  if (!rotation.cosine.defined()) return x;
  const auto& [cosine, sine] = rotation;
  const int64_t pairs = cosine.size(-1), rest = x.size(-1) - 2 * pairs;
  const at::Tensor heads = x.view({cosine.size(0), -1, x.size(1), x.size(2)});  // [B, H, S, d/H]
  const at::Tensor low = heads.narrow(-1, 0, pairs), high = heads.narrow(-1, pairs, pairs);
  std::vector<at::Tensor> parts = {low * cosine - high * sine, high * cosine + low * sine};
  if (rest > 0) parts.push_back(heads.narrow(-1, 2 * pairs, rest));
  return at::cat(parts, -1).view(x.sizes());
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

// Returns queries or keys x [B·N, S, d/H] of N heads after their norm.
at::Tensor NormHeads(const at::Tensor& x, const NormParameters& norm, const ModelConfig& config,
                     int64_t heads) {
  const QkNormConfig& qk = config.attention.qk_norm;
  NormPass pass;
  pass.config.kind = NormKindOf(qk.kind);
  pass.config.eps = config.norm.eps;
  if (qk.scope == QkNormScope::kHead) {
    return Norm(x.reshape({-1, x.size(2)}), norm, pass).view(x.sizes());
  }
  return Norm(MergeHeads(x, heads), norm, pass)  // [B·S, N·d/H]
      .view({-1, x.size(1), heads, x.size(2)})
      .transpose(1, 2)
      .reshape(x.sizes());
}

// Returns queries or keys x [B·N, S, d/H] of N heads, normalised and rotated.
at::Tensor Turned(const at::Tensor& x, const NormParameters& norm, const Rotation& rotation,
                  const ModelConfig& config, int64_t heads) {
  const QkNormConfig& qk = config.attention.qk_norm;
  if (qk.kind == QkNormKind::kNone) return Rotate(x, rotation);
  if (qk.place == QkNormPlace::kAfter) return NormHeads(Rotate(x, rotation), norm, config, heads);
  return Rotate(NormHeads(x, norm, config, heads), rotation);
}

// Returns a block's values [B·K, T, d/H], mixed with those of the first block.
at::Tensor MixValues(const at::Tensor& values, const BlockParameters& block,
                     const ModelConfig& config, const BlockPass& pass, at::Tensor& first_values) {
  if (config.attention.value_residual == ValueResidual::kNone) return values;
  if (pass.block == 0) {
    // A block that learns from the output error has no gradient from later ones.
    first_values = pass.rule() == LearningRule::kDirectFeedbackAlignment ? values.detach() : values;
    return values;
  }
  if (!block.value_mix.defined()) return (values + first_values) * 0.5;
  return values * block.value_mix + first_values * (1 - block.value_mix);
}

// Repeats each head of x [B·K, T, d/H] for the heads of queries that share it, [B·H, T, d/H].
at::Tensor RepeatHeads(const at::Tensor& x, const ModelConfig& config) {
  const int64_t shared = config.heads / KvHeads(config);
  if (shared == 1) return x;
  return x.unsqueeze(1).expand({-1, shared, -1, -1}).reshape({-1, x.size(1), x.size(2)});
}

// Returns the heads of the linear; keys and values have K heads.
Heads SplitHeads(const at::Tensor& x, const BlockParameters& block, const AttentionSetting& setting,
                 Kept kept, const BlockPass& pass) {
  const SequenceShape& shape = setting.shape;
  const auto linear = [&](const at::Tensor& in, const LinearParameters& parameters) {
    return Linear(in, parameters, pass.rule(), pass.factors()).to(parameters.weight.scalar_type());
  };
  const int64_t width = QueryWidth(setting.config), k = KvWidth(setting.config);
  const int64_t heads = setting.config.heads, shared = KvHeads(setting.config);
  if (kept == Kept::kEvery) {
    const at::Tensor qkv = linear(x, block.qkv);  // [B·T, q + 2k]
    if (heads == shared) {
      const std::vector<at::Tensor> split = Split(qkv, 3, heads, shape);
      return {split[0], split[1], split[2]};
    }
    const std::vector<at::Tensor> kv = Split(qkv.narrow(1, width, 2 * k), 2, shared, shape);
    return {Split(qkv.narrow(1, 0, width), 1, heads, shape)[0], kv[0], kv[1]};
  }
  const at::Tensor last = LastPositions(x, shape);                        // [B, d]
  const at::Tensor q = linear(last, OutputRange(block.qkv, 0, width));    // [B, q]
  const at::Tensor kv = linear(x, OutputRange(block.qkv, width, 2 * k));  // [B·T, 2k]
  const std::vector<at::Tensor> split = Split(kv, 2, shared, shape);
  return {Split(q, 1, heads, shape)[0], split[0], split[1]};
}

// Returns the heads that attend; keys and values still have K heads.
Heads OwnHeads(const at::Tensor& x, const BlockParameters& block, const AttentionSetting& setting,
               Kept kept, const BlockPass& pass, at::Tensor& first_values) {
  const ModelConfig& config = setting.config;
  const Heads split = SplitHeads(x, block, setting, kept, pass);
  const bool still = IsNth(config.rotary.skip_every, pass.block);
  const Rotation none;
  const Rotation& of_queries = still ? none : kept == Kept::kEvery ? setting.every : setting.last;
  const Rotation& of_keys = still ? none : setting.every;
  return {Turned(split.q, block.query_norm, of_queries, config, config.heads),
          Turned(split.k, block.key_norm, of_keys, config, KvHeads(config)),
          MixValues(split.v, block, config, pass, first_values)};
}

Heads HeadsOf(const at::Tensor& x, const BlockParameters& block, const AttentionSetting& setting,
              Kept kept, const BlockPass& pass, at::Tensor& first_values) {
  const Heads own = OwnHeads(x, block, setting, kept, pass, first_values);
  return {own.q, RepeatHeads(own.k, setting.config), RepeatHeads(own.v, setting.config)};
}

// Returns true if LibTorch's fused attention computes what Attend would.
bool CanFuse(const at::Tensor& x, const AttentionSetting& setting, const Pass& pass) {
  const AttentionConfig& attention = setting.config.attention;
  const bool plain =
      HasPlainScores(setting.config) && pass.dropout == nullptr && pass.hooks == nullptr;
  // Padding is on the right, where causal attention never looks.
  const bool sees_padding = !attention.causal && setting.shape.lengths.defined();
  const bool many = setting.config.loss == LossPositions::kAll &&
                    HasManyLogits(x.size(0), setting.config.vocabulary);
  const bool pays = !x.is_cpu() || pass.factors.has_value() || many;
  return pass.once && plain && !sees_padding && pays;
}

// Returns true if queries, keys and values are those of the linear.
bool HasPlainHeads(const ModelConfig& config) {
  const AttentionConfig& attention = config.attention;
  return config.positions != Positions::kRotary && KvHeads(config) == config.heads &&
         attention.qk_norm.kind == QkNormKind::kNone &&
         attention.value_residual == ValueResidual::kNone;
}

// Returns the attention of all positions, before the projection: x [B·T, d] → [B·T, d].
at::Tensor FusedAttention(const at::Tensor& x, const BlockParameters& block,
                          const AttentionSetting& setting, const BlockPass& pass,
                          at::Tensor& first_values) {
  const ModelConfig& config = setting.config;
  const SequenceShape& shape = setting.shape;
  std::vector<at::Tensor> heads;  // 3 × [B, H, T, d/H]
  if (HasPlainHeads(config)) {
    const at::Tensor qkv = Linear(x, block.qkv, pass.rule(), pass.factors());  // [B·T, 3d]
    heads = SplitViews(qkv, 3, config.heads, shape);
  } else {
    const Heads made = HeadsOf(x, block, setting, Kept::kEvery, pass, first_values);
    const at::ScalarType type = pass.factors().value_or(block.qkv.weight.scalar_type());
    for (const at::Tensor& head : {made.q, made.k, made.v}) {
      heads.push_back(head.to(type).view({shape.rows, config.heads, shape.length, head.size(2)}));
    }
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
  setting.every_bias = ScoreBiasOf(config, shape, Kept::kEvery, options);
  setting.last_bias = ScoreBiasOf(config, shape, Kept::kLast, options);
  if (config.positions == Positions::kRotary) {
    setting.every = MakeRotation(config, PositionsOf(shape, Kept::kEvery, options), options);
    setting.last = MakeRotation(config, PositionsOf(shape, Kept::kLast, options), options);
  }
  return setting;
}

at::Tensor SelfAttention(const at::Tensor& x, const BlockParameters& block,
                         const AttentionSetting& setting, Kept kept, const BlockPass& pass,
                         at::Tensor& first_values) {
  const ModelConfig& config = setting.config;
  const SequenceShape& shape = setting.shape;
  if (kept == Kept::kEvery && CanFuse(x, setting, pass.pass)) {
    return Linear(FusedAttention(x, block, setting, pass, first_values), block.projection,
                  pass.rule(), pass.factors());
  }
  const Heads heads = HeadsOf(x, block, setting, kept, pass, first_values);
  DropWeights drop;
  if (const Dropout* dropout = pass.pass.dropout) {
    drop = [&, dropout](const at::Tensor& weights) {
      const DropoutLines lines = WeightLines(config, PositionsOf(shape, kept, x.device()),
                                             shape.length, dropout->first_row);
      return Drop(weights, *dropout, HookPointName(HookPoint::kAttentionWeights, pass.block),
                  lines);
    };
  }
  const ScoreBias& biases = kept == Kept::kEvery ? setting.every_bias : setting.last_bias;
  const at::Tensor& bias = IsWindowed(config.attention, pass.block) ? biases.windowed : biases.full;
  const at::Tensor context = Attend(heads, bias, block.sink, config, pass, drop);  // [B·S, d]
  return Linear(context, block.projection, pass.rule(), pass.factors());           // [B·S, d]
}

at::Tensor NextAttention(const at::Tensor& x, const BlockParameters& block,
                         const ModelConfig& config, int index, int64_t position,
                         const SeenPositions& seen, at::Tensor& first_values) {
  const Pass pass;
  const BlockPass here = {pass, index};
  AttentionSetting setting = {config, {x.size(0), 1, {}}, {}, {}, {}, {}};
  const at::Tensor at_position =
      at::full({x.size(0), 1}, position, x.options().dtype(at::kLong));  // [B, 1]
  if (config.positions == Positions::kRotary) {
    setting.every = MakeRotation(config, at_position, x.options());
  }
  const Heads next = OwnHeads(x, block, setting, Kept::kEvery, here, first_values);
  seen.keys.narrow(1, position, 1).copy_(next.k);
  seen.values.narrow(1, position, 1).copy_(next.v);
  const auto repeated = [&](const at::Tensor& all) {
    return RepeatHeads(all.narrow(1, 0, position + 1), config);  // [B·H, T, d/H]
  };
  const bool windowed = IsWindowed(config.attention, index);
  at::Tensor bias;
  if (windowed || config.positions == Positions::kAlibi) {
    bias = BiasOf(config, setting.shape, at_position, position + 1, windowed, x.options());
  }
  const at::Tensor context = Attend({next.q, repeated(seen.keys), repeated(seen.values)}, bias,
                                    block.sink, config, here, nullptr);
  return Linear(context, block.projection, LearningRule::kBackprop);  // [B, d]
}

}  // namespace ablate::engine
