#include "server/engine/native/query_pass.h"

#include <algorithm>

#include "server/engine/layout.h"

namespace ablate::engine::native {
namespace {

// Rows `part`·width… of the fused linear: queries, keys, values.
Linear PartOf(const Linear& qkv, int part) {
  Linear linear = qkv;
  const int width = qkv.in;
  const int64_t elements = int64_t{part} * width * width;
  const auto moved = [](auto* from, int64_t by) { return from == nullptr ? nullptr : from + by; };
  linear.out = width;
  linear.weight = qkv.weight + elements;
  linear.back = qkv.back + elements;
  linear.dweight = moved(qkv.dweight, elements);
  linear.bias = moved(qkv.bias, int64_t{part} * width);
  linear.dbias = moved(qkv.dbias, int64_t{part} * width);
  return linear;
}

}  // namespace

bool HasQueryPass(const ModelConfig& config) {
  return config.layers == 1 && config.loss == LossPositions::kLast &&
         config.positions != Positions::kRotary && config.norm.kind != NormKind::kBatch;
}

QueryPass::QueryPass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
                     const Kernels& kernels)
    : config_(config),
      rule_(rule),
      kernels_(kernels),
      layers_(config, pass, kernels),
      head_(layers_),
      positions_(config),
      row_(RoundUp(config.width)) {}

bool QueryPass::normalises_rows() const {
  const NormPlacement placement = config_.norm.placement;
  return HasAttentionNorm(config_) &&
         (placement == NormPlacement::kPre || placement == NormPlacement::kSandwich);
}

