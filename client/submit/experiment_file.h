// An experiment file (YAML or JSON) read into the message it stands for.
#ifndef ABLATE_CLIENT_SUBMIT_EXPERIMENT_FILE_H_
#define ABLATE_CLIENT_SUBMIT_EXPERIMENT_FILE_H_

#include <istream>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "client/submit/source_text.h"

namespace ablate::client {

struct ExperimentFile {
  std::string name;    // as messages show it: the path as given, or <stdin>
  std::string folder;  // that data sets are relative to; empty is the working directory
  v1::ExperimentSpec spec;
  SourceMap positions;
  std::vector<Diagnostic> problems;  // in the file's order; if any, spec is not to be used
};

// Reads `path` by its ending (.yaml .yml .json), or `in` if `path` is "-": YAML,
// or JSON if it looks like it. Every problem that can be found without a server is in `problems`.
ExperimentFile LoadExperimentFile(const std::string& path, std::istream& in);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_EXPERIMENT_FILE_H_
