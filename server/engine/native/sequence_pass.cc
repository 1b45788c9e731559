#include "server/engine/native/sequence_pass.h"

#include <algorithm>

#include "server/engine/core/layout.h"

namespace ablate::engine::native {

SequencePass::SequencePass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
                           const Kernels& kernels)
    : config_(config),
      pass_(pass),
      rule_(rule),
      kernels_(kernels),
      layers_(config, pass, kernels),
      attention_(layers_),
      head_(layers_),
      positions_(config),
      blocks_(static_cast<size_t>(config.layers)) {}

// Prepares the data that all blocks share.
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
  if (Attends(config_)) attention_.Prepare(columns);
}

void SequencePass::Embed(const Model& model, const Columns& columns) {
  const int width = config_.width, row = RoundUp(width);
  float* const rows = rows_.Reserve(int64_t{columns.count} * row);
  for (int c = 0; c < columns.count; ++c) {
    const auto at = static_cast<size_t>(c);
    const float* const token = model.token_embedding + int64_t{columns.token[at]} * width;
    const float* const position = positions_.Row(model, columns.position[at]);
    float* const to = rows + int64_t{c} * row;
    const auto scale = static_cast<float>(config_.embedding_scale);
    for (int f = 0; f < width; ++f) {
      const float scaled = token[f] * scale;
      to[f] = position == nullptr ? scaled : scaled + position[f];
    }
  }
  float* const stream = stream_.Reserve(int64_t{width} * columns.count);
  kernels_.transpose(rows, row, columns.count, width, stream, columns.count);
  if (config_.embedding_norm) {
    layers_.Normalise(model.embedding_norm, stream, group_, stream, embedding_norm_);
  }
  layers_.Drop({HookPoint::kEmbedding}, group_, mask_, stream);
}

void SequencePass::EmbedBack(const Model& model, const Columns& columns) {
  const int width = config_.width, row = RoundUp(width);
  if (layers_.drops()) {
    kernels_.multiply(mask_.data(), d_.data(), int64_t{width} * columns.count);
  }
  if (config_.embedding_norm) {
    layers_.NormaliseBack(model.embedding_norm, embedding_norm_, d_.data(), group_, d_.data(),
                          /*add=*/false);
  }
  float* const rows = rows_.data();
  kernels_.transpose(d_.data(), columns.count, width, columns.count, rows, row);
  for (int c = 0; c < columns.tokens; ++c) {
    const auto at = static_cast<size_t>(c);
    const float* const from = rows + int64_t{c} * row;
    float* const token = model.dtoken_embedding + int64_t{columns.token[at]} * width;
    if (config_.embedding_scale == 1) {
      kernels_.add(from, token, width);
    } else {
      const auto scale = static_cast<float>(config_.embedding_scale);
      for (int f = 0; f < width; ++f) token[f] += from[f] * scale;
    }
    if (config_.positions != Positions::kLearned) continue;
    float* const position = model.dposition_embedding + int64_t{columns.position[at]} * width;
    kernels_.add(from, position, width);
  }
}

void SequencePass::Attend(const Block& block, int index, BlockMemory& memory) {
  const SublayerNorms norms = AttentionNorms(config_, block);
  layers_.Begin(norms, stream_.data(), group_, memory.sublayer);
  float* const qkv = memory.attention.qkv.Reserve(int64_t{block.qkv.out} * group_.count);
  layers_.Apply(block.qkv, memory.sublayer.in.data(), group_.count, qkv);
  attention_.Forward(block, index, memory.attention);
  layers_.End(norms, block.projection, memory.attention.context.data(),
              {HookPoint::kAttentionOutput, index}, group_, memory.sublayer, stream_.data());
}

void SequencePass::AttendBack(const Block& block, int index, BlockMemory& memory,
                              const float* more) {
  const SublayerNorms norms = AttentionNorms(config_, block);
  const int64_t elements = int64_t{config_.width} * group_.count;
  float* const room = room_.Reserve(elements);
  const float* const dupdate = layers_.EndBack(norms, group_, memory.sublayer, d_.data(), room);
  layers_.AddGradients(block.projection, memory.attention.context.data(), dupdate, group_.count);
  float* const dcontext = dcontext_.Reserve(elements);
  layers_.Back(block.projection, dupdate, group_.count, dcontext);
  const float* const dqkv = attention_.Back(block, index, memory.attention, dcontext);
  layers_.AddGradients(block.qkv, memory.sublayer.in.data(), dqkv, group_.count);
  layers_.Back(block.qkv, dqkv, group_.count, room);
  if (more != nullptr) kernels_.add(more, room, elements);
  layers_.BeginBack(norms, group_, memory.sublayer, room, d_.data());
}

