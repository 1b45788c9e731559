// Writes and reads checkpoints: a run's parameters as a safetensors file that describes its model.
// Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_CHECKPOINT_H_
#define ABLATE_SERVER_ENGINE_CORE_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/safetensors.h"
#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {

// Returns every field of the model as JSON, with the norm of each norm site by name ("layer", "rms"
// or "none") under "norm_sites", so that other programs don't add norms that the model lacks.
std::string ModelJson(const ModelConfig& model);

// The metadata of a checkpoint.
struct CheckpointHeader {
  const ModelConfig& model;
  const BackendIdentity& backend;
  uint32_t step = 0;
  absl::string_view vocabulary;  // of the task; empty if it has none
};

// Returns a file with parameters and buffers under their layout names. Metadata: format, trainer,
// numerics_version, the backend's library, model, step, vocabulary.
absl::StatusOr<std::string> WriteCheckpoint(const CheckpointHeader& header,
                                            const ParameterLayout& layout,
                                            const RunTensors& tensors);

// The tensors of a file, in layout order; views into the file.
struct CheckpointTensors {
  TensorType type = TensorType::kF32;  // of all tensors
  std::vector<absl::string_view> parameters;
  std::vector<absl::string_view> buffers;
};

// Returns INVALID_ARGUMENT if the file is malformed or its tensors don't fit the layout.
absl::StatusOr<CheckpointTensors> ReadCheckpoint(const ParameterLayout& layout,
                                                 absl::string_view file);

// Copies the parameters of a checkpoint into flat bytes of `type` in layout order, and the running
// statistics if the checkpoint has them. Other buffers are left as they are. An embedding of
// positions may have more rows than the layout's; the first ones are copied. Returns
// INVALID_ARGUMENT if the file is malformed or lacks a parameter of the layout's shape; the bytes
// are then undefined. Both vocabularies must be equal if both are known.
struct WantedModel {
  const ParameterLayout& layout;
  absl::string_view vocabulary;  // as TaskKind::vocabulary; empty if tokens are numbers
};
absl::Status CopyParameters(const WantedModel& wanted, TensorType type, absl::string_view file,
                            std::string* parameters, std::string* buffers);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_CHECKPOINT_H_
