// Dropout on tensors, by the masks of data/dropout_site.h.
#ifndef ABLATE_SERVER_ENGINE_MODEL_DROPOUT_H_
#define ABLATE_SERVER_ENGINE_MODEL_DROPOUT_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/engine/model/pass.h"

namespace ablate::engine {

// Where the elements of a tensor [L, length] stand among all that its site could have: element j
// of line l is number first[l] + j.
struct DropoutLines {
  at::Tensor first;  // [L], int64
  int64_t length = 0;
};

// What x [L, length] is multiplied by. On the CPU.
at::Tensor DropoutMask(const Dropout& dropout, absl::string_view site, const DropoutLines& lines,
                       at::TensorOptions options);

// The same by tensor operations, on the device of `lines`.
at::Tensor ComposedDropoutMask(const Dropout& dropout, absl::string_view site,
                               const DropoutLines& lines, at::TensorOptions options);

// x with L·length elements, masked.
at::Tensor Drop(const at::Tensor& x, const Dropout& dropout, absl::string_view site,
                const DropoutLines& lines);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_DROPOUT_H_
