#include "server/engine/native/sequence_pass.h"

#include <algorithm>
#include <cmath>

#include "server/engine/layout.h"
#include "server/engine/native/key_value_cache.h"

namespace ablate::engine::native {

SequencePass::SequencePass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
                           const Kernels& kernels)
    : config_(config),
      pass_(pass),
      rule_(rule),
      kernels_(kernels),
      layers_(config, pass, kernels),
      head_(layers_),
      positions_(config),
      blocks_(static_cast<size_t>(config.layers)) {}

// What is the same for every block.
void SequencePass::Prepare(const Columns& columns) {
  const auto count = static_cast<size_t>(columns.count);
  group_ = {columns.count, nullptr, static_cast<float>(columns.tokens), nullptr};
  if (config_.norm.kind == NormKind::kBatch) {
    float* const real = real_.Reserve(columns.count);
    std::fill_n(real, columns.count, 0.0f);
    std::fill_n(real, columns.tokens, 1.0f);
    group_.real = real;
  }
  if (layers_.drops()) {
    element_.resize(count);
    for (size_t c = 0; c < count; ++c) {
      element_[c] = (columns.row[c] * config_.context + columns.position[c]) * config_.width;
    }
    group_.element = element_.data();
  }
  weights_at_.clear();
  weights_size_ = 0;
  for (const Sequence& sequence : columns.sequences) {
    const int64_t padded = RoundUp(sequence.length);
    weights_at_.push_back(weights_size_);
    weights_size_ += config_.heads * padded * padded;
  }
  if (!Attends(config_) || config_.positions != Positions::kRotary) return;
  const int half = HeadSize(config_) / 2;
  float* const cosine = cosine_.Reserve(int64_t{half} * columns.count);
  float* const sine = sine_.Reserve(int64_t{half} * columns.count);
  for (int f = 0; f < half; ++f) {
    const double frequency = std::pow(1e4, -static_cast<double>(f) / half);
    for (int c = 0; c < columns.count; ++c) {
      const double angle = columns.position[static_cast<size_t>(c)] * frequency;
      cosine[f * columns.count + c] = static_cast<float>(std::cos(angle));
      sine[f * columns.count + c] = static_cast<float>(std::sin(angle));
    }
  }
}

void SequencePass::Embed(const Model& model, const Columns& columns) {
  const int width = config_.width, row = RoundUp(width);
  float* const rows = rows_.Reserve(int64_t{columns.count} * row);
  for (int c = 0; c < columns.count; ++c) {
    const auto at = static_cast<size_t>(c);
    const float* const token = model.token_embedding + int64_t{columns.token[at]} * width;
    const float* const position = positions_.Row(model, columns.position[at]);
    float* const to = rows + int64_t{c} * row;
    for (int f = 0; f < width; ++f) to[f] = position == nullptr ? token[f] : token[f] + position[f];
  }
  float* const stream = stream_.Reserve(int64_t{width} * columns.count);
  kernels_.transpose(rows, row, columns.count, width, stream, columns.count);
  layers_.Drop({Site::kEmbedding}, group_, mask_, stream);
}

void SequencePass::EmbedBack(const Model& model, const Columns& columns) {
  const int width = config_.width, row = RoundUp(width);
  if (layers_.drops()) {
    kernels_.multiply(mask_.data(), d_.data(), int64_t{width} * columns.count);
  }
  float* const rows = rows_.data();
  kernels_.transpose(d_.data(), columns.count, width, columns.count, rows, row);
  for (int c = 0; c < columns.tokens; ++c) {
    const auto at = static_cast<size_t>(c);
    const float* const from = rows + int64_t{c} * row;
    float* const token = model.dtoken_embedding + int64_t{columns.token[at]} * width;
    kernels_.add(from, token, width);
    if (config_.positions != Positions::kLearned) continue;
    float* const position = model.dposition_embedding + int64_t{columns.position[at]} * width;
    kernels_.add(from, position, width);
  }
}

