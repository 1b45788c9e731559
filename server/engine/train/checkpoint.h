// A run's parameters as a safetensors file that says by itself which model they belong to: writing
// and reading it. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_CHECKPOINT_H_
#define ABLATE_SERVER_ENGINE_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/layout.h"
#include "server/engine/safetensors.h"
#include "server/engine/train/backend.h"

namespace ablate::engine {

// Every field of the model as JSON, and under "norm_sites" the norm of each site by name ("layer",
// "rms" or "none"): a site without a norm must stay one wherever the parameters are loaded.
std::string ModelJson(const ModelConfig& model);

// What a checkpoint says beside its tensors.
struct CheckpointHeader {
  const ModelConfig& model;
  const BackendIdentity& backend;
  uint32_t step = 0;
  absl::string_view vocabulary;  // of the task; empty: it has none
};

// Parameters and buffers under their layout names. Metadata: format, trainer, numerics_version, the
// backend's library, model, step, vocabulary.
absl::StatusOr<std::string> WriteCheckpoint(const CheckpointHeader& header,
                                            const ParameterLayout& layout,
                                            const RunTensors& tensors);

// The tensors of a file, in the layout's order; views into the file.
struct CheckpointTensors {
  TensorType type = TensorType::kF32;  // of all
  std::vector<absl::string_view> parameters;
  std::vector<absl::string_view> buffers;
};

// INVALID_ARGUMENT if the file is malformed or its tensors are not those of the layout.
absl::StatusOr<CheckpointTensors> ReadCheckpoint(const ParameterLayout& layout,
                                                 absl::string_view file);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_CHECKPOINT_H_
