#include "server/engine/torch/model/transformer.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <vector>

#include "server/engine/core/layout.h"
#include "server/engine/torch/model/dropout.h"
#include "server/engine/torch/model/feedback.h"
#include "server/engine/torch/model/gelu.h"
#include "server/engine/torch/model/head_loss.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/norm.h"

// In the shapes: B rows, T positions, M = B·T of them, or B once a pass computes only the last
// ones, d features.
namespace ablate::engine {
namespace {

// Returns the function of a gated activation's first half.
Activation GateOf(Activation activation) {
  return activation == Activation::kSwiglu  ? Activation::kSilu
         : activation == Activation::kGeglu ? Activation::kGelu
                                            : Activation::kRelu;
}

at::Tensor Activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return x.relu();
    case Activation::kGelu:
      return at::gelu(x, "none");
    case Activation::kGeluTanh:
      return GeluTanh(x);
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kRelu2:
      return x.relu().square();
    case Activation::kSwiglu:
    case Activation::kGeglu:
    case Activation::kReglu:
      break;
  }
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  return Activate(halves[0], GateOf(activation)) * halves[1];
}

// Returns [S, d]: feature 2j of position p is sin(p/10000^(2j/d)), and feature 2j + 1 its cosine.
at::Tensor Sinusoids(int64_t first, int64_t count, int64_t d, at::TensorOptions options) {
  const at::TensorOptions exact = options.dtype(at::kDouble);
  const at::Tensor position = at::arange(first, first + count, exact).unsqueeze(1);  // [S, 1]
  const at::Tensor feature = at::arange(d, exact);                                   // [d]
  const at::Tensor even = feature - feature.remainder(2);
  const at::Tensor angle = position * at::pow(1e4, even / -static_cast<double>(d));  // [S, d]
  return at::where(feature.eq(even), angle.sin(), angle.cos()).to(options);
}

// Returns the rows added to tokens at positions first…first + count − 1, [S, d]; undefined if there
// are none.
at::Tensor PositionTable(const ModelConfig& config, const ModelParameters& parameters,
                         int64_t first, int64_t count) {
  switch (config.positions) {
    case Positions::kLearned:
      return parameters.position_embedding.narrow(0, first, count);
    case Positions::kSinusoidal:
      return Sinusoids(first, count, config.width, parameters.token_embedding.options());
    case Positions::kNone:
    case Positions::kRotary:
    case Positions::kAlibi:
      break;
  }
  return {};
}

// Returns the scaled embeddings of tokens, [N, d].
at::Tensor TokenEmbeddings(const ModelConfig& config, const ModelParameters& parameters,
                           const at::Tensor& tokens) {
  const at::Tensor x = at::embedding(parameters.token_embedding, tokens);
  return config.embedding_scale == 1 ? x : x * config.embedding_scale;
}

at::Tensor Embed(const ModelConfig& config, const ModelParameters& parameters,
                 const BatchTensors& batch) {
  const at::Tensor x = TokenEmbeddings(config, parameters, batch.tokens);  // [B·T, d]
  const at::Tensor table = PositionTable(config, parameters, 0, batch.length);
  if (!table.defined()) return x;
  const at::Tensor sequences = x.view({batch.rows, batch.length, x.size(1)});
  return (sequences + table).view(x.sizes());  // [B·T, d]
}

// Returns true if the norms read more than one position.
bool NormsReadBatch(const ModelConfig& config, const Pass& pass) {
  return config.norm.kind == NormKind::kBatch && pass.statistics != Statistics::kRunning;
}

// Returns how a pass over sequences of a shape applies its norms.
NormPass NormsOf(const ModelConfig& config, const SequenceShape& shape, int64_t real_positions,
                 const Pass& pass, at::TensorOptions options) {
  NormConfig norm = config.norm;
  norm.backward = pass.norm_backward;
  if (!NormsReadBatch(config, pass)) return {norm, Statistics::kRunning, {}, {}};
  at::Tensor real;  // [B·T, 1]
  if (shape.lengths.defined()) {
    const at::Tensor position = at::arange(shape.length, shape.lengths.options());
    real = position.lt(shape.lengths.unsqueeze(1)).to(options).view({-1, 1});
  }
  return MakeNormPass(norm, pass.statistics, real, real_positions, options);
}

at::Tensor HookedNorm(const at::Tensor& x, const NormParameters& norm, const NormHookPoints& around,
                      const NormPass& norms, const BlockPass& pass) {
  return pass.At(around.output, Norm(pass.At(around.input, x), norm, norms));
}

