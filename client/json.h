// Messages as JSON: snake_case field names, fields with their default value printed too.
#ifndef ABLATE_CLIENT_JSON_H_
#define ABLATE_CLIENT_JSON_H_

#include <string>

#include "google/protobuf/message.h"

namespace ablate::client {

// Over several lines, ending in a line break. 64-bit integers are strings and non-finite numbers
// "NaN", "Infinity", "-Infinity", as the JSON mapping of protocol buffers has it.
std::string ToJson(const google::protobuf::Message& message);

// On one line, ending in a line break: for streams, one message a line.
std::string ToJsonLine(const google::protobuf::Message& message);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_JSON_H_
