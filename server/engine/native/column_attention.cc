#include "server/engine/native/column_attention.h"

#include <algorithm>
#include <cmath>

#include "server/engine/core/layout.h"
#include "server/engine/native/key_value_cache.h"

namespace ablate::engine::native {

ColumnAttention::ColumnAttention(const Layers& layers)
    : layers_(layers),
      config_(layers.config()),
      kernels_(layers.kernels()),
      size_(HeadSize(layers.config())),
      kv_heads_(KvHeads(layers.config())),
      pairs_(RotatedFeatures(layers.config()) / 2) {
  if (!Attends(config_) || config_.positions != Positions::kRotary) return;
  const int64_t half = pairs_;
  float* to = turns_.Reserve(2 * half * config_.context);
  for (int position = 0; position < config_.context; ++position, to += 2 * half) {
    for (int f = 0; f < half; ++f) {
      const double angle = position * std::pow(config_.rotary.theta,
                                               -static_cast<double>(f) / static_cast<double>(half));
      to[f] = static_cast<float>(std::cos(angle));
      to[half + f] = static_cast<float>(std::sin(angle));
    }
  }
}

void ColumnAttention::Prepare(const Columns& columns) {
  columns_ = &columns;
  weights_at_.clear();
  weights_size_ = 0;
  for (const Sequence& sequence : columns.sequences) {
    const int64_t padded = RoundUp(sequence.length);
    weights_at_.push_back(weights_size_);
    weights_size_ += config_.heads * padded * padded;
  }
  if (config_.positions == Positions::kRotary) FillTurns();
}

void ColumnAttention::FillTurns() {
  const int half = pairs_;
  const int64_t count = columns_->count;
  float* const cosine = cosine_.Reserve(half * count);
  float* const sine = sine_.Reserve(half * count);
  for (int64_t c = 0; c < count; ++c) {
    const int64_t position = columns_->position[static_cast<size_t>(c)];
    const float* const turns = turns_.data() + position * 2 * half;
    for (int f = 0; f < half; ++f) {
      cosine[f * count + c] = turns[f];
      sine[f * count + c] = turns[half + f];
    }
  }
}

void ColumnAttention::Turn(int block, float* qkv, bool back) const {
  if (config_.positions != Positions::kRotary || IsNth(config_.rotary.skip_every, block)) return;
  const int64_t count = columns_->count;
  // Heads of queries, then of keys.
  for (int head = 0; head < config_.heads + kv_heads_; ++head) {
    kernels_.rotate(qkv + int64_t{head} * size_ * count, count, pairs_, count, cosine_.data(),
                    sine_.data(), back);
  }
}

bool ColumnAttention::NormsBeforeTurn() const {
  return config_.attention.qk_norm.place == QkNormPlace::kBefore;
}

void ColumnAttention::NormHeads(const Block& block, AttentionMemory& memory) const {
  const QkNormConfig& qk = config_.attention.qk_norm;
  if (qk.kind == QkNormKind::kNone) return;
  const int64_t count = columns_->count;
  float* at = memory.qkv.data();
  const auto normalise = [&](const Norm& norm, int heads, std::vector<NormMemory>& memories) {
    const bool all = qk.scope == QkNormScope::kAll;
    const NormSize size = {all ? heads * size_ : size_, count};
    memories.resize(all ? 1 : static_cast<size_t>(heads));
    for (NormMemory& of : memories) {
      kernels_.norm_forward({size, NormKindOf(qk.kind), NormDeviation::kPopulation,
                             static_cast<float>(config_.norm.eps), at, norm.gain, 0, nullptr,
                             of.x_hat.Reserve(size.features * count), at, of.rstd.Reserve(count),
                             of.along_scale.Reserve(count)});
      at += size.features * count;
    }
  };
  normalise(block.query_norm, config_.heads, memory.query_norms);
  normalise(block.key_norm, kv_heads_, memory.key_norms);
}

void ColumnAttention::NormHeadsBack(const Block& block, const AttentionMemory& memory,
                                    float* d) const {
  const QkNormConfig& qk = config_.attention.qk_norm;
  if (qk.kind == QkNormKind::kNone) return;
  const int64_t count = columns_->count;
  const auto back = [&](const Norm& norm, int heads, const std::vector<NormMemory>& memories) {
    const NormSize size = {heads * size_ / static_cast<int>(memories.size()), count};
    for (const NormMemory& of : memories) {
      kernels_.norm_back({size, NormKindOf(qk.kind), NormBackward::kExact, d, of.x_hat.data(),
                          of.rstd.data(), of.along_scale.data(), norm.gain, 0, norm.dgain, nullptr,
                          d, false});
      d += size.features * count;
    }
  };
  back(block.query_norm, config_.heads, memory.query_norms);
  back(block.key_norm, kv_heads_, memory.key_norms);
}

void ColumnAttention::RepeatHeads(AttentionMemory& memory) const {
  if (kv_heads_ == config_.heads) return;
  const int64_t head = int64_t{size_} * columns_->count, shared = config_.heads / kv_heads_;
  const float* from = memory.qkv.data();
  float* to = memory.heads.Reserve(3 * config_.heads * head);
  to = std::copy_n(from, config_.heads * head, to);
  from += config_.heads * head;
  for (int of = 0; of < 2 * kv_heads_; ++of, from += head) {  // of keys, then of values
    for (int64_t copy = 0; copy < shared; ++copy) to = std::copy_n(from, head, to);
  }
}

float* ColumnAttention::SumHeads(const float* dheads) {
  const int64_t head = int64_t{size_} * columns_->count, shared = config_.heads / kv_heads_;
  float* const d = dshared_.Reserve((config_.heads + 2 * kv_heads_) * head);
  float* to = std::copy_n(dheads, config_.heads * head, d);
  dheads += config_.heads * head;
  for (int of = 0; of < 2 * kv_heads_; ++of, to += head) {
    std::copy_n(dheads, head, to);
    dheads += head;
    for (int64_t copy = 1; copy < shared; ++copy, dheads += head) {
      kernels_.combine(1, dheads, 1, to, head);
    }
  }
  return d;
}

const float* ColumnAttention::HeadsOf(const AttentionMemory& memory) const {
  return kv_heads_ == config_.heads ? memory.qkv.data() : memory.heads.data();
}

void ColumnAttention::Clear(float* x, int rows) const {
  for (int f = 0; f < rows; ++f, x += columns_->count) {
    std::fill(x + columns_->tokens, x + columns_->count, 0.0f);
  }
}

AttentionHead ColumnAttention::Head(int length) const {
  return {config_.attention.kind,
          length,
          size_,
          static_cast<float>(ScoreScale(config_)),
          static_cast<float>(config_.attention.score_bias),
          columns_->count};
}

// Numbers elements as if every row had all of the model's positions, so that masks depend neither
// on padding nor on omitted positions.
void ColumnAttention::FillMasks(int block, AttentionMemory& memory) const {
  const DropoutStream masks = layers_.MasksOf({HookPoint::kAttentionWeights, block});
  float* to = memory.mask.Reserve(weights_size_);
  memory.dropped.Reserve(weights_size_);
  const int64_t context = config_.context;
  std::vector<int64_t> first;
  for (const Sequence& sequence : columns_->sequences) {
    const int length = sequence.length, padded = RoundUp(length);
    for (int64_t head = 0; head < config_.heads; ++head, to += int64_t{padded} * padded) {
      first.clear();
      for (int query = 0; query < length; ++query) {
        first.push_back(((sequence.row * config_.heads + head) * context + query) * context);
      }
      FillMask(masks, {first.data(), length, length, 1, padded}, to);
    }
  }
}

Attention ColumnAttention::HeadOf(const Sequence& sequence, int64_t weights,
                                  AttentionMemory& memory, int head) const {
  const int64_t padded = RoundUp(sequence.length);
  const int64_t first = int64_t{head} * size_ * columns_->count + sequence.first;
  const int64_t part = int64_t{config_.width} * columns_->count;
  weights += head * padded * padded;
  Attention a = {Head(sequence.length), config_.attention.causal};
  a.q = HeadsOf(memory) + first;
  a.k = a.q + part;
  a.v = a.k + part;
  a.weights = memory.weights.data() + weights;
  if (layers_.drops()) {
    a.mask = memory.mask.data() + weights;
    a.dropped = memory.dropped.data() + weights;
  }
  a.context = memory.context.data() + first;
  return a;
}

void ColumnAttention::AttendToSequences(int block, AttentionMemory& memory) {
  memory.weights.Reserve(weights_size_);
  if (layers_.drops()) FillMasks(block, memory);
  for (size_t s = 0; s < weights_at_.size(); ++s) {
    for (int head = 0; head < config_.heads; ++head) {
      kernels_.attention(HeadOf(columns_->sequences[s], weights_at_[s], memory, head));
    }
  }
}

void ColumnAttention::AttendToPrefixBatch(const PrefixBatch& batch, AttentionMemory& memory) {
  const int64_t part = int64_t{config_.width} * columns_->count;
  PrefixBatchAttention a = {Head(batch.length), config_.attention.causal};
  a.first = batch.first.data();
  a.counts = batch.counts.data();
  a.column_of_lane = batch.column_of_lane.data();
  a.lane_of_column = batch.lane_of_column.data();
  a.scratch = scratch_.Reserve(((2 * int64_t{batch.length} + 1) * size_ + batch.length) * kColumns);
  for (int head = 0; head < config_.heads; ++head) {
    const int64_t first = int64_t{head} * size_ * columns_->count;
    a.q = HeadsOf(memory) + first;
    a.k = a.q + part;
    a.v = a.k + part;
    a.context = memory.context.data() + first;
    kernels_.prefix_batch_attention(a);
  }
}

void ColumnAttention::AttendToPast(int block, AttentionMemory& memory) {
  KeyValueCache& past = *columns_->past;
  const int64_t part = int64_t{config_.width} * columns_->count;
  LaneAttention a = {Head(past.length() + 1)};
  a.weights = scratch_.Reserve(int64_t{config_.context} * kColumns);
  for (int head = 0; head < config_.heads; ++head) {
    for (int column = 0; column < columns_->count; column += kColumns) {
      const int64_t first = int64_t{head} * size_ * columns_->count + column;
      a.q = HeadsOf(memory) + first;
      past.Append(block, head, column, {a.q + part, a.q + 2 * part, a.stride});
      a.keys = past.keys(block, head, column);
      a.values = past.values(block, head, column);
      a.context = memory.context.data() + first;
      kernels_.lane_attention(a);
    }
  }
}

void ColumnAttention::Forward(const Block& block, int index, AttentionMemory& memory) {
  if (NormsBeforeTurn()) NormHeads(block, memory);
  Turn(index, memory.qkv.data(), /*back=*/false);
  if (!NormsBeforeTurn()) NormHeads(block, memory);
  RepeatHeads(memory);
  float* const context = memory.context.Reserve(int64_t{config_.width} * columns_->count);
  if (columns_->past != nullptr) {
    AttendToPast(index, memory);
  } else {
    AttendToSequences(index, memory);
    for (const PrefixBatch& batch : columns_->prefix_batches) AttendToPrefixBatch(batch, memory);
  }
  // Only a sequence's own columns are written; the others may hold NaN.
  Clear(context, config_.width);
}

float* ColumnAttention::Back(const Block& block, int index, AttentionMemory& memory,
                             const float* dcontext) {
  const int64_t part = int64_t{config_.width} * columns_->count;
  float* dqkv = dqkv_.Reserve(3 * part);
  for (size_t s = 0; s < weights_at_.size(); ++s) {
    const Sequence& sequence = columns_->sequences[s];
    const int64_t padded = RoundUp(sequence.length);
    float* const scratch = scratch_.Reserve(2 * padded * padded);
    for (int head = 0; head < config_.heads; ++head) {
      const Attention forward = HeadOf(sequence, weights_at_[s], memory, head);
      const int64_t at = forward.q - HeadsOf(memory);
      kernels_.attention_back(
          {forward, dcontext + at, dqkv + at, dqkv + part + at, dqkv + 2 * part + at, scratch});
    }
  }
  Clear(dqkv, 3 * config_.width);
  if (kv_heads_ != config_.heads) dqkv = SumHeads(dqkv);
  if (!NormsBeforeTurn()) NormHeadsBack(block, memory, dqkv);
  Turn(index, dqkv, /*back=*/true);
  if (NormsBeforeTurn()) NormHeadsBack(block, memory, dqkv);
  return dqkv;
}

}  // namespace ablate::engine::native
