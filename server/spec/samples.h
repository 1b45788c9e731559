// The `analyses` of an experiment: checks, and the engine's terms for them.
#ifndef ABLATE_SERVER_SPEC_SAMPLES_H_
#define ABLATE_SERVER_SPEC_SAMPLES_H_

#include "ablate/v1/spec.pb.h"
#include "server/engine/samples.h"
#include "server/spec/problems.h"

namespace ablate::spec {

// What is unset has the engine's default, which is the documented one.
engine::SampleOptions ToSampleOptions(const v1::SamplesSpec& spec);

// One kind in every entry, at most one `samples`, its ranges, and a base that has text. Overrides
// are in the base.
void CheckAnalyses(const v1::ExperimentSpec& spec, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_SAMPLES_H_
