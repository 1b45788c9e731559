#include "server/engine/model/transformer.h"

#include <ATen/core/grad_mode.h>

#include "server/engine/layout.h"
#include "server/engine/model/layers.h"

// In the shapes: R runs, B rows, T positions, S of them still needed (T or 1), M = B·S, d features.
namespace ablate::engine {
namespace {

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
