// Reads an experiment file (YAML or JSON) into its message, and the options --set path=value and
// --seeds 8.
#ifndef ABLATE_CLIENT_SUBMIT_EXPERIMENT_FILE_H_
#define ABLATE_CLIENT_SUBMIT_EXPERIMENT_FILE_H_

#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/yaml/dataset_paths.h"
#include "proto/yaml/experiment_text.h"

namespace ablate::client {

// An experiment file. A server may be asked about the spec of one that is `readable`.
struct ExperimentFile : yaml::ExperimentText {
  std::string name;    // as messages show it: the path as given, or <stdin>
  std::string folder;  // that data sets are relative to; empty is the working directory
};

// Reads `path`, which ends in .yaml, .yml or .json, or `in` if `path` is "-". Every problem that
// can be found without a server is in `problems`.
ExperimentFile LoadExperimentFile(const std::string& path, std::istream& in);

using yaml::Overrides;  // values of --set

// Returns the overrides of `arguments`, each `path=value` with a value as in a YAML file (null
// clears), no path twice. INVALID_ARGUMENT names the wrong arguments with reasons, and shows
// `example`.
absl::StatusOr<Overrides> ParseOverrides(const std::vector<std::string>& arguments,
                                         absl::string_view example = "training.steps=100");

// Appends every problem with paths, which are relative to base, and with values of the wrong kind.
void CheckOverrides(const Overrides& overrides, std::vector<yaml::Diagnostic>* problems);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_EXPERIMENT_FILE_H_
