// A run's parameters as a safetensors file that says by itself which model they belong to: writing
// and reading it.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_CHECKPOINT_H_
#define ABLATE_SERVER_ENGINE_TRAIN_CHECKPOINT_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/layout.h"
#include "server/engine/safetensors.h"

namespace ablate::engine {

// `parameters` [P] under their layout names. Metadata: format, trainer, numerics_version,
// torch_version, model, step, vocabulary (its task's, where it has one).
absl::StatusOr<std::string> WriteCheckpoint(const ModelConfig& model, const ParameterLayout& layout,
                                            const at::Tensor& parameters, uint32_t step,
                                            absl::string_view vocabulary);

// The parameters [P] of a checkpoint, in its precision. INVALID_ARGUMENT if the file is malformed
// or its tensors are not those of the layout.
absl::StatusOr<at::Tensor> ReadCheckpoint(const ParameterLayout& layout, absl::string_view file);

// A float32 or float64 tensor's bytes; it must be contiguous, on the CPU, and outlive the view.
TensorView ViewOf(std::string name, const at::Tensor& tensor);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_CHECKPOINT_H_
