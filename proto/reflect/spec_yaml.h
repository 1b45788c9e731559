// Writes a spec as an experiment file.
#ifndef ABLATE_PROTO_REFLECT_SPEC_YAML_H_
#define ABLATE_PROTO_REFLECT_SPEC_YAML_H_

#include <string>

#include "ablate/v1/spec.pb.h"
#include "google/protobuf/message.h"

namespace ablate::reflect {

// Returns YAML 1.2 that the command line reads back as an equal message: the set fields in the
// order of their numbers, short messages on one line.
std::string SpecYaml(const v1::ExperimentSpec& spec);

// Returns a part of a spec on one line: "{key: train/loss, last: 100}".
std::string FlowYaml(const google::protobuf::Message& part);

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_SPEC_YAML_H_
