// One field of a message from one value; what FromValue and SetPath share.
#ifndef ABLATE_PROTO_REFLECT_SET_FIELD_H_
#define ABLATE_PROTO_REFLECT_SET_FIELD_H_

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/from_value.h"

namespace ablate::reflect {

// Replaces `field` of `message`; null clears it. `depth` counts the values around this one.
void SetField(const google::protobuf::FieldDescriptor* field, const google::protobuf::Value& value,
              const std::string& path, int depth, google::protobuf::Message* message,
              std::vector<FieldProblem>* problems);

// The problem that `name` is no field of `type`, with the nearest that is one.
FieldProblem UnknownField(const google::protobuf::Descriptor* type, absl::string_view name,
                          absl::string_view complaint, const std::string& path,
                          const std::string& value);

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_SET_FIELD_H_
