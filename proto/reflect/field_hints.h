// Suggests fields for unknown names: where else a field of this name is, also by names that other
// programs have for it.
#ifndef ABLATE_PROTO_REFLECT_FIELD_HINTS_H_
#define ABLATE_PROTO_REFLECT_FIELD_HINTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace ablate::reflect {

// Names the unknown field: the message `type` has no field that is the first part of `rest`.
struct UnknownName {
  const google::protobuf::Descriptor* root;  // message that suggested paths are below
  std::string root_path;                     // prefix of these paths
  const google::protobuf::Descriptor* type;
  std::string type_path;   // of `type`, with root_path
  absl::string_view rest;  // the unknown name, and the parts that follow it: norm.kind
};

std::vector<std::string> FieldNames(const google::protobuf::Descriptor* type);

// Returns the paths of fields below `root` that end as `ending` does or, if there are none, as what
// its last part means in other programs (lr, batch_size); at most three.
std::vector<std::string> PathsEnding(const google::protobuf::Descriptor* root,
                                     absl::string_view ending);

// Returns " (did you mean PATH?)" with the paths of PathsEnding; empty if there are none.
std::string EndingHint(const google::protobuf::Descriptor* root, absl::string_view ending);

// Returns " (did you mean PATH?)" with up to three paths below `root` that end as `rest` or as a
// usual synonym (lr, batch_size), those below `type` first; otherwise with the nearest field of
// `type`, or else of all; empty if there is none. Fields of lists below `root` aren't suggested.
std::string FieldHint(const UnknownName& unknown);

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_FIELD_HINTS_H_
