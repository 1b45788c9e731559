// Converts a resolved RunSpec to the engine's plain config. The server uses it to check and to
// count, the worker to train.
#ifndef ABLATE_SERVER_CONFIG_ENGINE_CONFIG_H_
#define ABLATE_SERVER_CONFIG_ENGINE_CONFIG_H_

#include "ablate/v1/spec.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/samples.h"
#include "server/engine/task.h"

namespace ablate::spec {

// Returns INVALID_ARGUMENT naming the first part of a spec that this program doesn't know, with its
// value: a field at any depth, an enum value, a task, or an applicable field that is unset. A newer
// server may send such specs.
absl::Status CheckKnown(const v1::RunSpec& run);

// Converts the task of a spec that CheckKnown accepts. Its data set must still be read
// (engine::TaskKind::read).
engine::TaskConfig ToEngineTask(const v1::TaskSpec& task);

// Returns the properties of the model that a task determines. `facts` are of its data set, if any.
absl::StatusOr<engine::TaskShape> ShapeOf(const v1::TaskSpec& task,
                                          const engine::DocumentFacts& facts);

// Converts a run's spec. Every applicable field of `run` must be set, as Resolve, ReadStoredRun and
// FillFields do. `shape` sets the vocabulary and the positions of the loss. The task is
// ToEngineTask's. Errors as CheckKnown's: unknown content is never replaced by a default.
absl::StatusOr<engine::RunConfig> ToEngineConfig(const v1::RunSpec& run,
                                                 const engine::TaskShape& shape);

// Converts a model alone, as ToEngineConfig does. Every applicable field must be set.
absl::StatusOr<engine::ModelConfig> ToEngineModel(const v1::ModelSpec& spec,
                                                  const engine::TaskShape& shape);

// Converts sample options; unset ones get the engine's default, which is the documented one.
engine::SampleOptions ToSampleOptions(const v1::SamplesSpec& spec);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_CONFIG_ENGINE_CONFIG_H_
