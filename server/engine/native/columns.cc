#include "server/engine/native/columns.h"

#include <algorithm>

#include "server/engine/native/kernels.h"

namespace ablate::engine::native {
namespace {

int32_t TargetOf(int64_t target) {
  return target == TokenBatch::kIgnored ? -1 : static_cast<int32_t>(target);
}

void AddSequence(const TokenBatch& batch, int64_t row, LossPositions loss, Columns& columns) {
  const int length = static_cast<int>(batch.lengths[static_cast<size_t>(row)]);
  columns.sequences.push_back({row, columns.tokens, length});
  const size_t begin = static_cast<size_t>(row * batch.length);
  for (int t = 0; t < length; ++t) {
    columns.token.push_back(static_cast<int32_t>(batch.inputs[begin + static_cast<size_t>(t)]));
    columns.position.push_back(t);
    columns.row.push_back(row);
    if (loss == LossPositions::kAll) {
      columns.target.push_back(TargetOf(batch.targets[begin + static_cast<size_t>(t)]));
    }
  }
  if (loss == LossPositions::kLast) {
    columns.target.push_back(TargetOf(batch.targets[static_cast<size_t>(row)]));
  }
  columns.tokens += length;
}

}  // namespace

int64_t TargetsOf(const TokenBatch& batch) {
  const auto& targets = batch.targets;
  return static_cast<int64_t>(targets.size()) -
         std::count(targets.begin(), targets.end(), TokenBatch::kIgnored);
}

void Pad(Columns& columns) {
  columns.count = RoundUp(columns.tokens);
  const auto count = static_cast<size_t>(columns.count);
  columns.token.resize(count, columns.token.back());
  columns.position.resize(count, columns.position.back());
  if (!columns.prefix_batches.empty()) return;
  columns.row.resize(count, columns.row.back());
  columns.target.resize(static_cast<size_t>(RoundUp(static_cast<int>(columns.target.size()))), -1);
}

std::vector<Reading> ReadingsOf(const std::vector<int32_t>& target) {
  std::vector<Reading> readings;
  readings.reserve(target.size());
  for (size_t c = 0; c < target.size(); ++c) {
    if (target[c] >= 0) readings.push_back({static_cast<int32_t>(c), target[c]});
  }
  return readings;
}

std::vector<Columns> CutIntoColumns(const TokenBatch& batch, int64_t first, int64_t count,
                                    LossPositions loss, int64_t together) {
  std::vector<Columns> cut;
  for (int64_t row = first; row < first + count; ++row) {
    const int64_t length = batch.lengths[static_cast<size_t>(row)];
    if (cut.empty() || cut.back().tokens + length > together) cut.emplace_back();
    AddSequence(batch, row, loss, cut.back());
  }
  for (Columns& columns : cut) Pad(columns);
  return cut;
}

std::vector<LastColumns> CutIntoLastColumns(const TokenBatch& batch, int64_t first, int64_t count,
                                            int64_t together) {
  std::vector<LastColumns> cut;
  for (int64_t begin = first; begin < first + count; begin += together) {
    LastColumns& columns = cut.emplace_back();
    columns.first_row = begin;
    columns.rows = static_cast<int>(std::min(together, first + count - begin));
    columns.count = RoundUp(columns.rows);
    for (int64_t row = begin; row < begin + columns.rows; ++row) {
      columns.tokens.push_back(batch.inputs.data() + row * batch.length);
      columns.lengths.push_back(static_cast<int>(batch.lengths[static_cast<size_t>(row)]));
      columns.target.push_back(TargetOf(batch.targets[static_cast<size_t>(row)]));
    }
    columns.target.resize(static_cast<size_t>(columns.count), -1);
  }
  return cut;
}

}  // namespace ablate::engine::native
