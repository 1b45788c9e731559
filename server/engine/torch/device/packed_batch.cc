#include "server/engine/torch/device/packed_batch.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace ablate::engine {
namespace {

constexpr int64_t kRows[] = {4, 16, 64, BatchSource::kMaxEvaluationBatch, 1024};
// Positions of batches that are evaluated together: enough to occupy a device, and little memory.
constexpr int64_t kMostTogether = 1 << 14;

int64_t RowsOf(absl::Span<const TokenBatch> batches) {
  int64_t rows = 0;
  for (const TokenBatch& batch : batches) rows += batch.rows;
  return rows;
}

int64_t LongestOf(absl::Span<const TokenBatch> batches) {
  int64_t longest = 0;
  for (const TokenBatch& batch : batches) longest = std::max(longest, batch.length);
  return longest;
}

// Returns the least number of rows that an evaluation of `rows` is padded to.
int64_t PaddedRows(int64_t rows) {
  for (const int64_t padded : kRows) {
    if (rows <= padded) return padded;
  }
  return rows;
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

int64_t Packing::PaddedLength(int64_t length) const {
  int64_t padded = 16;
  while (padded < length) padded *= 2;
  return std::min(padded, context_);
}

PackedShape Packing::UpdateShape(const TokenBatch& batch) const {
  PackedShape shape;
  shape.rows = batch.rows;
  shape.length = ragged_ ? PaddedLength(batch.length) : batch.length;
  shape.targets = loss_ == LossPositions::kLast ? 1 : shape.length;
  shape.padded = ragged_ || !batch.uniform();
  shape.ignores = ragged_ || IgnoresTargets(batch);
  return shape;
}

bool Packing::Fit(absl::Span<const TokenBatch> batches) const {
  if (!ragged_) return false;
  return PaddedRows(RowsOf(batches)) * PaddedLength(LongestOf(batches)) <= kMostTogether;
}

PackedShape Packing::EvaluationShape(absl::Span<const TokenBatch> batches) const {
  PackedShape shape = UpdateShape(batches.front());
  if (!ragged_) return shape;
  shape.rows = PaddedRows(RowsOf(batches));
  shape.length = PaddedLength(LongestOf(batches));
  if (loss_ == LossPositions::kAll) shape.targets = shape.length;
  return shape;
}

int64_t Packing::MostUpdateWords(const PackedShape& shape) const {
  return ragged_ ? shape.rows * (2 * context_ + 1) : shape.words();
}

int64_t Packing::MostEvaluationWords(const PackedShape& shape) const {
  if (!ragged_) return shape.words();
  return std::max(BatchSource::kMaxEvaluationBatch * (2 * context_ + 1), 3 * kMostTogether);
}

void PackBatches(absl::Span<const TokenBatch> batches, const PackedShape& shape, int64_t* words) {
  const auto write = [&](std::vector<int64_t> TokenBatch::*numbers, int64_t width,
                         int64_t padding) {
    std::fill_n(words, shape.rows * width, padding);
    int64_t* to = words;
    for (const TokenBatch& batch : batches) {
      const std::vector<int64_t>& from = batch.*numbers;
      const int64_t real = static_cast<int64_t>(from.size()) / batch.rows;
      for (int64_t row = 0; row < batch.rows; ++row, to += width) {
        std::copy_n(from.begin() + row * real, real, to);
      }
    }
    words += shape.rows * width;
  };
  write(&TokenBatch::inputs, shape.length, 0);
  write(&TokenBatch::targets, shape.targets, TokenBatch::kIgnored);
  write(&TokenBatch::lengths, 1, 1);
}

}  // namespace ablate::engine
