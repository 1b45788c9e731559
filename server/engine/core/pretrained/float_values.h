// Converts tensors of files to float32. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_FLOAT_VALUES_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_FLOAT_VALUES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/safetensors.h"

namespace ablate::engine {

// Returns true for the types that CopyFloats reads.
bool IsFloatType(TensorType type);

// Copies a tensor's elements to `floats`, which has as many. F16, BF16 and F32 are exact; F64 is
// rounded to nearest. Returns INVALID_ARGUMENT with file, tensor, position and value if an element
// isn't finite or is too large for float32, or if the type isn't a floating-point type.
absl::Status CopyFloats(absl::string_view file, const TensorView& tensor, absl::Span<float> floats);

// Copies a tensor [a, b] to `floats` [b, a], where each of the a·b parts has as many elements as
// the tensor divided by them. Returns errors as CopyFloats.
absl::Status CopySwapped(absl::string_view file, const TensorView& tensor, int64_t a, int64_t b,
                         absl::Span<float> floats);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_FLOAT_VALUES_H_
