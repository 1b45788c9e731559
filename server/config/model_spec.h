// Converts the engine's description of a model to the spec's, for models that no experiment
// described. engine_config.h has the reverse.
#ifndef ABLATE_SERVER_CONFIG_MODEL_SPEC_H_
#define ABLATE_SERVER_CONFIG_MODEL_SPEC_H_

#include <string>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "server/engine/config.h"

namespace ablate::spec {

// Returns the model with every applicable field set and no other. The vocabulary and the positions
// of the loss aren't part of it: ToEngineModel gets them from the task's shape.
v1::ModelSpec ToModelSpec(const engine::ModelConfig& model);

// Parses a stored model. A field that the server of that time lacked gets its default. DATA_LOSS if
// `bytes` aren't a ModelSpec.
absl::StatusOr<v1::ModelSpec> ReadStoredModel(const std::string& bytes);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_CONFIG_MODEL_SPEC_H_
