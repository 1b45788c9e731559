#include "server/engine/native/absorbed_pass.h"

#include <algorithm>

#include "server/engine/core/layout.h"

namespace ablate::engine::native {

bool HasAbsorbedPass(const ModelConfig& config) {
  return config.layers == 1 && config.loss == LossPositions::kLast &&
         config.positions != Positions::kRotary && config.norm.kind != NormKind::kBatch &&
         KvHeads(config) == config.heads && config.attention.qk_norm.kind == QkNormKind::kNone &&
         config.embedding_scale == 1 && !config.embedding_norm && !config.parallel;
}

AbsorbedPass::AbsorbedPass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
                           const Kernels& kernels)
    : config_(config),
      rule_(rule),
      kernels_(kernels),
      layers_(config, pass, kernels),
      head_(layers_),
      rows_(layers_) {}

AbsorbedPass::Parts AbsorbedPass::PartsOf(const Linear& qkv) {
  const auto part = [&](int64_t index) {
    const int width = qkv.in;
    const auto moved = [](auto* from, int64_t by) { return from == nullptr ? nullptr : from + by; };
    Linear linear = qkv;
    linear.out = width;
    linear.weight = qkv.weight + index * width * width;
    linear.back = qkv.back + index * width * width;
    linear.dweight = moved(qkv.dweight, index * width * width);
    linear.bias = moved(qkv.bias, index * width);
    linear.dbias = moved(qkv.dbias, index * width);
    return linear;
  };
  return {part(0), part(1), part(2)};
}

void AbsorbedPass::Prepare(const LastColumns& columns) {
  columns_ = columns.count;
  last_ = {columns.count, nullptr, 0, nullptr};
  weights_at_.clear();
  int64_t weights = 0;
  for (const int length : columns.lengths) {
    weights_at_.push_back(weights);
    weights += int64_t{config_.heads} * RoundUp(length);
  }
  weights_.Reserve(weights);
  if (!layers_.drops()) return;
  last_element_.resize(static_cast<size_t>(columns.count));
  for (int c = 0; c < columns.count; ++c) {
    const int s = std::min(c, columns.rows - 1);
    const int position = columns.lengths[static_cast<size_t>(s)] - 1;
    last_element_[static_cast<size_t>(c)] =
        ((columns.first_row + s) * config_.context + position) * config_.width;
  }
  last_.element = last_element_.data();
}

const float* AbsorbedPass::Absorb(const float* weight, const float* x, Floats& rows) {
  const int size = HeadSize(config_), width = config_.width;
  const int64_t row = rows_.floats(), between = config_.heads * row;
  float* const room = room_.Reserve(int64_t{width} * columns_);
  float* const to = rows.Reserve(columns_ * between);
  for (int h = 0; h < config_.heads; ++h) {
    Gemm g;
    g.rows = width;
    g.columns = columns_;
    g.depth = size;
    g.a = weight + int64_t{h} * size * width;
    g.a_row = 1;
    g.a_k = width;
    g.b = x + int64_t{h} * size * columns_;
    g.b_row = columns_;
    g.c = room;
    g.c_row = columns_;
    kernels_.gemm(g);
    kernels_.transpose(room, columns_, width, columns_, to + h * row, between);
  }
  return to;
}

void AbsorbedPass::Emit(const float* weight, const Floats& rows, float* to) {
  const int size = HeadSize(config_), width = config_.width;
  const int64_t row = rows_.floats(), between = config_.heads * row;
  float* const room = room_.Reserve(int64_t{width} * columns_);
  for (int h = 0; h < config_.heads; ++h) {
    kernels_.transpose(rows.data() + h * row, between, columns_, width, room, columns_);
    Gemm g;
    g.rows = size;
    g.columns = columns_;
    g.depth = width;
    g.a = weight + int64_t{h} * size * width;
    g.a_row = width;
    g.b = room;
    g.b_row = columns_;
    g.c = to + int64_t{h} * size * columns_;
    g.c_row = columns_;
    kernels_.gemm(g);
  }
}

void AbsorbedPass::AddHeadGradients(const float* x, const Floats& rows, float* dweight) const {
  const int size = HeadSize(config_), width = config_.width;
  const int64_t row = rows_.floats();
  for (int h = 0; h < config_.heads; ++h) {
    Gemm g;
    g.rows = size;
    g.columns = width;
    g.depth = columns_;
    g.a = x + int64_t{h} * size * columns_;
    g.a_row = columns_;
    g.b = rows.data() + h * row;
    g.b_row = config_.heads * row;
    g.c = dweight + int64_t{h} * size * width;
    g.c_row = width;
    g.accumulate = true;
    kernels_.gemm(g);
  }
}