// Combines one sublayer f with the residual stream x, where s is the residual scale times the
// update's gain, if it has one: x + s·f(norm x), norm(x + s·f x), x + s·norm(f(norm x)) or x + s·f
// x; without x and the scale if there are no residual additions.
struct Sublayer {
  const ModelConfig& config;
  const NormParameters& norm;
  const NormHookPoints& norm_hook_points;
  const NormParameters& post_norm;
  const NormHookPoints& post_norm_hook_points;
  const at::Tensor& gain;
  bool has_norm;
  const NormPass& norms;
  const BlockPass& pass;

  bool Is(NormPlacement placement) const { return has_norm && config.norm.placement == placement; }
  at::Tensor Before(const at::Tensor& x) const {
    const bool inside = Is(NormPlacement::kPre) || Is(NormPlacement::kSandwich);
    return inside ? HookedNorm(x, norm, norm_hook_points, norms, pass) : x;
  }
  at::Tensor After(const at::Tensor& stream, at::Tensor update) const {
    if (Is(NormPlacement::kSandwich)) {
      update = HookedNorm(update, post_norm, post_norm_hook_points, norms, pass);
    }
    if (gain.defined()) update = update * gain;
    const at::Tensor sum =
        config.residual ? at::add(stream, update, config.residual_scale) : update;
    const bool behind = Is(NormPlacement::kPost);
    return behind ? HookedNorm(sum, norm, norm_hook_points, norms, pass) : sum;
  }
};

Sublayer AttentionOf(const ModelConfig& config, const BlockParameters& block, const NormPass& norms,
                     const BlockPass& pass) {
  return {config,
          block.attention_norm,
          kAttentionNormHookPoints,
          block.attention_post_norm,
          kAttentionPostNormHookPoints,
          block.attention_update_gain,
          HasAttentionNorm(config),
          norms,
          pass};
}

Sublayer FeedForwardOf(const ModelConfig& config, const BlockParameters& block,
                       const NormPass& norms, const BlockPass& pass) {
  return {config,
          block.feed_forward_norm,
          kFeedForwardNormHookPoints,
          block.feed_forward_post_norm,
          kFeedForwardPostNormHookPoints,
          block.feed_forward_update_gain,
          HasFeedForwardNorm(config),
          norms,
          pass};
}

// Operations of a kind of pass within a block. `attend` maps [N, d] → [M, d]; `keep` selects M
// positions of [N, d]; `drop` applies dropout to the activation [M, d] of a hook point.
template <typename Attend, typename Keep, typename Drop>
struct BlockSteps {
  const Attend& attend;
  const Keep& keep;
  const Drop& drop;
};
template <typename Attend, typename Keep, typename Drop>
BlockSteps(const Attend&, const Keep&, const Drop&) -> BlockSteps<Attend, Keep, Drop>;

// Returns the update of attention before gain and addition, [M, d], given its input [N, d].
template <typename Steps>
at::Tensor AttentionUpdate(const at::Tensor& x, const BlockPass& pass, const Steps& steps) {
  const at::Tensor in = pass.At(HookPoint::kAttentionInput, x);
  const at::Tensor update = pass.At(HookPoint::kAttentionOutput, steps.attend(in));
  return steps.drop(update, HookPoint::kAttentionOutput);
}

// Returns the update of the feed-forward likewise, [M, d], given its input [M, d].
template <typename Steps>
at::Tensor FeedForwardUpdate(const ModelConfig& config, const BlockParameters& block,
                             const at::Tensor& x, const BlockPass& pass, const Steps& steps) {
  const at::Tensor in = pass.At(HookPoint::kFeedForwardInput, x);
  const at::Tensor hidden = pass.At(HookPoint::kFeedForwardHidden,
                                    Activate(Linear(in, block.up, pass.rule(), pass.factors()),
                                             config.activation));  // [M, h]
  const at::Tensor update = pass.At(HookPoint::kFeedForwardOutput,
                                    Linear(hidden, block.down, pass.rule(), pass.factors()));
  return steps.drop(update, HookPoint::kFeedForwardOutput);
}

template <typename Steps>
at::Tensor ApplyBlock(const ModelConfig& config, const BlockParameters& block, const at::Tensor& x,
                      const BlockPass& pass, const NormPass& norms, const Steps& steps) {
  const Sublayer attention = AttentionOf(config, block, norms, pass);
  const Sublayer feed_forward = FeedForwardOf(config, block, norms, pass);
  at::Tensor stream = steps.keep(x);  // [M, d]
  at::Tensor in;                      // of the feed-forward, [M, d]
  if (Attends(config)) {
    const at::Tensor normed = attention.Before(x);  // [N, d]
    stream = attention.After(stream, AttentionUpdate(normed, pass, steps));
    if (config.parallel) {
      in = config.parallel_norms ? feed_forward.Before(steps.keep(x)) : steps.keep(normed);
    }
  }
  if (!in.defined()) in = feed_forward.Before(stream);
  return pass.At(HookPoint::kBlockOutput,
                 feed_forward.After(stream, FeedForwardUpdate(config, block, in, pass, steps)));
}

