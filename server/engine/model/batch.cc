#include "server/engine/model/batch.h"

#include <algorithm>

namespace ablate::engine {
namespace {

// Copies [rows, width] into [rows, padded], filled up with `fill`.
void CopyPadded(const std::vector<int64_t>& from, int64_t rows, int64_t width, int64_t padded,
                int64_t fill, int64_t* to) {
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = from.begin() + row * width;
    int64_t* end = std::copy(begin, begin + width, to + row * padded);
    std::fill(end, to + (row + 1) * padded, fill);
  }
}

// Replaces ignored targets by 0 and says which targets count; undefined if all do.
at::Tensor CountTargets(at::Tensor& targets, at::TensorOptions options) {
  int64_t* begin = targets.mutable_data_ptr<int64_t>();
  int64_t* end = begin + targets.numel();
  if (std::find(begin, end, TokenBatch::kIgnored) == end) return {};
  const at::Tensor counted = targets.ne(TokenBatch::kIgnored);
  targets.masked_fill_(counted.logical_not(), 0);
  return counted.to(options);
}

}  // namespace

StackBatch MakeStackBatch(const std::vector<const TokenBatch*>& batches, LossPositions loss,
                          at::TensorOptions options) {
  StackBatch stack;
  stack.runs = static_cast<int64_t>(batches.size());
  stack.rows = batches.front()->rows;
  bool padded = false;
  for (const TokenBatch* batch : batches) {
    stack.length = std::max(stack.length, batch->length);
    TORCH_CHECK(batch->rows == stack.rows, "the batches of a stack differ in rows");
  }
  const bool last_only = loss == LossPositions::kLast;
  const int64_t width = stack.rows * stack.length;
  at::Tensor tokens = at::empty({stack.runs, width}, at::kLong);
  at::Tensor targets = at::empty({stack.runs, last_only ? stack.rows : width}, at::kLong);
  at::Tensor lengths = at::empty({stack.runs, stack.rows}, at::kLong);
  for (int64_t run = 0; run < stack.runs; ++run) {
    const TokenBatch& batch = *batches[run];
    padded = padded || !batch.uniform() || batch.length != stack.length;
    CopyPadded(batch.inputs, stack.rows, batch.length, stack.length, 0,
               tokens.mutable_data_ptr<int64_t>() + run * width);
    int64_t* to = targets.mutable_data_ptr<int64_t>() + run * targets.size(1);
    CopyPadded(batch.targets, stack.rows, last_only ? 1 : batch.length,
               last_only ? 1 : stack.length, TokenBatch::kIgnored, to);
    std::copy(batch.lengths.begin(), batch.lengths.end(),
              lengths.mutable_data_ptr<int64_t>() + run * stack.rows);
  }
  stack.counted = CountTargets(targets, options);
  stack.tokens = tokens.to(options.device());
  stack.targets = targets.to(options.device());
  if (padded) stack.lengths = lengths.to(options.device());
  return stack;
}

}  // namespace ablate::engine