Attention SequencePass::HeadOf(const Columns& columns, size_t sequence, int head,
                               BlockMemory& memory) const {
  const Sequence& is = columns.sequences[sequence];
  const int size = HeadSize(config_);
  const int64_t padded = RoundUp(is.length);
  const int64_t weights = weights_at_[sequence] + head * padded * padded;
  const int64_t first = int64_t{head} * size * columns.count + is.first;
  const int64_t part = int64_t{config_.width} * columns.count;
  Attention a;
  a.kind = config_.attention.kind;
  a.causal = config_.attention.causal;
  a.length = is.length;
  a.features = size;
  a.scale = static_cast<float>(ScoreScale(config_));
  a.bias = static_cast<float>(config_.attention.score_bias);
  a.stride = columns.count;
  a.q = memory.qkv.data() + first;
  a.k = a.q + part;
  a.v = a.k + part;
  a.weights = memory.weights.data() + weights;
  if (layers_.drops()) {
    a.mask = memory.weights_mask.data() + weights;
    a.dropped = memory.dropped.data() + weights;
  }
  a.context = memory.context.data() + first;
  return a;
}

// As if every row had all of the model's positions: neither padding nor what is left out moves
// them.
void SequencePass::FillWeightsMask(const Columns& columns, int index, BlockMemory& memory) const {
  if (!layers_.drops()) return;
  const DropoutSite masks = layers_.MasksOf({Site::kAttentionWeights, index});
  float* const mask = memory.weights_mask.Reserve(weights_size_);
  memory.dropped.Reserve(weights_size_);
  const int64_t context = config_.context;
  std::vector<int64_t> first;
  for (size_t s = 0; s < columns.sequences.size(); ++s) {
    const Sequence& is = columns.sequences[s];
    const int padded = RoundUp(is.length);
    for (int64_t head = 0; head < config_.heads; ++head) {
      first.clear();
      for (int query = 0; query < is.length; ++query) {
        first.push_back((is.row * config_.heads + head) * context * context + query * context);
      }
      FillMask(masks, {first.data(), is.length, is.length, 1, padded},
               mask + weights_at_[s] + head * padded * padded);
    }
  }
}

void SequencePass::RotateHeads(float* qkv, bool back) const {
  if (config_.positions != Positions::kRotary) return;
  const int size = HeadSize(config_), columns = group_.count;
  // Queries and keys, of which each has all heads.
  for (int head = 0; head < 2 * config_.heads; ++head) {
    kernels_.rotate(qkv + int64_t{head} * size * columns, columns, size / 2, columns,
                    cosine_.data(), sine_.data(), back);
  }
}

void SequencePass::Attend(const Block& block, int index, const Columns& columns,
                          BlockMemory& memory) {
  const SublayerNorms norms = {HasAttentionNorm(config_), block.attention_norm,
                               block.attention_post_norm};
  layers_.Begin(norms, stream_.data(), group_, memory.attention);
  float* const qkv = memory.qkv.Reserve(int64_t{3} * config_.width * columns.count);
  layers_.Apply(block.qkv, memory.attention.in.data(), columns.count, qkv);
  RotateHeads(qkv, /*back=*/false);
  memory.weights.Reserve(weights_size_);
  memory.context.Reserve(int64_t{config_.width} * columns.count);
  FillWeightsMask(columns, index, memory);
  AttendToStrips(columns, memory);
  if (columns.past != nullptr) AttendToPast(index, columns, memory);
  for (size_t s = 0; s < columns.sequences.size(); ++s) {
    for (int head = 0; head < config_.heads; ++head) {
      kernels_.attention(HeadOf(columns, s, head, memory));
    }
  }
  layers_.End(norms, block.projection, memory.context.data(), {Site::kAttentionOutput, index},
              group_, memory.attention, stream_.data());
}

