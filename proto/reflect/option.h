// Reads the bounds that a field declares in (option) of analysis_options.proto, as numbers and as
// text.
#ifndef ABLATE_PROTO_REFLECT_OPTION_H_
#define ABLATE_PROTO_REFLECT_OPTION_H_

#include <string>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::reflect {

// Returns a field's option; empty if the field declares none.
const v1::OptionInfo& OptionOf(const google::protobuf::FieldDescriptor* field);

// Returns the declared default of a field that isn't a list, in the form that from_value.h reads.
google::protobuf::Value DefaultOf(const google::protobuf::FieldDescriptor* field);

// Returns true if `value` is within the bounds; false if it isn't finite.
bool InRange(const v1::OptionInfo& info, double value);

// Returns the range as text, such as "0 to 1,000", "0 to below 1" or "2 to keys, at most 4,096";
// empty without bounds. A field with an upper bound also has a lower one.
std::string RangeText(const v1::OptionInfo& info);

// A value that its field's option rejects; see MakeProblem of from_value.h.
struct NotAllowed {
  std::string path;  // such as training.betas[1]
  std::string value, complaint, allowed;
};

// Returns the numbers out of range and lists that are too long in `message`, which is at `path`,
// and below it.
std::vector<NotAllowed> FindNotAllowed(const google::protobuf::Message& message,
                                       const std::string& path);

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_OPTION_H_
