// Token batches of a stack of runs, as tensors on its device.
#ifndef ABLATE_SERVER_ENGINE_MODEL_BATCH_H_
#define ABLATE_SERVER_ENGINE_MODEL_BATCH_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "server/engine/data/batches.h"

namespace ablate::engine {

// R batches of B sequences of T tokens; N targets a run: B·T, or B when only last positions count.
struct StackBatch {
  int64_t runs = 0;
  int64_t rows = 0;
  int64_t length = 0;
  at::Tensor tokens;   // [R, B·T], int64
  at::Tensor targets;  // [R, N], int64; 0 where ignored
  at::Tensor lengths;  // [R, B], int64; undefined when every row has T tokens
  at::Tensor
      counted;  // [R, N], 1 or 0 in the model's precision; undefined when every target counts
};

// One batch a run, right-padded to the longest; all must have the same number of rows. `options`
// are the model's.
StackBatch MakeStackBatch(const std::vector<const TokenBatch*>& batches, LossPositions loss,
                          at::TensorOptions options);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_BATCH_H_
