// Reads the text of an experiment file, YAML or JSON, into its message.
#ifndef ABLATE_PROTO_YAML_EXPERIMENT_TEXT_H_
#define ABLATE_PROTO_YAML_EXPERIMENT_TEXT_H_

#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "proto/yaml/source_text.h"

namespace ablate::yaml {

struct ExperimentText {
  v1::ExperimentSpec spec;  // what could be read
  SourceMap positions;
  std::vector<Diagnostic> problems;
  // Fields that `spec` lacks, completely or in part, because of problems; lists as a whole.
  std::vector<FieldPath> unread;
  bool readable = false;  // `spec` has something; else problems say why not
};

// Reads a text, with its shorthands. The problems are those that need no server: of the text, of
// unknown fields and of values of the wrong kind.
ExperimentText ReadExperiment(std::string text);

}  // namespace ablate::yaml

#endif  // ABLATE_PROTO_YAML_EXPERIMENT_TEXT_H_
