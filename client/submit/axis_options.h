// Reads the option --axis NAME=VALUES and gives the axis its values.
#ifndef ABLATE_CLIENT_SUBMIT_AXIS_OPTIONS_H_
#define ABLATE_CLIENT_SUBMIT_AXIS_OPTIONS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/submit/experiment_file.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {

// One --axis. `values` is a list, or a range as in a file.
struct AxisOption {
  std::string name;
  google::protobuf::Value values;
};

// Returns the options of `arguments`, each NAME=VALUES with values as in a YAML list, with or
// without its brackets, or a range such as {log: [1e-4, 1e-2], count: 5}. INVALID_ARGUMENT names
// the wrong arguments with reasons.
absl::StatusOr<std::vector<AxisOption>> ParseAxes(const std::vector<std::string>& arguments);

// Gives axes of the file their values; an axis of another field is added. The name of an option is
// that of one of the file's axes, a path below base, or the end of a path that only one field has,
// such as lr. Exclusions of values that an axis loses are removed, too. Appends the problems to
// those of the file. Returns the options by the index of their axis, such as "--axis lr".
std::map<int, std::string> ApplyAxes(const std::vector<AxisOption>& options, ExperimentFile* file);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_AXIS_OPTIONS_H_