// As SequencePass::FillWeightsMask, with one query per row.
void AbsorbedPass::FillWeightsMask(const LastColumns& columns) {
  if (!layers_.drops()) return;
  const DropoutStream masks = layers_.MasksOf({HookPoint::kAttentionWeights});
  float* const mask = mask_.Reserve(weights_.size());
  const int64_t context = config_.context;
  for (size_t s = 0; s < columns.lengths.size(); ++s) {
    const int length = columns.lengths[s];
    std::vector<int64_t> first;
    for (int64_t h = 0; h < config_.heads; ++h) {
      const int64_t row = columns.first_row + static_cast<int64_t>(s);
      first.push_back((row * config_.heads + h) * context * context + (length - 1) * context);
    }
    FillMask(masks, {first.data(), config_.heads, length, RoundUp(length), 1},
             mask + weights_at_[s]);
  }
}

AbsorbedAttention AbsorbedPass::AttentionOf(const LastColumns& columns, int sequence) {
  const auto s = static_cast<size_t>(sequence);
  const int64_t at = int64_t{sequence} * config_.heads;
  AbsorbedAttention a;
  a.kind = config_.attention.kind;
  a.length = columns.lengths[s];
  a.width = config_.width;
  a.heads = config_.heads;
  a.scale = static_cast<float>(ScoreScale(config_));
  a.rows = rows_.of(sequence);
  a.queries = queries_.data() + at * rows_.floats();
  a.offsets = offsets_.data() + at;
  a.mask = layers_.drops() ? mask_.data() + weights_at_[s] : nullptr;
  a.weights = weights_.data() + weights_at_[s];
  a.seen = seen_.data() + at * rows_.floats();
  a.sums = sums_.data() + at;
  return a;
}

void AbsorbedPass::FormQueries(const Parts& qkv) {
  const int heads = config_.heads, size = HeadSize(config_);
  float* const q = q_.Reserve(int64_t{config_.width} * columns_);
  layers_.Apply(qkv.queries, in_.data(), columns_, q);
  Absorb(qkv.keys.weight, q, queries_);
  const auto scale = static_cast<float>(ScoreScale(config_));
  const auto bias = static_cast<float>(config_.attention.score_bias);
  float* const offsets = offsets_.Reserve(int64_t{columns_} * heads);
  for (int c = 0; c < columns_; ++c) {
    for (int h = 0; h < heads; ++h) {
      float sum = 0;
      for (int f = h * size; qkv.keys.bias != nullptr && f < (h + 1) * size; ++f) {
        sum += q[int64_t{f} * columns_ + c] * qkv.keys.bias[f];
      }
      offsets[c * heads + h] = sum * scale + bias;
    }
  }
}

void AbsorbedPass::FormContext(const Linear& values) {
  const int heads = config_.heads, size = HeadSize(config_);
  float* const context = context_.Reserve(int64_t{config_.width} * columns_);
  Emit(values.weight, seen_, context);
  for (int f = 0; values.bias != nullptr && f < config_.width; ++f) {
    for (int c = 0; c < columns_; ++c) {
      context[int64_t{f} * columns_ + c] += values.bias[f] * sums_.data()[c * heads + f / size];
    }
  }
}

void AbsorbedPass::Attend(const Block& block, const LastColumns& columns) {
  const Parts qkv = PartsOf(block.qkv);
  rows_.Normalise(block.attention_norm);
  rows_.CopyLast(in_.Reserve(int64_t{config_.width} * columns_));
  FormQueries(qkv);
  seen_.Reserve(int64_t{columns_} * config_.heads * rows_.floats());
  sums_.Reserve(int64_t{columns_} * config_.heads);
  FillWeightsMask(columns);
  for (int s = 0; s < columns.rows; ++s) kernels_.absorbed_attention(AttentionOf(columns, s));
  FormContext(qkv.values);
  const SublayerNorms norms = AttentionNorms(config_, block);
  layers_.End(norms, block.projection, context_.data(), {HookPoint::kAttentionOutput}, last_,
              attention_, stream_.data());
}

void AbsorbedPass::ContextBack(const Linear& values, const LastColumns& columns) {
  const int heads = config_.heads, size = HeadSize(config_);
  const float* const dcontext = dcontext_.data();
  AddHeadGradients(dcontext, seen_, values.dweight);
  Absorb(values.weight, dcontext, dseen_);
  float* const dsums = dsums_.Reserve(int64_t{columns_} * heads);
  std::fill_n(dsums, int64_t{columns_} * heads, 0.0f);
  for (int f = 0; values.bias != nullptr && f < config_.width; ++f) {
    float dbias = 0;
    for (int c = 0; c < columns_; ++c) {
      const float d = dcontext[int64_t{f} * columns_ + c];
      dsums[c * heads + f / size] += values.bias[f] * d;
      if (c < columns.rows) dbias += d * sums_.data()[c * heads + f / size];
    }
    values.dbias[f] += dbias;
  }
}

