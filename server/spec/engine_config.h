// A resolved RunSpec as the engine's plain config. Used to check and to count on the server, to
// train in the worker.
#ifndef ABLATE_SERVER_SPEC_ENGINE_CONFIG_H_
#define ABLATE_SERVER_SPEC_ENGINE_CONFIG_H_

#include "ablate/v1/spec.pb.h"
#include "server/engine/config.h"
#include "server/engine/samples.h"
#include "server/engine/task.h"

namespace ablate::spec {

// Every field of `run` that applies must be set, as Resolve leaves it. `shape` fixes vocabulary and
// where the loss is read. A documents task's text is left empty: the worker fills it
// in.
engine::RunConfig ToEngineConfig(const v1::RunSpec& run, const engine::TaskShape& shape);

// What is unset has the engine's default, which is the documented one.
engine::SampleOptions ToSampleOptions(const v1::SamplesSpec& spec);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_ENGINE_CONFIG_H_
