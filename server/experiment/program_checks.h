// Checks the parts of an experiment that only programs have: the program, and its settings.
#ifndef ABLATE_SERVER_EXPERIMENT_PROGRAM_CHECKS_H_
#define ABLATE_SERVER_EXPERIMENT_PROGRAM_CHECKS_H_

#include <optional>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"
#include "server/config/problems.h"
#include "server/experiment/writes.h"

namespace ablate::spec {

// Returns the problem of a write that a program's experiment doesn't allow: to a setting that
// `base`, which declares them, lacks or has with another type; to `settings` or `program` as a
// whole; below `program` if `base` has none. Nothing for a write elsewhere.
std::optional<Problem> CheckSetting(const v1::BaseSpec& base, const Write& write);

// Checks a base that is a program, apart from single fields' bounds; or a base without one, which
// may have no settings. Problems are at paths of the experiment.
void CheckProgram(const v1::BaseSpec& base, Problems* problems);

// Returns true if the text may be the key of a metric of a program: 1 to 100 bytes of UTF-8 without
// control characters and spaces at its ends.
bool IsProgramMetric(absl::string_view key);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_PROGRAM_CHECKS_H_