void AbsorbedPass::LookBack(const Parts& qkv, const LastColumns& columns) {
  const int heads = config_.heads, row = rows_.floats();
  const float* row_seen = dseen_.data();
  const float* row_queries = queries_.data();
  if (qkv.keys.back != qkv.keys.weight) {
    row_seen = Absorb(qkv.values.back, dcontext_.data(), feedback_seen_);
    row_queries = Absorb(qkv.keys.back, q_.data(), feedback_queries_);
  }
  const int64_t all = int64_t{columns_} * heads, real = int64_t{columns.rows} * heads;
  float* const dqueries = dqueries_.Reserve(all * row);
  float* const doffsets = doffsets_.Reserve(all);
  for (int s = 0; s < columns.rows; ++s) {
    const int64_t at = int64_t{s} * heads;
    kernels_.absorbed_attention_back(
        {AttentionOf(columns, s), dseen_.data() + at * row, dsums_.data() + at, dqueries + at * row,
         doffsets + at, row_queries + at * row, row_seen + at * row, rows_.gradients(s)});
  }
  // Columns without a sequence.
  std::fill(dqueries + real * row, dqueries + all * row, 0.0f);
  std::fill(doffsets + real, doffsets + all, 0.0f);
}

void AbsorbedPass::QueriesBack(const Parts& qkv) {
  const int heads = config_.heads, size = HeadSize(config_);
  const float* const q = q_.data();
  AddHeadGradients(q, dqueries_, qkv.keys.dweight);
  float* const dq = dq_.Reserve(int64_t{config_.width} * columns_);
  Emit(qkv.keys.weight, dqueries_, dq);
  const auto scale = static_cast<float>(ScoreScale(config_));
  for (int f = 0; qkv.keys.bias != nullptr && f < config_.width; ++f) {
    float dbias = 0;
    for (int c = 0; c < columns_; ++c) {
      const float d = doffsets_.data()[c * heads + f / size] * scale;
      dbias += d * q[int64_t{f} * columns_ + c];
      dq[int64_t{f} * columns_ + c] += d * qkv.keys.bias[f];
    }
    qkv.keys.dbias[f] += dbias;
  }
  layers_.AddGradients(qkv.queries, in_.data(), dq, columns_);
}

void AbsorbedPass::AttendBack(const Block& block, const LastColumns& columns) {
  const Parts qkv = PartsOf(block.qkv);
  const int64_t part = int64_t{config_.width} * columns_;
  const SublayerNorms norms = AttentionNorms(config_, block);
  const float* const dupdate =
      layers_.EndBack(norms, last_, attention_, d_.data(), room_.Reserve(part));
  layers_.AddGradients(block.projection, context_.data(), dupdate, columns_);
  layers_.Back(block.projection, dupdate, columns_, dcontext_.Reserve(part));
  ContextBack(qkv.values, columns);
  LookBack(qkv, columns);
  QueriesBack(qkv);
  float* const din = room_.data();
  layers_.Back(qkv.queries, dq_.data(), columns_, din);
  rows_.AddLastGradients(din);
  rows_.NormaliseBack(block.attention_norm);
  if (!config_.residual) std::fill_n(d_.data(), part, 0.0f);
}

void AbsorbedPass::Run(const Model& model, const LastColumns& columns) {
  Prepare(columns);
  rows_.Embed(model, columns);
  rows_.CopyLast(stream_.Reserve(int64_t{config_.width} * columns_));
  if (Attends(config_)) Attend(model.blocks[0], columns);
  layers_.FeedForward(model.blocks[0], 0, last_, feed_forward_, stream_.data());
}

LossSums AbsorbedPass::AddGradient(const Model& model, const LastColumns& columns,
                                   const Objective& objective) {
  Run(model, columns);
  const LossSums sums = head_.Forward(model, stream_.data(), last_, columns.target, objective);
  float* const d = d_.Reserve(int64_t{config_.width} * columns_);
  rows_.ClearGradients();
  head_.Back(model, last_, d);
  const bool direct = rule_ == LearningRule::kDirectFeedbackAlignment;
  if (direct) {
    BackThroughFeedback(layers_, model.blocks[0].feedback, head_.error(), columns_, d);
  }
  layers_.FeedForwardBack(model.blocks[0], last_, feed_forward_, d);
  if (Attends(config_)) AttendBack(model.blocks[0], columns);
  if (direct) {
    rows_.ClearGradients();
    BackThroughFeedback(layers_, model.embedding_feedback, head_.error(), columns_, d);
  }
  rows_.AddLastGradients(d);
  rows_.EmbedBack(model);
  return sums;
}

LossSums AbsorbedPass::Score(const Model& model, const LastColumns& columns) {
  Run(model, columns);
  return head_.Score(model, stream_.data(), last_, ReadingsOf(columns.target));
}

}  // namespace ablate::engine::native
