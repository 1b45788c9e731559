#include "server/engine/native/prefix_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/types/span.h"
#include "server/engine/core/layout.h"
#include "server/engine/native/kernels.h"

namespace ablate::engine::native {
namespace {

constexpr int kLongest = kColumns;

absl::Span<const int64_t> RowOf(const TokenBatch& batch, const std::vector<int64_t>& of,
                                int64_t row) {
  return absl::MakeConstSpan(of).subspan(static_cast<size_t>(row * batch.length),
                                         static_cast<size_t>(batch.length));
}

// Returns the rows in an order that makes equal beginnings adjacent.
std::vector<int64_t> OrderedRows(const TokenBatch& batch, bool by_beginning) {
  std::vector<int64_t> rows(static_cast<size_t>(batch.rows));
  std::iota(rows.begin(), rows.end(), 0);
  if (by_beginning) {
    std::sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
      return RowOf(batch, batch.inputs, a) < RowOf(batch, batch.inputs, b);
    });
  }
  return rows;
}

// Returns the number of equal leading tokens of two rows.
int CommonLength(const TokenBatch& batch, int64_t a, int64_t b) {
  const auto first = RowOf(batch, batch.inputs, a), second = RowOf(batch, batch.inputs, b);
  return static_cast<int>(std::mismatch(first.begin(), first.end(), second.begin()).first -
                          first.begin());
}

// Adds up to kColumns rows as lanes; lanes without a row repeat the last one and have no readings.
void AddPrefixBatch(const TokenBatch& batch, absl::Span<const int64_t> rows, bool share,
                    Columns& columns) {
  PrefixBatch made;
  made.length = static_cast<int>(batch.length);
  made.column_of_lane.resize(static_cast<size_t>(batch.length) * kColumns);
  made.lane_of_column.resize(made.column_of_lane.size());
  std::vector<int> common(kColumns, made.length);  // with the previous lane
  common[0] = 0;
  for (size_t l = 1; l < rows.size(); ++l) {
    common[l] = share ? CommonLength(batch, rows[l - 1], rows[l]) : 0;
  }
  for (int t = 0; t < made.length; ++t) {
    made.first.push_back(columns.tokens);
    const size_t at = static_cast<size_t>(t) * kColumns;
    for (size_t l = 0; l < kColumns; ++l) {
      if (common[l] <= t) {
        made.lane_of_column[at + static_cast<size_t>(columns.tokens - made.first.back())] =
            static_cast<int32_t>(l);
        columns.token.push_back(
            static_cast<int32_t>(RowOf(batch, batch.inputs, rows[l])[static_cast<size_t>(t)]));
        columns.position.push_back(t);
        ++columns.tokens;
      }
      made.column_of_lane[at + l] = columns.tokens - 1 - made.first.back();
      if (l >= rows.size()) continue;
      const int64_t target = RowOf(batch, batch.targets, rows[l])[static_cast<size_t>(t)];
      if (target == TokenBatch::kIgnored) continue;
      columns.readings.push_back({columns.tokens - 1, static_cast<int32_t>(target)});
    }
    made.counts.push_back(columns.tokens - made.first.back());
  }
  columns.prefix_batches.push_back(std::move(made));
}

}  // namespace

bool FitsPrefixBatches(const ModelConfig& config, const TokenBatch& batch) {
  return config.loss == LossPositions::kAll && batch.uniform() && batch.length <= kLongest &&
         batch.rows > batch.length;
}

std::vector<Columns> CutIntoPrefixBatches(const ModelConfig& config, const TokenBatch& batch,
                                          int64_t together) {
  const bool share = !LooksAhead(config);
  const std::vector<int64_t> rows = OrderedRows(batch, share);
  std::vector<Columns> cut;
  for (size_t first = 0; first < rows.size(); first += kColumns) {
    if (cut.empty() || cut.back().tokens >= together) cut.emplace_back();
    AddPrefixBatch(batch, absl::MakeConstSpan(rows).subspan(first, kColumns), share, cut.back());
  }
  for (Columns& columns : cut) Pad(columns);
  return cut;
}

}  // namespace ablate::engine::native
