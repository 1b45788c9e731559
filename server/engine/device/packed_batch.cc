#include "server/engine/device/packed_batch.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace ablate::engine {
namespace {

constexpr int64_t kLeast = 16;
constexpr int64_t kFewRows = 64;  // of an evaluation batch

int64_t PowerOfTwo(int64_t number) {
  int64_t power = kLeast;
  while (power < number) power *= 2;
  return power;
}

bool IgnoresTargets(const TokenBatch& batch) {
  return std::find(batch.targets.begin(), batch.targets.end(), TokenBatch::kIgnored) !=
         batch.targets.end();
}

}  // namespace

Packing::Packing(const RunConfig& run)
    : ragged_(std::holds_alternative<DocumentsTask>(run.task)),
      context_(run.model.context),
      loss_(run.model.loss) {}

PackedShape Packing::UpdateShape(const TokenBatch& batch) const {
  PackedShape shape;
  shape.rows = batch.rows;
  shape.length = ragged_ ? std::min(PowerOfTwo(batch.length), context_) : batch.length;
  shape.targets = loss_ == LossPositions::kLast ? 1 : shape.length;
  shape.padded = ragged_ || !batch.uniform();
  shape.ignores = ragged_ || IgnoresTargets(batch);
  return shape;
}

PackedShape Packing::EvaluationShape(const TokenBatch& batch) const {
  PackedShape shape = UpdateShape(batch);
  if (ragged_) shape.rows = batch.rows <= kFewRows ? kFewRows : BatchSource::kMaxEvaluationBatch;
  return shape;
}

int64_t Packing::MostWords(const PackedShape& shape) const {
  if (!ragged_) return shape.words();
  PackedShape largest = shape;
  largest.length = largest.targets = context_;
  if (shape.rows == kFewRows) largest.rows = BatchSource::kMaxEvaluationBatch;
  return largest.words();
}

void PackBatch(const TokenBatch& batch, const PackedShape& shape, int64_t* words) {
  const auto write = [&](const std::vector<int64_t>& from, int64_t width, int64_t padding) {
    const int64_t real = static_cast<int64_t>(from.size()) / batch.rows;
    for (int64_t row = 0; row < shape.rows; ++row, words += width) {
      std::fill_n(words, width, padding);
      if (row < batch.rows) std::copy_n(from.begin() + row * real, real, words);
    }
  };
  write(batch.inputs, shape.length, 0);
  write(batch.targets, shape.targets, TokenBatch::kIgnored);
  write(batch.lengths, 1, 1);
}

}  // namespace ablate::engine
