// Fills a message from untyped values by reflection, and reports every field that can't be filled.
// Only this file turns YAML, --set and settings into typed fields.
#ifndef ABLATE_PROTO_REFLECT_FROM_VALUE_H_
#define ABLATE_PROTO_REFLECT_FROM_VALUE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/text.h"

namespace ablate::reflect {

// A problem of one value. `message` is a complete sentence with field, value and what is allowed.
struct FieldProblem {
  std::string field;  // path below the message, such as model.norm.placement or axes[0].values[2]
  std::string value;  // as given, shortened to 200 bytes
  std::string allowed;
  std::string message;
};

// Returns a problem in the form shared by all: "FIELD: COMPLAINT; expected ALLOWED", where the
// complaint includes the value.
FieldProblem MakeProblem(const std::string& field, const std::string& value,
                         absl::string_view complaint, absl::string_view allowed);

// Sets `message` (cleared first) from `value`, a struct whose keys are field names in snake_case.
// Numbers must be finite and fit the field's type exactly (2.0 is an integer, 2.5 isn't; a bool
// isn't a number, and a string is one only for integer fields 64 bits wide, as in proto JSON, or if
// it has the digits of a whole number beyond 2^53, which a double would round). Enums are given by
// name, bytes in base64, durations as "7200s"; null clears, and a value of no kind is a problem.
// google.protobuf.Value fields take anything finite and in UTF-8, Struct fields any names. At most
// one member of a oneof may be set. Appends every problem, with "did you mean" for unknown names,
// and paths prefixed with `path`. Never aborts; depth is limited to kMaxDepth.
void FromValue(const google::protobuf::Value& value, const std::string& path,
               google::protobuf::Message* message, std::vector<FieldProblem>* problems);

// Checks a value that is stored unchanged: set, finite, in UTF-8, at most kMaxDepth deep. Returns
// false after appending problems.
bool CheckValue(const google::protobuf::Value& value, const std::string& path,
                std::vector<FieldProblem>* problems);

// Sets the field at a dotted path (`model.norm.placement`) below `message`. Lists and messages
// replace the old contents, null clears, and setting a member of a oneof clears the others. A path
// may lead on into a google.protobuf.Struct, by the names in it (`settings.model.heads`), where
// null is a value like others. Problems have the path `reported_as` (what the user wrote, such as
// axes[0].settings[1].set["model.norm.placement"]), followed by the rest of the path; nothing is
// changed then.
void SetPath(absl::string_view path, const google::protobuf::Value& value,
             const std::string& reported_as, google::protobuf::Message* message,
             std::vector<FieldProblem>* problems);

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_FROM_VALUE_H_