void SequencePass::RunBlocks(const Model& model, const Columns& columns) {
  Prepare(columns);
  Embed(model, columns);
  for (int i = 0; i < config_.layers; ++i) {
    const Block& block = model.blocks[static_cast<size_t>(i)];
    BlockMemory& memory = blocks_[static_cast<size_t>(pass_.training ? i : 0)];
    if (config_.parallel) {
      RunParallel(block, i, memory);
      continue;
    }
    if (Attends(config_)) Attend(block, i, memory);
    layers_.FeedForward(block, i, group_, memory.feed_forward, stream_.data());
  }
}

void SequencePass::RunParallel(const Block& block, int index, BlockMemory& memory) {
  SublayerMemory& second = memory.feed_forward.sublayer;
  if (config_.parallel_norms) {
    layers_.Begin(FeedForwardNorms(config_, block), stream_.data(), group_, second);
  }
  Attend(block, index, memory);
  const int64_t elements = int64_t{config_.width} * group_.count;
  if (!config_.parallel_norms) {
    std::copy_n(memory.sublayer.in.data(), elements, second.in.Reserve(elements));
  }
  layers_.ApplyFeedForward(block, index, group_, memory.feed_forward, stream_.data());
}

void SequencePass::ParallelBack(const Block& block, int index, BlockMemory& memory) {
  // d reaches both updates unchanged, because parallel sublayers have no norm behind them.
  const float* const dsecond =
      layers_.FeedForwardInputBack(block, group_, memory.feed_forward, d_.data());
  AttendBack(block, index, memory, config_.parallel_norms ? nullptr : dsecond);
  if (!config_.parallel_norms) return;
  const int64_t elements = int64_t{config_.width} * group_.count;
  float* const dx = room_.Reserve(elements);
  std::copy_n(dsecond, elements, dx);
  layers_.BeginBack(FeedForwardNorms(config_, block), group_, memory.feed_forward.sublayer, dx,
                    d_.data());
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
      const Sequence& sequence = columns.sequences[static_cast<size_t>(std::min(s, last))];
      to[int64_t{f} * kept + s] =
          stream_.data()[int64_t{f} * columns.count + sequence.first + sequence.length - 1];
    }
  }
  return to;
}

void SequencePass::SpreadKept(const Columns& columns, float* d) const {
  const int kept = KeptGroup(columns).count;
  std::fill_n(d, int64_t{config_.width} * columns.count, 0.0f);
  for (int f = 0; f < config_.width; ++f) {
    for (size_t s = 0; s < columns.sequences.size(); ++s) {
      const Sequence& sequence = columns.sequences[s];
      d[int64_t{f} * columns.count + sequence.first + sequence.length - 1] =
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
  // The gradient of the part of the stream that the loss reads.
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
    if (config_.parallel) {
      ParallelBack(block, static_cast<int>(i), blocks_[i]);
      continue;
    }
    layers_.FeedForwardBack(block, group_, blocks_[i].feed_forward, d);
    if (Attends(config_)) AttendBack(block, static_cast<int>(i), blocks_[i], nullptr);
  }
  if (direct) inject(model.embedding_feedback);
  EmbedBack(model, columns);
  return sums;
}

LossSums SequencePass::Score(const Model& model, const Columns& columns) {
  RunBlocks(model, columns);
  const std::vector<Reading> readings =
      columns.prefix_batches.empty() ? ReadingsOf(columns.target) : columns.readings;
  return head_.Score(model, Kept(columns), KeptGroup(columns), readings);
}

const float* SequencePass::Logits(const Model& model, const Columns& columns) {
  RunBlocks(model, columns);
  return head_.Logits(model, Kept(columns), KeptGroup(columns));
}

}  // namespace ablate::engine::native