void SequencePass::AttendToStrips(const Columns& columns, BlockMemory& memory) {
  const int size = HeadSize(config_);
  const int64_t part = int64_t{config_.width} * columns.count;
  for (const Strip& strip : columns.strips) {
    StripAttention a;
    a.kind = config_.attention.kind;
    a.causal = config_.attention.causal;
    a.length = strip.length;
    a.features = size;
    a.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
    a.bias = static_cast<float>(config_.attention.score_bias);
    a.stride = columns.count;
    a.first = strip.first.data();
    a.nodes = strip.nodes.data();
    a.node = strip.node.data();
    a.lane = strip.lane.data();
    a.scratch = scratch_.Reserve(((2 * strip.length + 1) * size + strip.length) * kColumns);
    for (int head = 0; head < config_.heads; ++head) {
      const int64_t first = int64_t{head} * size * columns.count;
      a.q = memory.qkv.data() + first;
      a.k = a.q + part;
      a.v = a.k + part;
      a.context = memory.context.data() + first;
      kernels_.strip_attention(a);
    }
  }
}

void SequencePass::AttendToPast(int index, const Columns& columns, BlockMemory& memory) {
  KeyValueCache& past = *columns.past;
  const int64_t part = int64_t{config_.width} * columns.count;
  LaneAttention a;
  a.kind = config_.attention.kind;
  a.length = past.length() + 1;
  a.features = HeadSize(config_);
  a.scale = static_cast<float>(ScoreScale(config_));
  a.bias = static_cast<float>(config_.attention.score_bias);
  a.stride = columns.count;
  a.weights = scratch_.Reserve(int64_t{config_.context} * kColumns);
  for (int head = 0; head < config_.heads; ++head) {
    for (int column = 0; column < columns.count; column += kColumns) {
      const int64_t first = int64_t{head} * a.features * columns.count + column;
      a.q = memory.qkv.data() + first;
      past.Append(index, head, column, {a.q + part, a.q + 2 * part, a.stride});
      a.keys = past.keys(index, head, column);
      a.values = past.values(index, head, column);
      a.context = memory.context.data() + first;
      kernels_.lane_attention(a);
    }
  }
}

void SequencePass::AttendBack(const Block& block, const Columns& columns, BlockMemory& memory) {
  const SublayerNorms norms = {HasAttentionNorm(config_), block.attention_norm,
                               block.attention_post_norm};
  const int64_t part = int64_t{config_.width} * columns.count;
  float* const room = room_.Reserve(part);
  const float* const dupdate = layers_.EndBack(norms, group_, memory.attention, d_.data(), room);
  layers_.AddGradients(block.projection, memory.context.data(), dupdate, columns.count);
  float* const dcontext = dcontext_.Reserve(part);
  layers_.Back(block.projection, dupdate, columns.count, dcontext);
  float* const dqkv = dqkv_.Reserve(3 * part);
  for (size_t s = 0; s < columns.sequences.size(); ++s) {
    const int64_t padded = RoundUp(columns.sequences[s].length);
    float* const scratch = scratch_.Reserve(2 * padded * padded);
    for (int head = 0; head < config_.heads; ++head) {
      const Attention forward = HeadOf(columns, s, head, memory);
      const int64_t at = forward.q - memory.qkv.data();
      kernels_.attention_back(
          {forward, dcontext + at, dqkv + at, dqkv + part + at, dqkv + 2 * part + at, scratch});
    }
  }
  // What is written of a sequence ends with it.
  for (int f = 0; f < 3 * config_.width; ++f) {
    float* const row = dqkv + int64_t{f} * columns.count;
    std::fill(row + columns.tokens, row + columns.count, 0.0f);
  }
  RotateHeads(dqkv, /*back=*/true);
  layers_.AddGradients(block.qkv, memory.attention.in.data(), dqkv, columns.count);
  layers_.Back(block.qkv, dqkv, columns.count, room);
  layers_.BeginBack(norms, group_, memory.attention, room, d_.data());
}