// The stages of one forward pass over whole sequences.
class Forward {
 public:
  Forward(const ModelConfig& config, const ModelParameters& parameters, const BatchTensors& batch,
          const Pass& pass)
      : config_(config),
        parameters_(parameters),
        batch_(batch),
        pass_(pass),
        options_(parameters.token_embedding.options().requires_grad(false)),
        setting_(MakeAttentionSetting(config, {batch.rows, batch.length, batch.lengths}, options_)),
        norms_(NormsOf(config, setting_.shape, batch.real_positions, pass, options_)) {}

  // Returns the head's input, [M, d].
  at::Tensor HeadInput() {
    const BlockPass whole{pass_};
    at::Tensor x = Embed(config_, parameters_, batch_);  // [B·T, d]
    if (config_.embedding_norm) {
      x = HookedNorm(x, parameters_.embedding_norm, kEmbeddingNormHookPoints, norms_, whole);
    }
    x = Dropped(x, HookPoint::kEmbedding, 0, Kept::kEvery);
    x = Cut(whole.At(HookPoint::kEmbedding, x), parameters_.embedding_feedback);
    for (int i = 0; i < config_.layers; ++i) {
      const BlockParameters& block = parameters_.blocks[static_cast<size_t>(i)];
      x = Cut(Block(i, block, x), block.feedback);  // [M, d]
    }
    if (config_.norm.final) {
      x = HookedNorm(x, parameters_.final_norm, kFinalNormHookPoints, norms_, whole);
    }
    if (config_.loss == LossPositions::kLast && !Trims()) x = LastPositions(x, setting_.shape);
    return whole.At(HookPoint::kHeadInput, x);
  }

  at::Tensor Logits() { return LogitsOf(HeadInput()); }

  at::Tensor Loss(const Objective& objective) {
    const at::Tensor x = HeadInput();
    if (!InChunks()) return MeanLoss(LogitsOf(x), batch_, objective);
    return MeanHeadLoss(ForHead(config_, x), Capping(), batch_, objective, pass_.factors);
  }

  at::Tensor Scores() {
    const at::Tensor x = HeadInput();
    if (InChunks()) return ScoreHead(ForHead(config_, x), Capping(), batch_, pass_.factors);
    return ScoreLogits(LogitsOf(x), batch_);
  }

 private:
  CappedHead Capping() const { return {parameters_.head, config_.logit_cap}; }

  // Returns the logits of the head's input, [M, V].
  at::Tensor LogitsOf(const at::Tensor& x) {
    const at::Tensor logits =
        Capped(Head(ForHead(config_, x), parameters_.head, pass_.factors), config_.logit_cap);
    return WithFeedback(BlockPass{pass_}.At(HookPoint::kLogits, logits));
  }

  // Returns true if the loss is computed along with its gradients.
  bool InChunks() const {
    return pass_.once && pass_.hooks == nullptr &&
           pass_.rule != LearningRule::kDirectFeedbackAlignment &&
           ComputesLossInChunks(DeviceOf(batch_.tokens), batch_.targets.numel(),
                                config_.vocabulary);
  }

  // Returns true if the last block computes last positions only. A norm that reads the batch needs
  // the others, too.
  bool Trims() const {
    return config_.loss == LossPositions::kLast && !NormsReadBatch(config_, pass_);
  }

  at::Tensor Block(int i, const BlockParameters& block, const at::Tensor& x) {
    const BlockPass here{pass_, i};
    const Kept kept = Trims() && i + 1 == config_.layers ? Kept::kLast : Kept::kEvery;
    const auto attend = [&](const at::Tensor& in) {
      return SelfAttention(in, block, setting_, kept, here, first_values_);
    };
    const auto keep = [&](const at::Tensor& all) {
      return kept == Kept::kLast ? LastPositions(all, setting_.shape) : all;
    };
    const auto drop = [&](const at::Tensor& update, HookPoint hook_point) {
      return Dropped(update, hook_point, i, kept);
    };
    return ApplyBlock(config_, block, x, here, norms_, BlockSteps{attend, keep, drop});
  }

