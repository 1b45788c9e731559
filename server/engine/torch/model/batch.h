// Converts a token batch to tensors on the device of its run.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_BATCH_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_BATCH_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "server/engine/core/data/batches.h"

namespace ablate::engine {

// B sequences of T tokens; N targets: B·T, or B if only last positions count.
struct BatchTensors {
  int64_t rows = 0;
  int64_t length = 0;
  int64_t real_positions = 0;  // without padding
  at::Tensor tokens;           // [B·T], int64
  at::Tensor targets;          // [N], int64; 0 where ignored
  at::Tensor lengths;          // [B], int64; undefined when every row has T tokens
  at::Tensor counted;  // [N], 1 or 0 in the model's precision; undefined when every target counts
};

// Returns the batch as tensors; `options` are the model's.
BatchTensors TensorsOf(const TokenBatch& batch, at::TensorOptions options);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_BATCH_H_
