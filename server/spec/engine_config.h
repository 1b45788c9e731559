// A resolved RunSpec as the engine's plain config. Used to check and to count on the server, to
// train in the worker.
#ifndef ABLATE_SERVER_SPEC_ENGINE_CONFIG_H_
#define ABLATE_SERVER_SPEC_ENGINE_CONFIG_H_

#include "ablate/v1/spec.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/samples.h"
#include "server/engine/task.h"

namespace ablate::spec {

// What this program does not know of a spec, as a newer server may send it: a field, also deep
// inside; an enum's value; a task; or a field that applies and is not set. INVALID_ARGUMENT names
// the first with its value.
absl::Status CheckKnown(const v1::RunSpec& run);

// The task of a spec that CheckKnown accepts. A data set is yet to be read
// (engine::TaskKind::read).
engine::TaskConfig ToEngineTask(const v1::TaskSpec& task);

// What a task fixes of the model. `facts` are of its data set, if it has one.
absl::StatusOr<engine::TaskShape> ShapeOf(const v1::TaskSpec& task,
                                          const engine::DocumentFacts& facts);

// Every field of `run` that applies must be set, as Resolve, ReadStoredRun and FillFields leave it.
// `shape` fixes vocabulary and where the loss is read. The task is as ToEngineTask's. Errors as
// CheckKnown's: nothing that is not known is ever replaced by a default.
absl::StatusOr<engine::RunConfig> ToEngineConfig(const v1::RunSpec& run,
                                                 const engine::TaskShape& shape);

// What is unset has the engine's default, which is the documented one.
engine::SampleOptions ToSampleOptions(const v1::SamplesSpec& spec);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_ENGINE_CONFIG_H_
