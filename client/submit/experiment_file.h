// Reads an experiment file (YAML or JSON) into its message, and the options --set path=value and
// --seeds 8.
#ifndef ABLATE_CLIENT_SUBMIT_EXPERIMENT_FILE_H_
#define ABLATE_CLIENT_SUBMIT_EXPERIMENT_FILE_H_

#include <istream>
#include <map>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/submit/source_text.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {

struct ExperimentFile {
  std::string name;         // as messages show it: the path as given, or <stdin>
  std::string folder;       // that data sets are relative to; empty is the working directory
  v1::ExperimentSpec spec;  // what could be read
  SourceMap positions;
  std::vector<Diagnostic> problems;  // in the file's order
  // Fields that `spec` lacks, completely or in part, because of problems; lists as a whole.
  std::vector<FieldPath> unread;
  bool readable = false;  // a server may be asked about `spec`; else problems say why not
};

// Reads `path`, which ends in .yaml, .yml or .json, or `in` if `path` is "-". Every problem that
// can be found without a server is in `problems`.
ExperimentFile LoadExperimentFile(const std::string& path, std::istream& in);

// Values of --set by path.
using Overrides = std::map<std::string, google::protobuf::Value>;

// Reads the value of an option as in a YAML file. INVALID_ARGUMENT describes the problem.
absl::StatusOr<google::protobuf::Value> ParseValue(absl::string_view text);

// Returns the overrides of `arguments`, each `path=value` with a value as in a YAML file (null
// clears), no path twice. INVALID_ARGUMENT names the wrong arguments with reasons, and shows
// `example`.
absl::StatusOr<Overrides> ParseOverrides(const std::vector<std::string>& arguments,
                                         absl::string_view example = "training.steps=100");

// Appends every problem with paths, which are relative to base, and with values of the wrong kind.
void CheckOverrides(const Overrides& overrides, std::vector<Diagnostic>* problems);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_EXPERIMENT_FILE_H_
