// What a plain YAML scalar means: the core schema of YAML 1.2, in which `no` and `off` are words.
#ifndef ABLATE_CLIENT_SCALAR_H_
#define ABLATE_CLIENT_SCALAR_H_

#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {

// null, a bool, a number (decimal, 0o17, 0x1f, .inf, .nan) or else the text itself.
google::protobuf::Value PlainScalar(absl::string_view text);

google::protobuf::Value StringValue(absl::string_view text);

// A JSON number, or false if `text` is none.
bool ParseJsonNumber(absl::string_view text, double* number);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SCALAR_H_