void SequencePass::RunBlocks(const Model& model, const Columns& columns) {
  Prepare(columns);
  Embed(model, columns);
  for (int i = 0; i < config_.layers; ++i) {
    const Block& block = model.blocks[static_cast<size_t>(i)];
    BlockMemory& memory = blocks_[static_cast<size_t>(pass_.training ? i : 0)];
    if (Attends(config_)) Attend(block, i, columns, memory);
    layers_.FeedForward(block, i, group_, memory.feed_forward, stream_.data());
  }
}

ColumnGroup SequencePass::KeptGroup(const Columns& columns) const {
  if (config_.loss == LossPositions::kAll) return group_;
  return {RoundUp(static_cast<int>(columns.sequences.size())), nullptr, 0, nullptr};
}

const float* SequencePass::Kept(const Columns& columns) {
  if (config_.loss == LossPositions::kAll) return stream_.data();
  const int kept = KeptGroup(columns).count, last = static_cast<int>(columns.sequences.size()) - 1;
  float* const to = kept_.Reserve(int64_t{config_.width} * kept);
  for (int f = 0; f < config_.width; ++f) {
    for (int s = 0; s < kept; ++s) {
      const Sequence& is = columns.sequences[static_cast<size_t>(std::min(s, last))];
      to[f * kept + s] = stream_.data()[int64_t{f} * columns.count + is.first + is.length - 1];
    }
  }
  return to;
}

void SequencePass::SpreadKept(const Columns& columns, float* d) const {
  const int kept = KeptGroup(columns).count;
  std::fill_n(d, int64_t{config_.width} * columns.count, 0.0f);
  for (int f = 0; f < config_.width; ++f) {
    for (size_t s = 0; s < columns.sequences.size(); ++s) {
      const Sequence& is = columns.sequences[s];
      d[int64_t{f} * columns.count + is.first + is.length - 1] =
          kept_.data()[int64_t{f} * kept + static_cast<int64_t>(s)];
    }
  }
}

LossSums SequencePass::AddGradient(const Model& model, const Columns& columns,
                                   const Objective& objective) {
  RunBlocks(model, columns);
  const ColumnGroup kept = KeptGroup(columns);
  const LossSums sums = head_.Forward(model, Kept(columns), kept, columns.target, objective);
  float* const d = d_.Reserve(int64_t{config_.width} * columns.count);
  const bool all = config_.loss == LossPositions::kAll;
  const bool direct = rule_ == LearningRule::kDirectFeedbackAlignment;
  // The gradient of what the loss reads of a stream.
  float* const read = all ? d : kept_.data();
  const auto inject = [&](const float* feedback) {
    BackThroughFeedback(layers_, feedback, head_.error(), kept.count, read);
    if (!all) SpreadKept(columns, d);
  };
  head_.Back(model, kept, read);
  if (!all) SpreadKept(columns, d);
  for (size_t i = blocks_.size(); i-- > 0;) {
    const Block& block = model.blocks[i];
    if (direct) inject(block.feedback);
    layers_.FeedForwardBack(block, group_, blocks_[i].feed_forward, d);
    if (Attends(config_)) AttendBack(block, columns, blocks_[i]);
  }
  if (direct) inject(model.embedding_feedback);
  EmbedBack(model, columns);
  return sums;
}

LossSums SequencePass::Score(const Model& model, const Columns& columns) {
  RunBlocks(model, columns);
  const std::vector<Reading> readings =
      columns.strips.empty() ? ReadingsOf(columns.target) : columns.readings;
  return head_.Score(model, Kept(columns), KeptGroup(columns), readings);
}

const float* SequencePass::Scores(const Model& model, const Columns& columns) {
  RunBlocks(model, columns);
  return head_.Scores(model, Kept(columns), KeptGroup(columns));
}

}  // namespace ablate::engine::native
