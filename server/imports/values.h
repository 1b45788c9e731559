// Reads the value of each cell's run: its last, its best, or the one at a step.
#ifndef ABLATE_SERVER_IMPORTS_VALUES_H_
#define ABLATE_SERVER_IMPORTS_VALUES_H_

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/import.pb.h"
#include "absl/status/status.h"
#include "server/imports/reading.h"

namespace ablate::imports {

// Returns the better direction of a metric whose last word says it, such as val_loss.
std::optional<v1::Better::Value> DirectionOf(const std::string& metric);

// Returns INVALID_ARGUMENT about a metric whose direction isn't known.
absl::Status NoDirection(const std::string& metric);

// Sets the value, step and divergence of each cell, and the primary metric. Each cell's run has the
// metric, all by step or all by item. INVALID_ARGUMENT if runs end at different steps, or have no
// value at the step.
absl::Status ReadValues(const v1::ImportOptions& options, const std::vector<Run>& runs,
                        Reading* reading);

}  // namespace ablate::imports

#endif  // ABLATE_SERVER_IMPORTS_VALUES_H_