void QueryPass::Prepare(const QueryColumns& columns) {
  columns_ = columns.count;
  last_ = {columns.count, nullptr, 0, nullptr};
  first_row_.clear();
  weights_at_.clear();
  count_ = 0;
  int64_t weights = 0;
  for (const int length : columns.lengths) {
    first_row_.push_back(count_);
    weights_at_.push_back(weights);
    count_ += Attends(config_) ? length : 1;
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

// The rows of all tokens, those that attention reads and the stream at last positions.
void QueryPass::ReadRows(const Model& model, const QueryColumns& columns) {
  const int width = config_.width;
  const bool plain = config_.positions == Positions::kNone && !layers_.drops();
  const int padded = RoundUp(count_);
  if (!plain || normalises_rows()) embedded_.Reserve(int64_t{padded} * row_);
  row_at_.resize(static_cast<size_t>(padded));
  std::vector<int64_t> element;
  int at = 0;
  for (size_t s = 0; s < columns.lengths.size(); ++s) {
    const int length = columns.lengths[s];
    for (int t = Attends(config_) ? 0 : length - 1; t < length; ++t, ++at) {
      const float* const token = model.token_embedding + columns.tokens[s][t] * width;
      const float* const position = positions_.Row(model, t);
      row_at_[static_cast<size_t>(at)] = token;
      if (plain && !normalises_rows()) continue;
      float* const to = embedded_.data() + int64_t{at} * row_;
      for (int f = 0; f < width; ++f) {
        to[f] = position == nullptr ? token[f] : token[f] + position[f];
      }
      row_at_[static_cast<size_t>(at)] = to;
      const int64_t row = columns.first_row + static_cast<int64_t>(s);
      element.push_back((row * config_.context + t) * width);
    }
  }
  if (layers_.drops()) {
    float* const mask = row_mask_.Reserve(int64_t{padded} * row_);
    FillMask(layers_.MasksOf({Site::kEmbedding}), {element.data(), count_, width, row_, 1}, mask);
    kernels_.multiply(mask, embedded_.data(), int64_t{count_} * row_);
  }
  // The stream where the loss reads it; columns that are no sequence repeat the last one.
  float* const gathered = room_.Reserve(int64_t{columns_} * row_);
  const auto gather_last = [&](float* to) {
    for (int c = 0; c < columns_; ++c) {
      const auto s = static_cast<size_t>(std::min(c, columns.rows - 1));
      const int last = first_row_[s] + (Attends(config_) ? columns.lengths[s] : 1) - 1;
      std::copy_n(row_at_[static_cast<size_t>(last)], width, gathered + int64_t{c} * row_);
    }
    kernels_.transpose(gathered, row_, columns_, width, to, columns_);
  };
  gather_last(stream_.Reserve(int64_t{width} * columns_));
  if (!Attends(config_)) return;
  if (normalises_rows()) {
    for (int i = count_; i < padded; ++i) {
      std::copy_n(embedded_.data() + int64_t{count_ - 1} * row_, row_,
                  embedded_.data() + int64_t{i} * row_);
    }
    float* const by_feature = by_feature_.Reserve(int64_t{width} * padded);
    kernels_.transpose(embedded_.data(), row_, padded, width, by_feature, padded);
    layers_.Normalise(model.blocks[0].attention_norm, by_feature, {padded, nullptr, 0, nullptr},
                      by_feature, row_norm_);
    float* const rows = rows_.Reserve(int64_t{padded} * row_);
    kernels_.transpose(by_feature, padded, width, padded, rows, row_);
    for (int i = 0; i < padded; ++i) row_at_[static_cast<size_t>(i)] = rows + int64_t{i} * row_;
  }
  gather_last(in_last_.Reserve(int64_t{width} * columns_));
}

// drows_, of what attention reads, becomes that of the rows before their norm.
void QueryPass::BackThroughRowNorm(const Model& model) {
  if (!Attends(config_) || !normalises_rows()) return;
  const int width = config_.width, padded = RoundUp(count_);
  float* const by_feature = by_feature_.data();
  kernels_.transpose(drows_.data(), row_, padded, width, by_feature, padded);
  layers_.NormaliseBack(model.blocks[0].attention_norm, row_norm_, by_feature,
                        {padded, nullptr, 0, nullptr}, by_feature, /*add=*/false);
  kernels_.transpose(by_feature, padded, width, padded, drows_.data(), row_);
}

// From drows_, and d_ of the stream at last positions, to the embeddings.
void QueryPass::RowsBack(const Model& model, const QueryColumns& columns) {
  const int width = config_.width;
  float* const drows = drows_.data();
  float* const last = room_.Reserve(int64_t{columns_} * row_);
  kernels_.transpose(d_.data(), columns_, width, columns_, last, row_);
  for (int s = 0; s < columns.rows; ++s) {
    const auto at = static_cast<size_t>(s);
    const int row = first_row_[at] + (Attends(config_) ? columns.lengths[at] : 1) - 1;
    kernels_.combine(1, last + int64_t{s} * row_, 1, drows + int64_t{row} * row_, row_);
  }
  if (layers_.drops()) kernels_.multiply(row_mask_.data(), drows, int64_t{count_} * row_);
  const float* from = drows;
  for (size_t s = 0; s < columns.lengths.size(); ++s) {
    const int length = columns.lengths[s];
    for (int t = Attends(config_) ? 0 : length - 1; t < length; ++t, from += row_) {
      float* const token = model.dtoken_embedding + columns.tokens[s][t] * width;
      for (int f = 0; f < width; ++f) token[f] += from[f];
      if (config_.positions != Positions::kLearned) continue;
      float* const position = model.dposition_embedding + int64_t{t} * width;
      for (int f = 0; f < width; ++f) position[f] += from[f];
    }
  }
}

void QueryPass::ToRows(const float* by_feature, float* rows) const {
  for (int h = 0; h < config_.heads; ++h) {
    kernels_.transpose(by_feature + int64_t{h} * config_.width * columns_, columns_, config_.width,
                       columns_, rows + int64_t{h} * row_, int64_t{config_.heads} * row_);
  }
}

void QueryPass::ToFeatures(const float* rows, float* by_feature) const {
  for (int h = 0; h < config_.heads; ++h) {
    kernels_.transpose(rows + int64_t{h} * row_, int64_t{config_.heads} * row_, columns_,
                       config_.width, by_feature + int64_t{h} * config_.width * columns_, columns_);
  }
}

void QueryPass::ThroughHeads(const float* weight, const float* x, float* to) const {
  const int size = HeadSize(config_);
  for (int h = 0; h < config_.heads; ++h) {
    Gemm g;
    g.rows = config_.width;
    g.columns = columns_;
    g.depth = size;
    g.a = weight + int64_t{h} * size * config_.width;
    g.a_row = 1;
    g.a_k = config_.width;
    g.b = x + int64_t{h} * size * columns_;
    g.b_row = columns_;
    g.c = to + int64_t{h} * config_.width * columns_;
    g.c_row = columns_;
    kernels_.gemm(g);
  }
}

void QueryPass::AddHeadGradients(const float* x, const float* rows, float* dweight) const {
  const int size = HeadSize(config_);
  for (int h = 0; h < config_.heads; ++h) {
    Gemm g;
    g.rows = size;
    g.columns = config_.width;
    g.depth = columns_;
    g.a = x + int64_t{h} * size * columns_;
    g.a_row = columns_;
    g.b = rows + int64_t{h} * row_;
    g.b_row = int64_t{config_.heads} * row_;
    g.c = dweight + int64_t{h} * size * config_.width;
    g.c_row = config_.width;
    g.accumulate = true;
    kernels_.gemm(g);
  }
}

void QueryPass::FromHeads(const float* weight, const float* x, float* to) const {
  const int size = HeadSize(config_);
  for (int h = 0; h < config_.heads; ++h) {
    Gemm g;
    g.rows = size;
    g.columns = columns_;
    g.depth = config_.width;
    g.a = weight + int64_t{h} * size * config_.width;
    g.a_row = config_.width;
    g.b = x + int64_t{h} * config_.width * columns_;
    g.b_row = columns_;
    g.c = to + int64_t{h} * size * columns_;
    g.c_row = columns_;
    kernels_.gemm(g);
  }
}

// As SequencePass::FillWeightsMask, of one query a row.
void QueryPass::FillWeightsMask(const QueryColumns& columns) {
  if (!layers_.drops()) return;
  const DropoutSite masks = layers_.MasksOf({Site::kAttentionWeights});
  float* const mask = weights_mask_.Reserve(weights_.size());
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

QueryAttention QueryPass::AttentionOf(const QueryColumns& columns, int sequence) {
  const auto s = static_cast<size_t>(sequence);
  const int64_t at = int64_t{sequence} * config_.heads;
  QueryAttention a;
  a.kind = config_.attention.kind;
  a.length = columns.lengths[s];
  a.width = config_.width;
  a.heads = config_.heads;
  a.scale = static_cast<float>(ScoreScale(config_));
  a.rows = row_at_.data() + first_row_[s];
  a.queries = queries_.data() + at * row_;
  a.offsets = offsets_.data() + at;
  a.mask = layers_.drops() ? weights_mask_.data() + weights_at_[s] : nullptr;
  a.weights = weights_.data() + weights_at_[s];
  a.seen = seen_.data() + at * row_;
  a.sums = sums_.data() + at;
  return a;
}

void QueryPass::Attend(const Model& model, const QueryColumns& columns) {
  const Block& block = model.blocks[0];
  const int width = config_.width, heads = config_.heads, size = HeadSize(config_);
  const int64_t part = int64_t{width} * columns_, by_head = heads * part;
  const int64_t rows = int64_t{columns_} * heads * row_;
  const Linear keys = PartOf(block.qkv, 1), values = PartOf(block.qkv, 2);

  // Wq·x + bq, and Wkᵀ of it by head.
  layers_.Apply(PartOf(block.qkv, 0), in_last_.data(), columns_, q_.Reserve(part));
  ThroughHeads(keys.weight, q_.data(), absorbed_.Reserve(by_head));
  ToRows(absorbed_.data(), queries_.Reserve(rows));
  const auto scale = static_cast<float>(ScoreScale(config_));
  float* const offsets = offsets_.Reserve(int64_t{columns_} * heads);
  for (int c = 0; c < columns_; ++c) {
    for (int h = 0; h < heads; ++h) {
      float sum = 0;
      for (int f = h * size; keys.bias != nullptr && f < (h + 1) * size; ++f) {
        sum += q_.data()[int64_t{f} * columns_ + c] * keys.bias[f];
      }
      offsets[c * heads + h] = sum * scale + static_cast<float>(config_.attention.score_bias);
    }
  }

  seen_.Reserve(rows);
  sums_.Reserve(int64_t{columns_} * heads);
  FillWeightsMask(columns);
  for (int s = 0; s < columns.rows; ++s) kernels_.query_attention(AttentionOf(columns, s));

  // Wv of what was seen, and bv as often as there is weight.
  ToFeatures(seen_.data(), seen_by_feature_.Reserve(by_head));
  float* const context = context_.Reserve(part);
  FromHeads(values.weight, seen_by_feature_.data(), context);
  for (int f = 0; values.bias != nullptr && f < width; ++f) {
    for (int c = 0; c < columns_; ++c) {
      context[int64_t{f} * columns_ + c] += values.bias[f] * sums_.data()[c * heads + f / size];
    }
  }
  const SublayerNorms norms = {HasAttentionNorm(config_), block.attention_norm,
                               block.attention_post_norm};
  layers_.End(norms, block.projection, context, {Site::kAttentionOutput}, last_, attention_,
              stream_.data());
}

void QueryPass::AttendBack(const Model& model, const QueryColumns& columns) {
  const Block& block = model.blocks[0];
  const int width = config_.width, heads = config_.heads, size = HeadSize(config_);
  const int64_t part = int64_t{width} * columns_, by_head = heads * part;
  const int64_t rows = int64_t{columns_} * heads * row_;
  const Linear keys = PartOf(block.qkv, 1), values = PartOf(block.qkv, 2);
  const SublayerNorms norms = {HasAttentionNorm(config_), block.attention_norm,
                               block.attention_post_norm};
  float* const room = room_.Reserve(int64_t{columns_} * row_);
  const float* const dupdate = layers_.EndBack(norms, last_, attention_, d_.data(), room);
  layers_.AddGradients(block.projection, context_.data(), dupdate, columns_);
  float* const dcontext = dcontext_.Reserve(part);
  layers_.Back(block.projection, dupdate, columns_, dcontext);

  float* const dsums = dsums_.Reserve(int64_t{columns_} * heads);
  std::fill_n(dsums, int64_t{columns_} * heads, 0.0f);
  for (int f = 0; values.bias != nullptr && f < width; ++f) {
    float dbias = 0;
    for (int c = 0; c < columns_; ++c) {
      const float d = dcontext[int64_t{f} * columns_ + c];
      dsums[c * heads + f / size] += values.bias[f] * d;
      if (c < columns.rows) dbias += d * sums_.data()[c * heads + f / size];
    }
    values.dbias[f] += dbias;
  }
  float* const by_feature = absorbed_.Reserve(by_head);
  ThroughHeads(values.weight, dcontext, by_feature);
  ToRows(by_feature, dseen_.Reserve(rows));
  const float* row_dseen = dseen_.data();
  const float* row_queries = queries_.data();
  if (keys.back != keys.weight) {
    ThroughHeads(values.back, dcontext, by_feature);
    ToRows(by_feature, back_dseen_.Reserve(rows));
    ThroughHeads(keys.back, q_.data(), by_feature);
    ToRows(by_feature, back_queries_.Reserve(rows));
    row_dseen = back_dseen_.data();
    row_queries = back_queries_.data();
  }

  dqueries_.Reserve(rows);
  doffsets_.Reserve(int64_t{columns_} * heads);
  for (int s = 0; s < columns.rows; ++s) {
    const int64_t at = int64_t{s} * heads;
    kernels_.query_attention_back(
        {AttentionOf(columns, s), dseen_.data() + at * row_, dsums + at,
         dqueries_.data() + at * row_, doffsets_.data() + at, row_queries + at * row_,
         row_dseen + at * row_,
         drows_.data() + int64_t{first_row_[static_cast<size_t>(s)]} * row_});
  }
  // Columns that are no sequence.
  const int64_t real = int64_t{columns.rows} * heads;
  std::fill(dqueries_.data() + real * row_, dqueries_.data() + rows, 0.0f);
  std::fill(doffsets_.data() + real, doffsets_.data() + int64_t{columns_} * heads, 0.0f);

  AddHeadGradients(dcontext, seen_.data(), values.dweight);
  AddHeadGradients(q_.data(), dqueries_.data(), keys.dweight);
  ToFeatures(dqueries_.data(), by_feature);
  const auto scale = static_cast<float>(ScoreScale(config_));
  float* const dq = dq_.Reserve(part);
  FromHeads(keys.weight, by_feature, dq);
  for (int f = 0; keys.bias != nullptr && f < width; ++f) {
    float dbias = 0;
    for (int c = 0; c < columns_; ++c) {
      const float d = doffsets_.data()[c * heads + f / size] * scale;
      dbias += d * q_.data()[int64_t{f} * columns_ + c];
      dq[int64_t{f} * columns_ + c] += d * keys.bias[f];
    }
    keys.dbias[f] += dbias;
  }
  const Linear queries = PartOf(block.qkv, 0);
  layers_.AddGradients(queries, in_last_.data(), dq, columns_);
  layers_.Back(queries, dq, columns_, dcontext);
  kernels_.transpose(dcontext, columns_, width, columns_, room, row_);
  for (int s = 0; s < columns.rows; ++s) {
    const auto at = static_cast<size_t>(s);
    const int row = first_row_[at] + columns.lengths[at] - 1;
    kernels_.combine(1, room + int64_t{s} * row_, 1, drows_.data() + int64_t{row} * row_, row_);
  }
  if (!config_.residual) std::fill_n(d_.data(), part, 0.0f);
}

void QueryPass::Run(const Model& model, const QueryColumns& columns) {
  Prepare(columns);
  ReadRows(model, columns);
  if (Attends(config_)) Attend(model, columns);
  layers_.FeedForward(model.blocks[0], 0, last_, feed_forward_, stream_.data());
}

LossSums QueryPass::AddGradient(const Model& model, const QueryColumns& columns,
                                const Objective& objective) {
  Run(model, columns);
  const LossSums sums = head_.Forward(model, stream_.data(), last_, columns.target, objective);
  float* const d = d_.Reserve(int64_t{config_.width} * columns_);
  const int64_t rows = int64_t{RoundUp(count_)} * row_;
  std::fill_n(drows_.Reserve(rows), rows, 0.0f);
  head_.Back(model, last_, d);
  const bool direct = rule_ == LearningRule::kDirectFeedbackAlignment;
  if (direct) {
    BackThroughFeedback(layers_, model.blocks[0].feedback, head_.error(), columns_, d);
  }
  layers_.FeedForwardBack(model.blocks[0], last_, feed_forward_, d);
  if (Attends(config_)) AttendBack(model, columns);
  BackThroughRowNorm(model);
  if (direct) {
    std::fill_n(drows_.data(), rows, 0.0f);
    BackThroughFeedback(layers_, model.embedding_feedback, head_.error(), columns_, d);
  }
  RowsBack(model, columns);
  return sums;
}

LossSums QueryPass::Score(const Model& model, const QueryColumns& columns) {
  Run(model, columns);
  return head_.Score(model, stream_.data(), last_, columns.target);
}

}  // namespace ablate::engine::native
