// The axes of a stored experiment, and checks of what a request says about them.
#ifndef ABLATE_SERVER_SERVICE_GRID_AXES_H_
#define ABLATE_SERVER_SERVICE_GRID_AXES_H_

#include <map>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/status/status.h"
#include "server/report/compare/comparison.h"

namespace ablate::service {

// In the spec's order. `cuda` is what device auto was resolved to.
std::vector<report::Axis> AxesOf(const v1::ExperimentSpec& spec, bool cuda);

// INVALID_ARGUMENT at field `by` or `baseline` for what names no axis, no label, or an axis that is
// tuned.
absl::Status CheckAgainstAxes(const std::vector<report::Axis>& axes, const std::string& by,
                              const std::map<std::string, std::string>& baseline);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_GRID_AXES_H_
