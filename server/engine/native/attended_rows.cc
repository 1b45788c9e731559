#include "server/engine/native/attended_rows.h"

#include <algorithm>

#include "server/engine/core/layout.h"

namespace ablate::engine::native {

AttendedRows::AttendedRows(const Layers& layers)
    : layers_(layers),
      config_(layers.config()),
      kernels_(layers.kernels()),
      positions_(config_),
      floats_(RoundUp(config_.width)) {}

int AttendedRows::FirstPosition(int length) const { return Attends(config_) ? 0 : length - 1; }

int AttendedRows::LastOf(int sequence) const {
  const int length = columns_->lengths[At(sequence)];
  return first_[At(sequence)] + length - 1 - FirstPosition(length);
}

bool AttendedRows::Normalises() const {
  return HasAttentionNorm(config_) && NormsInput(config_.norm);
}

void AttendedRows::Embed(const Model& model, const LastColumns& columns) {
  columns_ = &columns;
  first_.clear();
  count_ = 0;
  for (const int length : columns.lengths) {
    first_.push_back(count_);
    count_ += length - FirstPosition(length);
  }
  // An unmodified embedding is read in place.
  const bool copied = config_.positions != Positions::kNone || layers_.drops() || Normalises();
  const int width = config_.width;
  float* to = copied ? embedded_.Reserve(int64_t{RoundUp(count_)} * floats_) : nullptr;
  row_.clear();
  for (size_t s = 0; s < columns.lengths.size(); ++s) {
    const int length = columns.lengths[s];
    for (int t = FirstPosition(length); t < length; ++t) {
      const float* const token = model.token_embedding + columns.tokens[s][t] * width;
      row_.push_back(copied ? to : token);
      if (!copied) continue;
      const float* const position = positions_.Row(model, t);
      for (int f = 0; f < width; ++f) {
        to[f] = position == nullptr ? token[f] : token[f] + position[f];
      }
      to += floats_;
    }
  }
  if (layers_.drops()) Drop();
}

void AttendedRows::Drop() {
  std::vector<int64_t> element;
  for (size_t s = 0; s < columns_->lengths.size(); ++s) {
    const int length = columns_->lengths[s];
    const int64_t row = columns_->first_row + static_cast<int64_t>(s);
    for (int t = FirstPosition(length); t < length; ++t) {
      element.push_back((row * config_.context + t) * config_.width);
    }
  }
  float* const mask = mask_.Reserve(int64_t{RoundUp(count_)} * floats_);
  FillMask(layers_.MasksOf({HookPoint::kEmbedding}),
           {element.data(), count_, config_.width, floats_, 1}, mask);
  kernels_.multiply(mask, embedded_.data(), int64_t{count_} * floats_);
}

void AttendedRows::Normalise(const Norm& norm) {
  if (!Normalises()) return;
  const int width = config_.width, padded = RoundUp(count_);
  float* const embedded = embedded_.data();
  for (int i = count_; i < padded; ++i) {
    std::copy_n(embedded + int64_t{count_ - 1} * floats_, floats_, embedded + int64_t{i} * floats_);
  }
  float* const by_feature = by_feature_.Reserve(int64_t{width} * padded);
  kernels_.transpose(embedded, floats_, padded, width, by_feature, padded);
  layers_.Normalise(norm, by_feature, {padded, nullptr, 0, nullptr}, by_feature, norm_);
  float* const normalised = normalised_.Reserve(int64_t{padded} * floats_);
  kernels_.transpose(by_feature, padded, width, padded, normalised, floats_);
  for (int i = 0; i < count_; ++i) row_[At(i)] = normalised + int64_t{i} * floats_;
}

void AttendedRows::CopyLast(float* to) {
  const int width = config_.width, columns = columns_->count;
  float* const last = last_.Reserve(int64_t{columns} * floats_);
  for (int c = 0; c < columns; ++c) {
    const int sequence = std::min(c, columns_->rows - 1);
    std::copy_n(row_[At(LastOf(sequence))], width, last + int64_t{c} * floats_);
  }
  kernels_.transpose(last, floats_, columns, width, to, columns);
}

void AttendedRows::ClearGradients() {
  const int64_t size = int64_t{RoundUp(count_)} * floats_;
  std::fill_n(gradients_.Reserve(size), size, 0.0f);
}

void AttendedRows::AddLastGradients(const float* d) {
  const int columns = columns_->count;
  float* const last = last_.Reserve(int64_t{columns} * floats_);
  kernels_.transpose(d, columns, config_.width, columns, last, floats_);
  for (int s = 0; s < columns_->rows; ++s) {
    kernels_.combine(1, last + int64_t{s} * floats_, 1,
                     gradients_.data() + int64_t{LastOf(s)} * floats_, floats_);
  }
}

void AttendedRows::NormaliseBack(const Norm& norm) {
  if (!Normalises()) return;
  const int width = config_.width, padded = RoundUp(count_);
  float* const by_feature = by_feature_.data();
  kernels_.transpose(gradients_.data(), floats_, padded, width, by_feature, padded);
  layers_.NormaliseBack(norm, norm_, by_feature, {padded, nullptr, 0, nullptr}, by_feature,
                        /*add=*/false);
  kernels_.transpose(by_feature, padded, width, padded, gradients_.data(), floats_);
}

void AttendedRows::EmbedBack(const Model& model) {
  const int width = config_.width;
  const float* from = gradients_.data();
  if (layers_.drops()) {
    kernels_.multiply(mask_.data(), gradients_.data(), int64_t{count_} * floats_);
  }
  for (size_t s = 0; s < columns_->lengths.size(); ++s) {
    const int length = columns_->lengths[s];
    for (int t = FirstPosition(length); t < length; ++t, from += floats_) {
      float* const token = model.dtoken_embedding + columns_->tokens[s][t] * width;
      kernels_.add(from, token, width);
      if (config_.positions != Positions::kLearned) continue;
      float* const position = model.dposition_embedding + int64_t{t} * width;
      kernels_.add(from, position, width);
    }
  }
}

}  // namespace ablate::engine::native
