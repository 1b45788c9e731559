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
      size_(HeadSize(layers.config())) {
  if (!Attends(config_) || config_.positions != Positions::kRotary) return;
  const int64_t half = size_ / 2;
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
  const int half = size_ / 2;
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

void ColumnAttention::Turn(float* qkv, bool back) const {
  if (config_.positions != Positions::kRotary) return;
  const int64_t count = columns_->count;
  // Queries and keys; each has all heads.
  for (int head = 0; head < 2 * config_.heads; ++head) {
    kernels_.rotate(qkv + int64_t{head} * size_ * count, count, size_ / 2, count, cosine_.data(),
                    sine_.data(), back);
  }
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
  a.q = memory.qkv.data() + first;
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
    a.q = memory.qkv.data() + first;
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
      a.q = memory.qkv.data() + first;
      past.Append(block, head, column, {a.q + part, a.q + 2 * part, a.stride});
      a.keys = past.keys(block, head, column);
      a.values = past.values(block, head, column);
      a.context = memory.context.data() + first;
      kernels_.lane_attention(a);
    }
  }
}

void ColumnAttention::Forward(int block, AttentionMemory& memory) {
  Turn(memory.qkv.data(), /*back=*/false);
  float* const context = memory.context.Reserve(int64_t{config_.width} * columns_->count);
  if (columns_->past != nullptr) {
    AttendToPast(block, memory);
  } else {
    AttendToSequences(block, memory);
    for (const PrefixBatch& batch : columns_->prefix_batches) AttendToPrefixBatch(batch, memory);
  }
  // Only a sequence's own columns are written; the others may hold NaN.
  Clear(context, config_.width);
}

float* ColumnAttention::Back(AttentionMemory& memory, const float* dcontext) {
  const int64_t part = int64_t{config_.width} * columns_->count;
  float* const dqkv = dqkv_.Reserve(3 * part);
  for (size_t s = 0; s < weights_at_.size(); ++s) {
    const Sequence& sequence = columns_->sequences[s];
    const int64_t padded = RoundUp(sequence.length);
    float* const scratch = scratch_.Reserve(2 * padded * padded);
    for (int head = 0; head < config_.heads; ++head) {
      const Attention forward = HeadOf(sequence, weights_at_[s], memory, head);
      const int64_t at = forward.q - memory.qkv.data();
      kernels_.attention_back(
          {forward, dcontext + at, dqkv + at, dqkv + part + at, dqkv + 2 * part + at, scratch});
    }
  }
  Clear(dqkv, 3 * config_.width);
  Turn(dqkv, /*back=*/true);
  return dqkv;
}

}  // namespace ablate::engine::native
