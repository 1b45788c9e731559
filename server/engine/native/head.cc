#include "server/engine/native/head.h"

#include <algorithm>
#include <cmath>

namespace ablate::engine::native {

// As in torch/model/transformer.cc: computed in double and rounded once.
PositionTable::PositionTable(const ModelConfig& config) : config_(config) {
  if (config.positions != Positions::kSinusoidal) return;
  const int width = config.width;
  float* const table = sinusoids_.Reserve(int64_t{config.context} * width);
  for (int position = 0; position < config.context; ++position) {
    for (int f = 0; f < width; ++f) {
      const int even = f / 2 * 2;
      const double angle = position * std::pow(1e4, -static_cast<double>(even) / width);
      table[int64_t{position} * width + f] =
          static_cast<float>(f == even ? std::sin(angle) : std::cos(angle));
    }
  }
}

const float* PositionTable::Row(const Model& model, int position) const {
  const int64_t at = int64_t{position} * config_.width;
  if (config_.positions == Positions::kSinusoidal) return sinusoids_.data() + at;
  return config_.positions == Positions::kLearned ? model.position_embedding + at : nullptr;
}

const float* Head::Logits(const Model& model, const float* stream, const ColumnGroup& group) {
  const ModelConfig& config = layers_.config();
  const float* in = stream;
  if (config.norm.final) {
    float* const normalised = in_.Reserve(int64_t{config.width} * group.count);
    layers_.Normalise(model.final_norm, stream, group, normalised, norm_);
    in = normalised;
  }
  float* const logits = logits_.Reserve(int64_t{config.vocabulary} * group.count);
  layers_.Apply(model.head, in, group.count, logits);
  if (config.logit_cap > 0) {
    layers_.kernels().cap(static_cast<float>(config.logit_cap), logits,
                          int64_t{config.vocabulary} * group.count);
  }
  return logits;
}

LossSums Head::Forward(const Model& model, const float* stream, const ColumnGroup& group,
                       const std::vector<int32_t>& target, const Objective& objective) {
  const ModelConfig& config = layers_.config();
  Logits(model, stream, group);
  if (!config.norm.final) {
    std::copy_n(stream, int64_t{config.width} * group.count,
                in_.Reserve(int64_t{config.width} * group.count));
  }
  const int64_t logits = int64_t{config.vocabulary} * group.count;
  if (config.logit_cap > 0) std::copy_n(logits_.data(), logits, capped_.Reserve(logits));
  float* const losses = losses_.Reserve(group.count);
  layers_.kernels().cross_entropy({config.vocabulary, group.count, logits_.data(), target.data(),
                                   objective.smoothing, objective.weight, objective.z_loss,
                                   losses});
  if (config.logit_cap > 0) {
    layers_.kernels().cap_back(static_cast<float>(config.logit_cap), logits_.data(), capped_.data(),
                               logits);
  }
  LossSums sums;
  for (int c = 0; c < group.count; ++c) {
    if (target[static_cast<size_t>(c)] < 0) continue;
    sums.loss += losses[c];
    ++sums.tokens;
  }
  return sums;
}

void Head::Back(const Model& model, const ColumnGroup& group, float* d) {
  const Floats& dlogits = layers_.config().logit_cap > 0 ? capped_ : logits_;
  layers_.AddGradients(model.head, in_.data(), dlogits.data(), group.count);
  layers_.Back(model.head, dlogits.data(), group.count, d);
  if (!layers_.config().norm.final) return;
  layers_.NormaliseBack(model.final_norm, norm_, d, group, d, /*add=*/false);
}

LossSums Head::Score(const Model& model, const float* stream, const ColumnGroup& group,
                     absl::Span<const Reading> readings) {
  const float* const logits = Logits(model, stream, group);
  float* const log_sum = losses_.Reserve(group.count);
  best_.resize(static_cast<size_t>(group.count));
  layers_.kernels().summarise_logits(
      {layers_.config().vocabulary, group.count, logits, log_sum, best_.data()});
  LossSums sums;
  for (const Reading& reading : readings) {
    const float logit = logits[int64_t{reading.target} * group.count + reading.column];
    sums.loss += log_sum[reading.column] - logit;
    sums.correct += best_[static_cast<size_t>(reading.column)] == reading.target ? 1 : 0;
  }
  sums.tokens = static_cast<double>(readings.size());
  return sums;
}

void BackThroughFeedback(const Layers& layers, const float* feedback, const float* error,
                         int columns, float* d) {
  Linear through;
  through.in = layers.config().width;
  through.out = layers.config().vocabulary;
  through.back = feedback;
  layers.Back(through, error, columns, d);
}

}  // namespace ablate::engine::native