  at::Tensor Dropped(const at::Tensor& x, HookPoint hook_point, int block, Kept kept) const {
    if (pass_.dropout == nullptr) return x;
    const at::Tensor positions =
        PositionsOf(setting_.shape, kept, at::TensorOptions(x.device()));  // [B, S]
    const int64_t first_row = pass_.dropout->first_row;
    const at::Tensor row =
        at::arange(first_row, first_row + batch_.rows, positions.options()).unsqueeze(1);
    // As if every row had all of the model's positions.
    const at::Tensor token = row * config_.context + positions;
    return Drop(x, *pass_.dropout, HookPointName(hook_point, block),
                {(token * config_.width).flatten(), config_.width});
  }

  // Returns the input of the next stage. With direct feedback alignment it is detached, because the
  // output's gradient comes from the error.
  at::Tensor Cut(const at::Tensor& output, const at::Tensor& feedback) {
    if (pass_.rule != LearningRule::kDirectFeedbackAlignment) return output;
    targets_.outputs.push_back(output);
    targets_.matrices.push_back(feedback);
    return output.detach();
  }

  at::Tensor WithFeedback(const at::Tensor& logits) {
    if (pass_.rule != LearningRule::kDirectFeedbackAlignment) return logits;
    if (config_.loss == LossPositions::kLast) {
      targets_.last = PositionsOf(setting_.shape, Kept::kLast, options_).squeeze(1);
    }
    return InjectErrors(logits, targets_);
  }

  const ModelConfig& config_;
  const ModelParameters& parameters_;
  const BatchTensors& batch_;
  const Pass& pass_;
  const at::TensorOptions options_;
  const AttentionSetting setting_;
  const NormPass norms_;
  FeedbackTargets targets_;
  at::Tensor first_values_;  // of the first block's attention
};

}  // namespace

at::Tensor Logits(const ModelConfig& config, const ModelParameters& parameters,
                  const BatchTensors& batch, const Pass& pass) {
  return Forward(config, parameters, batch, pass).Logits();
}

at::Tensor HeadInput(const ModelConfig& config, const ModelParameters& parameters,
                     const BatchTensors& batch, const Pass& pass) {
  return Forward(config, parameters, batch, pass).HeadInput();
}

at::Tensor BatchLoss(const ModelConfig& config, const ModelParameters& parameters,
                     const BatchTensors& batch, const Pass& pass, const Objective& objective) {
  return Forward(config, parameters, batch, pass).Loss(objective);
}

at::Tensor ScoreBatch(const ModelConfig& config, const ModelParameters& parameters,
                      const BatchTensors& batch, const Pass& pass) {
  return Forward(config, parameters, batch, pass).Scores();
}

Decoder::Decoder(const ModelConfig& config, const ModelParameters& parameters, int64_t rows)
    : config_(config), parameters_(parameters) {
  const at::TensorOptions options = parameters.token_embedding.options();
  const int64_t size = HeadSize(config);
  for (size_t block = 0; block < parameters.blocks.size(); ++block) {
    const auto room = [&] {
      return at::empty({rows * KvHeads(config), config.context, size},
                       options.requires_grad(false));
    };
    seen_.push_back({room(), room()});
  }
}

at::Tensor Decoder::Next(const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  at::Tensor x = TokenEmbeddings(config_, parameters_, tokens);                // [B, d]
  const at::Tensor table = PositionTable(config_, parameters_, position_, 1);  // [1, d]
  if (table.defined()) x = x + table;
  const Pass pass;
  const NormPass norms = {config_.norm, Statistics::kRunning, {}, {}};
  if (config_.embedding_norm) x = Norm(x, parameters_.embedding_norm, norms);
  at::Tensor first_values;
  const auto keep = [](const at::Tensor& all) { return all; };
  const auto drop = [](const at::Tensor& update, HookPoint) { return update; };
  for (size_t i = 0; i < seen_.size(); ++i) {
    const BlockParameters& block = parameters_.blocks[i];
    const auto attend = [&](const at::Tensor& in) {
      return NextAttention(in, block, config_, static_cast<int>(i), position_, seen_[i],
                           first_values);
    };
    x = ApplyBlock(config_, block, x, {pass}, norms, BlockSteps{attend, keep, drop});  // [B, d]
  }
  ++position_;
  if (config_.norm.final) x = Norm(x, parameters_.final_norm, norms);  // [B, d]
  return Capped(Linear(ForHead(config_, x), parameters_.head, LearningRule::kBackprop),
                config_.logit_cap);  // [B, V]
}

void Decoder::Keep(const at::Tensor& rows) {
  const auto select = [&](const at::Tensor& all) {
    return all.view({-1, KvHeads(config_), all.size(1), all.size(2)})
        .index_select(0, rows)
        .flatten(0, 1);  // [B'·H, context, d/H]
  };
  for (SeenPositions& seen : seen_) seen = {select(seen.keys), select(seen.values)};
}

}  // namespace ablate::engine
