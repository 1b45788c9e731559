// The forward pass. R runs, B rows, T positions, S positions that are still needed (T or 1), d
// features.
#include "server/engine/model/transformer.h"

#include "server/engine/model/attention.h"
#include "server/engine/model/embedding.h"
#include "server/engine/model/linear.h"
#include "server/engine/model/norm.h"

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
struct Site {
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

bool HasAttentionNorm(const NormConfig& config) {
  return config.attention && config.placement != NormPlacement::kNone;
}

bool HasFeedForwardNorm(const NormConfig& config) {
  return config.feed_forward && config.placement != NormPlacement::kNone;
}

at::Tensor Logits(const ModelConfig& config, const ModelParameters& parameters,
                  const StackBatch& batch, LearningRule rule) {
  const SequenceShape shape = {batch.runs, batch.rows, batch.length, batch.lengths};
  const AttentionMask mask = MakeMask(config, shape, parameters.token_embedding.options());
  at::Tensor x = Embed(parameters, batch);  // [R, B·T, d]
  for (const BlockParameters& block : parameters.blocks) {
    const bool last = config.loss == LossPositions::kLast && &block == &parameters.blocks.back();
    const Site attention = {config, block.attention_norm, HasAttentionNorm(config.norm)};
    const Site feed_forward = {config, block.feed_forward_norm, HasFeedForwardNorm(config.norm)};

    const at::Tensor a = attention.Before(x);  // [R, B·T, d]
    const at::Tensor mixed =
        last ? LastAttention(a, block, config.heads, mask.last, shape, rule)
             : SelfAttention(a, block, config.heads, mask.every, shape, rule);  // [R, B·S, d]
    x = attention.After(last ? LastPositions(x, shape) : x, mixed);             // [R, B·S, d]

    const at::Tensor up = Linear(feed_forward.Before(x), block.up, rule);  // [R, B·S, h]
    const at::Tensor down =
        Linear(Activate(up, config.activation), block.down, rule);  // [R, B·S, d]
    x = feed_forward.After(x, down);                                // [R, B·S, d]
  }
  if (config.norm.final) x = Norm(x, parameters.final_norm, config.norm);  // [R, B·S, d]
  return Linear(x, parameters.head, rule);                                 // [R, B·S, V]
}

}  // namespace ablate::engine
