// Applies dropout to tensors, with the masks of core/data/dropout_stream.h.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_DROPOUT_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_DROPOUT_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/engine/torch/model/pass.h"

namespace ablate::engine {

// Numbers the elements of a tensor [L, length] among all elements of its hook point: element j of
// line l is number first[l] + j.
struct DropoutLines {
  at::Tensor first;  // [L], int64
  int64_t length = 0;
};

// Returns the factors of x [L, length], on the CPU.
at::Tensor DropoutMask(const Dropout& dropout, absl::string_view hook_point,
                       const DropoutLines& lines, at::TensorOptions options);

// Returns the same by tensor operations, on the device of `lines`.
at::Tensor ComposedDropoutMask(const Dropout& dropout, absl::string_view hook_point,
                               const DropoutLines& lines, at::TensorOptions options);

// Returns x, which has L·length elements, times its mask.
at::Tensor Drop(const at::Tensor& x, const Dropout& dropout, absl::string_view hook_point,
                const DropoutLines& lines);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_DROPOUT_H_
