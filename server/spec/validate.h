// Checks of an experiment apart from its runs: text, analyses, report, limits, and that it is well
// formed.
#ifndef ABLATE_SERVER_SPEC_VALIDATE_H_
#define ABLATE_SERVER_SPEC_VALIDATE_H_

#include "ablate/v1/spec.pb.h"
#include "server/spec/problems.h"

namespace ablate::spec {

// What a client that is not ours could send: fields and enum numbers that this server does not
// know, text that is not UTF-8, values that are empty or not finite. Paths are below the
// experiment.
void CheckWellFormed(const v1::ExperimentSpec& spec, Problems* problems);

// Name, question, report and limits.
void CheckExperiment(const v1::ExperimentSpec& spec, Problems* problems);

// One kind in every entry of `analyses`, at most one `samples`, its ranges, and a base that has
// text. Overrides are in the base.
void CheckAnalyses(const v1::ExperimentSpec& spec, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_VALIDATE_H_
